/**
 * GOAL as text: what LogGOPSim and ATLAHS call a schedule. Words are those of LogGOPSim's txt2bin.re; beyond it labels may be used
 * before they are given, a line may have several statements, and ranks may be absent, which have no operations.
 */
import { GoalLabels, type Label, textOf } from "./goal_labels.js";
import { GoalTokens } from "./goal_tokens.js";
import { GraphBuilder, kAny, type MessageGraph, type Operation, type Placed } from "./graph.js";

/**
 * Reads a schedule of any length, a piece at a time. `text`: what the file has, where it was read already. Says in `notes` what was
 * left out. Sizes are bytes, calculations ns. @throws WeirError with file and line.
 */
export function readGoalText(file: string, text?: string, notes: string[] = []): MessageGraph {
  const tokens = new GoalTokens(file, text);
  try {
    return new Schedule(file, tokens, notes).read();
  } finally {
    tokens.close();
  }
}

/** A dependency on a label that was not known yet. */
interface Later {
  /** The two labels; an operation, where it was known. */
  waiting: string | Operation;
  awaited: string | Operation;
  startOnly: boolean;
  line: number;
}

class Schedule {
  private graph!: GraphBuilder;
  private readonly labels = new GoalLabels();
  private later: Later[] = [];
  private rank = 0;
  private otherNic = false;

  constructor(
    private readonly file: string,
    private readonly tokens: GoalTokens,
    private readonly notes: string[],
  ) {}

  read(): MessageGraph {
    const { tokens } = this;
    tokens.next();
    this.expect("num_ranks");
    const ranks = this.number("the number of ranks");
    this.graph = new GraphBuilder(this.file, ranks);
    const seen = new Uint8Array(ranks);
    while (tokens.kind !== "end") {
      this.expect("rank");
      const { line } = tokens;
      this.rank = this.number("a rank");
      if (this.rank >= ranks)
        throw this.at(line, `rank ${this.rank}: there are ${ranks}, so ranks are from 0 to ${ranks - 1}`);
      if (seen[this.rank]) throw this.at(line, `rank ${this.rank} is there twice`);
      seen[this.rank] = 1;
      this.sign("{");
      this.labels.clear(this.graph.operations);
      while (!tokens.isSign("}")) this.statement();
      tokens.next();
      this.resolveLater();
    }
    if (this.otherNic)
      this.notes.push("which NIC an operation uses is left out: a rank's messages go by all that it has");
    return this.graph.build();
  }

  private statement(): void {
    const { tokens } = this;
    if (tokens.kind !== "word") throw this.unexpected("an operation, a label or }");
    if (this.operation(undefined)) return;
    const { line } = tokens;
    const known = this.labels.find(tokens);
    const ordinal = tokens.ordinal();
    const label = { text: ordinal < 0 ? tokens.text() : "", letter: tokens.value, ordinal };
    tokens.next();
    if (tokens.isSign(":")) {
      tokens.next();
      if (known >= 0) throw this.at(line, `label ${textOf(label)} is there twice`);
      if (!this.operation(label)) throw this.unexpected("send, recv or calc");
      return;
    }
    const startOnly = tokens.is("irequires");
    if (!startOnly && !tokens.is("requires")) throw this.unexpected(":, requires or irequires");
    tokens.next();
    if (tokens.kind !== "word") throw this.unexpected("a label");
    const awaited = this.labels.find(tokens);
    if (known >= 0 && awaited >= 0) this.depend(known, awaited, startOnly);
    else
      this.later.push({
        waiting: known >= 0 ? known : textOf(label),
        awaited: awaited >= 0 ? awaited : tokens.text(),
        startOnly,
        line,
      });
    tokens.next();
  }

  /** Reads an operation, if there is one. */
  private operation(label: Label | undefined): boolean {
    const { tokens, graph, rank } = this;
    const placed: Placed = { line: tokens.line };
    let operation: Operation;
    if (tokens.is("calc")) {
      tokens.next();
      const ns = this.number("ns");
      this.place(placed, false);
      operation = graph.calculate(rank, ns, placed);
    } else if (tokens.is("send")) {
      const bytes = this.size("to");
      const peer = this.number("a rank");
      const tag = this.place(placed, true);
      operation = graph.send(rank, peer, bytes, tag, placed);
    } else if (tokens.is("recv")) {
      const bytes = this.size("from");
      const peer = this.numberOrAny("a rank");
      const tag = this.place(placed, true);
      operation = graph.receive(rank, peer, bytes, tag, placed);
    } else return false;
    if (label !== undefined) this.labels.set(label, operation);
    return true;
  }

  private size(preposition: string): number {
    this.tokens.next();
    const bytes = this.number("a number of bytes, such as 4096b");
    this.expect("b");
    this.expect(preposition);
    return bytes;
  }

  /** `tag`, `cpu` and `nic` up to the end of the line. Returns the tag. */
  private place(placed: Placed, message: boolean): number {
    const { tokens } = this;
    let tag = 0;
    while (!tokens.first && tokens.kind === "word") {
      if (message && tokens.is("tag")) {
        tokens.next();
        tag = this.numberOrAny("a tag");
      } else if (tokens.is("cpu")) {
        tokens.next();
        placed.processor = this.number("a processor");
      } else if (tokens.is("nic")) {
        tokens.next();
        if (this.number("a NIC") > 0) this.otherNic = true;
      } else break;
    }
    return tag;
  }

  private number(what: string): number {
    const { tokens } = this;
    if (tokens.kind !== "number") throw this.unexpected(what);
    const { value } = tokens;
    tokens.next();
    return value;
  }

  /** -1 stands for any. */
  private numberOrAny(what: string): number {
    const { tokens } = this;
    if (!tokens.isSign("-")) return this.number(what);
    tokens.next();
    if (tokens.kind !== "number" || tokens.value !== 1) throw this.unexpected("-1, which is any");
    tokens.next();
    return kAny;
  }

  private expect(word: string): void {
    if (!this.tokens.is(word)) throw this.unexpected(word);
    this.tokens.next();
  }

  private sign(sign: string): void {
    if (!this.tokens.isSign(sign)) throw this.unexpected(sign);
    this.tokens.next();
  }

  private depend(waiting: Operation, awaited: Operation, startOnly: boolean): void {
    if (startOnly) this.graph.irequires(waiting, awaited);
    else this.graph.requires(waiting, awaited);
  }

  private resolveLater(): void {
    for (const { waiting, awaited, startOnly, line } of this.later) {
      const find = (label: string | Operation): Operation => {
        const operation = typeof label === "number" ? label : this.labels.findText(label);
        if (operation < 0) throw this.at(line, `no operation of rank ${this.rank} has the label ${label}`);
        return operation;
      };
      this.depend(find(waiting), find(awaited), startOnly);
    }
    this.later = [];
  }

  private unexpected(wanted: string) {
    return this.tokens.error(`expected ${wanted}, not ${this.tokens.found()}`);
  }

  private at(line: number, problem: string) {
    this.tokens.line = line;
    return this.tokens.error(problem);
  }
}
