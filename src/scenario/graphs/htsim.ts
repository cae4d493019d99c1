/**
 * Connection matrices of htsim (ConnectionMatrix::load in its datacenter/connection_matrix.cpp). Each connection is one message;
 * `start` is in picoseconds. What a trigger starts waits for what fires it, which must be at the same rank: htsim carries a trigger
 * over the network in no time, and no graph of messages can.
 */
import { WeirError } from "../../base/error.js";
import { GraphBuilder, type MessageGraph, type Operation } from "./graph.js";
import { readSourceText, shownWord, wholeNumber, wordsByLine } from "./source_text.js";

const kPicoseconds = 1000;
/** Processor of what only stands between others: starts are calculations of processor 0, and may be under way. */
const kJoints = 1;
const kTriggerKinds = ["oneshot", "multishot", "barrier"] as const;

interface Connection {
  name: string;
  line: number;
  from: number;
  to: number;
  bytes: number;
  /** ns; undefined: a trigger starts it. */
  start: number | undefined;
  trigger: number | undefined;
  sendDone: number | undefined;
  receiveDone: number | undefined;
}

interface Trigger {
  line: number;
  kind: (typeof kTriggerKinds)[number];
  count: number;
}

interface Fired {
  rank: number;
  operation: Operation;
  by: string;
}

/** Reads a connection matrix; says in `notes` what was left out. @throws WeirError with file and line. */
export function readConnectionMatrix(file: string, text = readSourceText(file), notes: string[] = []): MessageGraph {
  return new Matrix(file, notes).read(text);
}

class Matrix {
  private readonly header = new Map<string, number>();
  private readonly connections: Connection[] = [];
  private readonly triggers = new Map<number, Trigger>();
  private readonly left = new Set<string>();

  constructor(
    private readonly file: string,
    private readonly notes: string[],
  ) {}

  read(text: string): MessageGraph {
    for (const { number, words } of wordsByLine(text)) {
      const [first = ""] = words;
      if (first.startsWith("#")) continue;
      if (["Nodes", "Connections", "Triggers", "Failures"].includes(first))
        this.header.set(first, wholeNumber(words[1], first, this.at(number)));
      else if (first.includes("->")) this.readConnection(words, number);
      else if (first === "trigger") this.readTrigger(words, number);
      else if (first === "failure")
        throw this.error(number, "failure lines are not read", "write failures in the scenario, with their times");
      else throw this.error(number, `expected a connection such as 0->1, or trigger, not ${shownWord(first)}`);
    }
    const nodes = this.header.get("Nodes");
    if (nodes === undefined) throw new WeirError(`${this.file}: no line of it says Nodes`);
    this.checkCount("Connections", this.connections.length);
    this.checkCount("Triggers", this.triggers.size);
    for (const what of this.left) this.notes.push(what);
    return this.build(nodes);
  }

  private checkCount(name: string, count: number): void {
    const said = this.header.get(name);
    if (said !== undefined && said !== count)
      throw new WeirError(`${this.file}: the header says ${name} ${said}, but there are ${count}`);
  }

  private readConnection(words: readonly string[], line: number): void {
    const where = this.at(line);
    const [, from, to] = /^(\d+)->(\d+)$/.exec(words[0] as string) ?? [];
    if (from === undefined) throw this.error(line, `expected a connection such as 0->1, not ${shownWord(words[0])}`);
    const connection: Connection = {
      name: `the connection ${words[0]}`,
      line,
      from: wholeNumber(from, "sender", where),
      to: wholeNumber(to, "receiver", where),
      bytes: -1,
      start: undefined,
      trigger: undefined,
      sendDone: undefined,
      receiveDone: undefined,
    };
    for (let i = 1; i < words.length; i += 2) {
      const value = words[i + 1];
      const number = () => wholeNumber(value, words[i] as string, where);
      switch (words[i]) {
        case "start":
          connection.start = this.startTime(value, line);
          break;
        case "size":
          connection.bytes = number();
          break;
        case "id":
          connection.name = `connection ${number()} (${words[0]})`;
          break;
        case "trigger":
          connection.trigger = number();
          break;
        case "send_done_trigger":
          connection.sendDone = number();
          break;
        case "recv_done_trigger":
          connection.receiveDone = number();
          break;
        case "prio":
          number();
          this.left.add("priorities of connections are left out");
          break;
        case "msg":
          // It numbers messages of one htsim connection, and the number may be absent.
          if (value === undefined || !/^\d+$/.test(value)) i--;
          break;
        default:
          throw this.error(line, `${shownWord(words[i])} is unknown`);
      }
    }
    if (connection.bytes < 0) throw this.error(line, `${connection.name} has no size: it would never end`);
    if ((connection.start === undefined) === (connection.trigger === undefined))
      throw this.error(line, `${connection.name} needs either start or trigger`);
    this.connections.push(connection);
  }

  private startTime(word: string | undefined, line: number): number {
    if (word === undefined || !/^\d+(\.\d+)?([eE]\+?\d+)?$/.test(word))
      throw this.error(line, `start: ${shownWord(word)} is no number of picoseconds`);
    const start = Number(word) / kPicoseconds;
    if (!Number.isInteger(start)) this.left.add("starts are rounded to whole ns");
    return Math.round(start);
  }

  private readTrigger(words: readonly string[], line: number): void {
    const where = this.at(line);
    let id = 0;
    let kind: Trigger["kind"] | undefined;
    let count = 0;
    for (let i = 1; i < words.length; i++) {
      const word = words[i] as string;
      const known = kTriggerKinds.find((name) => name === word);
      if (known !== undefined) kind = known;
      else if (word === "id") id = wholeNumber(words[++i], "id", where);
      else if (word === "count") count = wholeNumber(words[++i], "count", where);
      else throw this.error(line, `${shownWord(word)} is unknown`);
    }
    if (id === 0) throw this.error(line, "a trigger needs an id above 0");
    if (kind === undefined) throw this.error(line, `trigger ${id} is none of ${kTriggerKinds.join(", ")}`);
    if (this.triggers.has(id)) throw this.error(line, `trigger ${id} is there twice`);
    this.triggers.set(id, { line, kind, count });
  }

  private build(nodes: number): MessageGraph {
    const graph = new GraphBuilder(this.file, nodes);
    const fired = new Map<number, Fired[]>();
    const fire = (trigger: number | undefined, by: Fired) => {
      if (trigger === undefined) return;
      const all = fired.get(trigger);
      if (all === undefined) fired.set(trigger, [by]);
      else all.push(by);
    };
    const sends = this.connections.map((connection, tag) => {
      const { name, line, from, to, bytes } = connection;
      const send = graph.send(from, to, bytes, tag, { line });
      const receive = graph.receive(to, from, bytes, tag, { line });
      fire(connection.sendDone, { rank: from, operation: send, by: name });
      fire(connection.receiveDone, { rank: to, operation: receive, by: name });
      return send;
    });
    this.addStarts(graph, sends);
    const targets = new Map<number, number>();
    for (const { trigger: id } of this.connections) if (id !== undefined) targets.set(id, (targets.get(id) ?? 0) + 1);
    const seen = new Map<number, number>();
    const firings = new Map<number, readonly Operation[]>();
    for (const [n, connection] of this.connections.entries()) {
      const { trigger: id, line, name, from } = connection;
      if (id === undefined) continue;
      const nth = (seen.get(id) ?? 0) + 1;
      seen.set(id, nth);
      const all = this.firedBy(id, line, nth, fired.get(id) ?? []);
      // Those that have started another are at one rank.
      const elsewhere = (firings.has(id) ? all.slice(0, 1) : all).find(({ rank }) => rank !== from);
      if (elsewhere !== undefined)
        throw this.error(
          line,
          `${name} starts at rank ${from}, but ${elsewhere.by} fires its trigger ${id} at rank ${elsewhere.rank}, and only htsim carries that in no time`,
          `let a message that ends at rank ${from} fire it, by recv_done_trigger`,
        );
      const firing = firings.get(id) ?? this.firing(graph, id, all, targets.get(id) as number);
      firings.set(id, firing);
      for (const operation of firing) graph.requires(sends[n] as Operation, operation);
    }
    return graph.build();
  }

  /** Operations with whose ends a trigger fires. Where many fire it and it starts many, one operation stands between them. */
  private firing(graph: GraphBuilder, id: number, fired: readonly Fired[], targets: number): Operation[] {
    const operations = fired.map(({ operation }) => operation);
    if (operations.length < 2 || targets < 2) return operations;
    const { line = 0 } = this.triggers.get(id) ?? {};
    const joint = graph.calculate((fired[0] as Fired).rank, 0, { line, processor: kJoints });
    for (const operation of operations) graph.requires(joint, operation);
    return [joint];
  }

  /** Connections of a rank that start at times wait along one chain: calculations of a rank do not overlap. */
  private addStarts(graph: GraphBuilder, sends: readonly Operation[]): void {
    const timed = [...this.connections.keys()].filter((n) => (this.connections[n]?.start ?? 0) > 0);
    const startOf = (n: number) => this.connections[n]?.start as number;
    timed.sort((a, b) => startOf(a) - startOf(b));
    const chains = new Map<number, { at: number; operation: Operation }>();
    for (const n of timed) {
      const { from, line } = this.connections[n] as Connection;
      const chain = chains.get(from);
      let operation = chain?.operation;
      if (chain === undefined || operation === undefined || startOf(n) > chain.at) {
        operation = graph.calculate(from, startOf(n) - (chain?.at ?? 0), { line });
        if (chain !== undefined) graph.requires(operation, chain.operation);
        chains.set(from, { at: startOf(n), operation });
      }
      graph.requires(sends[n] as Operation, operation);
    }
  }

  /** What the nth connection that a trigger starts waits for. */
  private firedBy(id: number, line: number, nth: number, fired: readonly Fired[]): readonly Fired[] {
    const trigger = this.triggers.get(id);
    if (trigger === undefined) throw this.error(line, `trigger ${id} is not described`);
    const { kind, count } = trigger;
    const what = `trigger ${id} (${kind}${kind === "barrier" ? ` of ${count}` : ""}) is fired by ${fired.length} connections`;
    if (fired.length === 0)
      throw this.error(line, `trigger ${id} is fired by no connection: what it starts would never start`);
    if (kind === "barrier" ? fired.length !== count : fired.length !== 1)
      throw this.error(
        trigger.line,
        kind === "multishot" ? `${what}: which of them is first is known only when it runs` : what,
        kind === "barrier"
          ? "its count must be theirs"
          : `write a ${kind === "multishot" ? "oneshot " : ""}trigger for each`,
      );
    if (kind === "multishot" && nth > 1)
      throw this.error(line, `trigger ${id} is fired once, and starts the first of its connections only`);
    return fired;
  }

  private at(line: number): string {
    return `${this.file}:${line}`;
  }

  private error(line: number, problem: string, hint?: string): WeirError {
    return new WeirError(`${this.at(line)}: ${problem}`, { hint });
  }
}
