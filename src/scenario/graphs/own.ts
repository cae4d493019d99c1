/** Our own form of small graphs: YAML that a person writes. */
import { z } from "zod";
import { type Problem, ScenarioError, WeirError } from "../../base/error.js";
import { field, integer, problemsOf, section, showValue, size, time } from "../../base/fields.js";
import { readScenarioFile, type ScenarioFile } from "../../base/yaml.js";
import { checkExpanded, type ExpandCollective, leastOperations } from "./expand.js";
import {
  GraphBuilder,
  kAny,
  kMostBytes,
  kMostNanoseconds,
  kMostRanks,
  type MessageGraph,
  type Operation,
} from "./graph.js";
import { kCollectiveAlgorithms, kCollectiveOperations } from "./job_schema.js";

const kKind = "message graph";
const kMostTag = 0x7fff_ffff;

const rankOf = (description: string) =>
  z
    .int()
    .min(0)
    .max(kMostRanks - 1)
    .meta({ description });
const name = z.string().min(1).max(64);
const names = z
  .union([name, z.array(name)])
  .transform((written) => (typeof written === "string" ? [written] : written));
const orAny = <T extends z.ZodType>(schema: T, what: string) =>
  z.union([schema, z.literal("any")], { error: (issue) => `${showValue(issue.input)} is neither ${what} nor any` });

const common = {
  id: field(name, "Name by which others refer to it."),
  after: field(names, "Operations of the same rank that have to end before it starts: an id, or a list of them."),
  phase: field(name, "Name under which results count it."),
};
const started = field(names, "Operations of the same rank that have to start before it does.");

const bytes = (description: string) => size(description, { max: kMostBytes }).unwrap();

const kSchemas = {
  send: section({
    ...common,
    rank: rankOf("Rank that sends."),
    send: bytes("Length of the message."),
    to: rankOf("Rank that receives."),
    tag: integer("Receives match sends of the same tag.", 0, kMostTag, 0),
    after_start: started,
  }),
  receive: section({
    ...common,
    rank: rankOf("Rank that receives."),
    receive: bytes("Length of the message, at most."),
    from: orAny(rankOf("Rank that sends, or any."), "a rank"),
    tag: field(orAny(z.int().min(0).max(kMostTag), "a tag"), "Tag of the send, or any.", 0),
    after_start: started,
  }),
  calculate: section({
    ...common,
    rank: rankOf("Rank that calculates."),
    calculate: time("How long it takes.", { max: kMostNanoseconds }).unwrap(),
    processor: integer("Which of the rank's processors does: those of one do not overlap.", 0, 255, 0),
    after_start: started,
  }),
  collective: section({
    ...common,
    collective: z.enum(kCollectiveOperations),
    ranks: field(z.array(rankOf("A rank.")).min(1), "Ranks that take part, in order; by default all."),
    size: field(
      bytes("Bytes of the larger of a rank's buffers, as nccl-tests count."),
      "Bytes of the larger of a rank's buffers.",
    ),
    algorithm: z.enum(kCollectiveAlgorithms).optional().meta({ description: "How it is carried out." }),
    root: field(rankOf("A rank."), "Rank that broadcasts."),
  }),
} as const;
type Kind = keyof typeof kSchemas;
const kKinds = Object.keys(kSchemas) as Kind[];

const fileSchema = section({
  ranks: z.int().min(1).max(kMostRanks).meta({ description: "Number of ranks." }),
  operations: z.array(z.unknown()).meta({ description: "Operations, in any order." }),
});

type Entry = { [K in Kind]: z.output<(typeof kSchemas)[K]> & { kind: K } }[Kind];

/**
 * Reads a graph of our own form; `expand` carries out its collectives. @throws ScenarioError with everything that is wrong, by line
 * and column. @param text Text of the file, where it was read already.
 */
export function readOwnGraph(file: string, expand: ExpandCollective, text?: string): MessageGraph {
  const source = readScenarioFile(file, [], kKind, text);
  const parsed = fileSchema.safeParse(source.data);
  if (!parsed.success) throw rejected(file, source, problemsOf(parsed.error, source.data));
  const problems: Problem[] = [];
  const entries = parsed.data.operations.map((written, i) => parseEntry(written, i, problems));
  if (problems.length > 0) throw rejected(file, source, problems);
  return new OwnGraph(file, source, parsed.data.ranks, entries as Entry[]).build(expand);
}

const rejected = (file: string, source: ScenarioFile, problems: readonly Problem[]) =>
  new ScenarioError(file, problems.map(source.locate), kKind);

function parseEntry(written: unknown, i: number, problems: Problem[]): Entry | undefined {
  const path = ["operations", i];
  if (typeof written !== "object" || written === null || Array.isArray(written)) {
    problems.push({ path, message: `expected a mapping, not ${showValue(written)}` });
    return undefined;
  }
  const kinds = kKinds.filter((kind) => Object.hasOwn(written, kind));
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) {
    const found = kind === undefined ? "none" : kinds.join(" and ");
    problems.push({ path, message: `needs one of ${kKinds.join(", ")}, and has ${found}` });
    return undefined;
  }
  const parsed = kSchemas[kind].safeParse(written);
  if (parsed.success) return { ...parsed.data, kind } as Entry;
  for (const problem of problemsOf(parsed.error, written))
    problems.push({ ...problem, path: [...path, ...problem.path] });
  return undefined;
}

/** Operations of an entry by rank: one, or the end of each rank's part of a collective. */
type Ends = ReadonlyMap<number, Operation>;

class OwnGraph {
  private readonly graph: GraphBuilder;
  private readonly problems: Problem[] = [];

  constructor(
    private readonly file: string,
    private readonly source: ScenarioFile,
    private readonly ranks: number,
    private readonly entries: readonly Entry[],
  ) {
    this.graph = new GraphBuilder(file, ranks);
  }

  build(expand: ExpandCollective): MessageGraph {
    for (const [i, entry] of this.entries.entries()) this.checkRanks(entry, i);
    this.throwProblems();
    this.checkSize();
    const ends = new Map<string, Ends>();
    const begins = this.entries.map((entry, i) => {
      this.graph.enterPhase(entry.phase ?? "");
      const [begin, end] = entry.kind === "collective" ? this.addCollective(entry, i, expand) : this.addOne(entry, i);
      if (entry.id !== undefined) {
        if (ends.has(entry.id)) this.problem([i, "id"], `${showValue(entry.id)} is there twice`);
        ends.set(entry.id, end);
      }
      return begin;
    });
    for (const [i, entry] of this.entries.entries()) {
      this.addDependencies(begins[i] as Ends, entry.after, [i, "after"], ends, false);
      if (entry.kind !== "collective")
        this.addDependencies(begins[i] as Ends, entry.after_start, [i, "after_start"], ends, true);
    }
    this.throwProblems();
    return this.graph.build();
  }

  /** Before anything is made. */
  private checkSize(): void {
    let operations = 0;
    for (const entry of this.entries) {
      if (entry.kind !== "collective") operations++;
      else {
        const { collective: operation, ranks = { length: this.ranks }, size: bytes = 0, algorithm } = entry;
        operations += leastOperations({ operation, ranks, bytes, ...(algorithm && { algorithm }) });
      }
      checkExpanded(this.graph, operations);
    }
  }

  private checkRanks(entry: Entry, i: number): void {
    const check = (name: string, rank: number | "any" | undefined, at: (string | number)[] = []) => {
      if (typeof rank === "number" && rank >= this.ranks)
        this.problem([i, name, ...at], `${rank} is no rank`, `ranks are from 0 to ${this.ranks - 1}`);
    };
    if (entry.kind === "collective") {
      const { ranks = [], root } = entry;
      for (const [n, rank] of ranks.entries()) check("ranks", rank, [n]);
      if (new Set(ranks).size < ranks.length) this.problem([i, "ranks"], "a rank is there twice");
      if (root !== undefined && entry.ranks !== undefined && !ranks.includes(root))
        this.problem([i, "root"], `${root} is none of the ranks`);
      else check("root", root);
      if (entry.size === undefined && entry.collective !== "barrier") this.problem([i, "size"], "is missing");
      return;
    }
    check("rank", entry.rank);
    if (entry.kind === "send") check("to", entry.to);
    if (entry.kind === "receive") check("from", entry.from);
  }

  /** Returns what waits for others, and what others wait for. */
  private addOne(entry: Exclude<Entry, { kind: "collective" }>, i: number): [Ends, Ends] {
    const line = this.lineOf(i);
    const { graph } = this;
    const { rank } = entry;
    let operation: Operation;
    if (entry.kind === "send") operation = graph.send(rank, entry.to, entry.send, entry.tag ?? 0, { line });
    else if (entry.kind === "receive") {
      const from = entry.from === "any" ? kAny : entry.from;
      const tag = entry.tag === "any" ? kAny : (entry.tag ?? 0);
      operation = graph.receive(rank, from, entry.receive, tag, { line });
    } else operation = graph.calculate(rank, entry.calculate, { line, processor: entry.processor ?? 0 });
    const ends = new Map([[rank, operation]]);
    return [ends, ends];
  }

  private addCollective(entry: Entry & { kind: "collective" }, i: number, expand: ExpandCollective): [Ends, Ends] {
    const line = this.lineOf(i);
    const ranks = entry.ranks ?? Array.from({ length: this.ranks }, (_, rank) => rank);
    checkExpanded(this.graph, 2 * ranks.length);
    const waits = (entry.after ?? []).length > 0;
    const begins = ranks.map((rank) => (waits ? this.graph.calculate(rank, 0, { line }) : undefined));
    const { collective: operation, size: bytes = 0, algorithm, root } = entry;
    const request = {
      operation,
      ranks,
      bytes,
      ...(algorithm === undefined ? {} : { algorithm }),
      ...(root === undefined ? {} : { root: ranks.indexOf(root) }),
    };
    let ends: Operation[] = [];
    try {
      ends = expand(this.graph, request, begins);
    } catch (error) {
      if (!(error instanceof WeirError)) throw error;
      this.problem([i], error.message, error.hint);
    }
    const byRank = (operations: readonly (Operation | undefined)[]) =>
      new Map(ranks.flatMap((rank, n) => (operations[n] === undefined ? [] : [[rank, operations[n]] as const])));
    return [byRank(begins), byRank(ends)];
  }

  private addDependencies(
    begins: Ends,
    ids: readonly string[] | undefined,
    at: [number, string],
    ends: ReadonlyMap<string, Ends>,
    startOnly: boolean,
  ): void {
    // An id that is there several times says nothing more.
    for (const id of new Set(ids)) {
      const awaited = ends.get(id);
      if (awaited === undefined) {
        this.problem(at, `no operation has the id ${showValue(id)}`);
        continue;
      }
      const shared = [...begins].filter(([rank]) => awaited.has(rank));
      checkExpanded(this.graph, 0, shared.length);
      if (shared.length === 0) this.problem(at, `${showValue(id)} is of another rank`, "let a message go between them");
      for (const [rank, operation] of shared) {
        const earlier = awaited.get(rank) as Operation;
        if (startOnly) this.graph.irequires(operation, earlier);
        else this.graph.requires(operation, earlier);
      }
    }
  }

  private lineOf(i: number): number {
    return this.source.locate({ path: ["operations", i], message: "" }).line ?? 0;
  }

  private problem(path: (string | number)[], message: string, hint?: string): void {
    const problem: Problem = { path: ["operations", ...path], message };
    this.problems.push(hint === undefined ? problem : { ...problem, hint });
  }

  private throwProblems(): void {
    if (this.problems.length > 0) throw rejected(this.file, this.source, this.problems);
  }
}
