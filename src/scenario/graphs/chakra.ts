/**
 * Chakra execution traces (Sridharan et al., "Chakra: Advancing Performance Benchmarking and Co-design using Standardized Execution
 * Traces", 2023), as ASTRA-sim runs them: calculations take their duration, and collectives are carried out by all ranks of their
 * communicator. A trace is a file NAME.R.et for each rank R.
 */
import { readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileReason, UnreadableFile, WeirError } from "../../base/error.js";
import { type ChakraNode, NodeType, readChakraFile } from "./chakra_file.js";
import { addGroupsOf, type Groups, readGroupFile } from "./chakra_groups.js";
import type { CollectiveOperation } from "./collectives/request.js";
import { checkExpanded, type ExpandCollective, leastOperations } from "./expand.js";
import { GraphBuilder, type MessageGraph, type Operation } from "./graph.js";

/** CollectiveCommType of the schema. Those without an operation are of one rank's data, and refused. */
const kCollectives: readonly { name: string; operation?: CollectiveOperation }[] = [
  { name: "ALL_REDUCE", operation: "allreduce" },
  { name: "REDUCE" },
  { name: "ALL_GATHER", operation: "allgather" },
  { name: "GATHER" },
  { name: "SCATTER" },
  { name: "BROADCAST", operation: "broadcast" },
  { name: "ALL_TO_ALL", operation: "alltoall" },
  { name: "REDUCE_SCATTER", operation: "reducescatter" },
  { name: "REDUCE_SCATTER_BLOCK", operation: "reducescatter" },
  { name: "BARRIER", operation: "barrier" },
];

/** Types that take their duration; of collectives, those that isLaunch() knows. */
const kCalculate: ReadonlySet<number> = new Set([
  NodeType.calculation,
  NodeType.memoryLoad,
  NodeType.memoryStore,
  NodeType.collective,
]);

const kGpu = 0;
const kCpu = 1;

/**
 * Reads the trace of which `file` is one rank's; `expand` carries out its collectives. Process groups come from METADATA nodes, and
 * from NAME.json where it is. Says in `notes` what was left out. @throws WeirError with file, rank and node.
 */
export function readChakra(file: string, expand: ExpandCollective, notes: string[] = []): MessageGraph {
  const { files, name } = filesOf(file);
  const graph = new GraphBuilder(`${name}.*.et`, files.length);
  const everybody = [...files.keys()];
  const groups = readGroupFile(`${name}.json`, everybody);
  const trace = new Trace(graph, files, everybody, groups);
  for (const rank of files.keys()) trace.readRank(rank);
  trace.addCollectives(expand);
  trace.addDependencies();
  if (trace.withoutDuration > 0)
    notes.push(
      `${trace.withoutDuration} calculations have no duration, and take no time: how much they calculate is left out`,
    );
  if (trace.own > 0)
    notes.push(`${trace.own} dependencies of nodes on themselves are left out: they change in place what they read`);
  if (trace.absent > 0) notes.push(`${trace.absent} dependencies on nodes that the trace does not have are left out`);
  return graph.build();
}

/** All files of the trace, by rank. */
function filesOf(file: string): { files: string[]; name: string } {
  const [, name] = /^(.*)\.\d+\.et$/s.exec(basename(file)) ?? [];
  if (name === undefined)
    throw new WeirError(`${file}: files of a Chakra trace are called NAME.0.et, NAME.1.et and so on, for each rank`);
  const folder = dirname(file);
  let entries: string[];
  try {
    entries = readdirSync(folder);
  } catch (error) {
    throw new UnreadableFile(`${folder}: ${fileReason(error) ?? (error as Error).message}`, {
      field: "file",
      cause: error,
    });
  }
  const present = new Set(
    entries.filter((entry) => entry.startsWith(`${name}.`) && /^\d+\.et$/.test(entry.slice(name.length + 1))),
  );
  const files: string[] = [];
  while (present.delete(`${name}.${files.length}.et`)) files.push(join(folder, `${name}.${files.length}.et`));
  const [other] = present;
  if (other !== undefined || files.length === 0)
    throw new WeirError(
      `${join(folder, other ?? basename(file))}: there is no ${name}.${files.length}.et: a trace has a file for each rank`,
    );
  return { files, name: join(folder, name) };
}

/** One rank's part of a collective, in the order of its file. */
interface Call {
  node: ChakraNode;
  /** What waits, and what is waited for, among operations of the rank. */
  begin: Operation | undefined;
  entry: Entry;
  kind: (typeof kCollectives)[number];
  bytes: number;
  root: number;
}

interface Communicator {
  name: string;
  ranks: readonly number[];
  /** By rank, of those that have any. */
  calls: Map<number, Call[]>;
}

/** What became of a node. */
interface Entry {
  begin: Operation | undefined;
  end: Operation;
  dependencies: readonly number[];
}

class Trace {
  withoutDuration = 0;
  absent = 0;
  own = 0;
  /** For each rank its nodes by id. */
  private readonly nodes: Map<number, Entry>[] = [];
  private readonly communicators = new Map<string, Communicator>();

  constructor(
    private readonly graph: GraphBuilder,
    private readonly files: readonly string[],
    private readonly everybody: readonly number[],
    private readonly groups: Groups,
  ) {}

  readRank(rank: number): void {
    const file = this.files[rank] as string;
    const entries = new Map<number, Entry>();
    const groups: Groups = new Map(this.groups);
    const known = new Map<string, Communicator>();
    this.nodes.push(entries);
    readChakraFile(file, (node) => {
      if (entries.has(node.id)) throw this.error(rank, node, "there is another node of this id");
      if (node.type === NodeType.metadata) addGroupsOf(node, groups, this.everybody, file);
      if (node.type === NodeType.collective && !isLaunch(node)) {
        entries.set(node.id, this.addCall(rank, node, groups, known));
        return;
      }
      const operation = this.addOperation(rank, node);
      entries.set(node.id, { begin: operation, end: operation, dependencies: node.dependencies });
    });
  }

  private addOperation(rank: number, node: ChakraNode): Operation {
    const { type, durationMicroseconds } = node;
    const number = (name: string, fallback?: number) => this.number(rank, node, name, fallback);
    if (type === NodeType.send || type === NodeType.receive) {
      const from = number("comm_src", type === NodeType.send ? rank : undefined);
      const to = number("comm_dst", type === NodeType.receive ? rank : undefined);
      if ((type === NodeType.send ? from : to) !== rank)
        throw this.error(rank, node, `a message of rank ${from} to ${to} stands in the file of rank ${rank}`);
      const tag = number("comm_tag", 0);
      const bytes = number("comm_size");
      if (type === NodeType.send) return this.named(rank, node, () => this.graph.send(rank, to, bytes, tag));
      return this.named(rank, node, () => this.graph.receive(rank, from, bytes, tag));
    }
    const calculates = kCalculate.has(type);
    if (!calculates && type !== NodeType.invalid && type !== NodeType.metadata)
      throw this.error(rank, node, `type ${type} is unknown`);
    if (type === NodeType.calculation && durationMicroseconds === 0) this.withoutDuration++;
    const processor = isOfCpu(node) ? kCpu : kGpu;
    const ns = calculates ? durationMicroseconds * 1000 : 0;
    return this.named(rank, node, () => this.graph.calculate(rank, ns, { processor }));
  }

  private addCall(rank: number, node: ChakraNode, groups: Groups, known: Map<string, Communicator>): Entry {
    const type = this.number(rank, node, "comm_type");
    const kind = kCollectives[type];
    if (kind === undefined) throw this.error(rank, node, `comm_type ${type} is unknown`);
    if (kind.operation === undefined)
      throw this.error(
        rank,
        node,
        `collectives of kind ${kind.name} are not read`,
        "those of all ranks' data, and BROADCAST, are",
      );
    const bytes = this.number(rank, node, "comm_size", kind.operation === "barrier" ? 0 : undefined);
    const communicator = this.communicatorOf(rank, node, groups, known);
    // The part of a rank begins when all that its node waits for has ended.
    const begin = node.dependencies.length === 0 ? undefined : this.graph.calculate(rank, 0);
    const entry: Entry = { begin, end: 0, dependencies: node.dependencies };
    const root = this.number(rank, node, "root_rank", communicator.ranks[0]);
    const call = { node, begin, entry, kind, bytes, root };
    const before = communicator.calls.get(rank);
    if (before === undefined) communicator.calls.set(rank, [call]);
    else before.push(call);
    return entry;
  }

  private communicatorOf(
    rank: number,
    node: ChakraNode,
    groups: Groups,
    known: Map<string, Communicator>,
  ): Communicator {
    const name = String(node.attributes.get("pg_name") ?? node.attributes.get("comm_group") ?? "");
    const before = known.get(name);
    if (before !== undefined) return before;
    const isAll = name === "" || name === "0";
    const ranks = groups.get(name) ?? (isAll ? this.everybody : undefined);
    if (ranks === undefined)
      throw this.error(
        rank,
        node,
        `no ranks are known of communicator ${name}`,
        'list them beside the trace, in NAME.json: {"1": [0, 1]}',
      );
    if (!ranks.includes(rank)) throw this.error(rank, node, `rank ${rank} is none of communicator ${name}`);
    // Names are those of a rank: others may have others of the same name.
    const isWorld = ranks === this.everybody;
    const key = isWorld && isAll ? "" : `${name}:${isWorld ? "all" : ranks.join()}`;
    const communicator = this.communicators.get(key) ?? { name, ranks, calls: new Map() };
    this.communicators.set(key, communicator);
    known.set(name, communicator);
    return communicator;
  }

  /** The nth call of a communicator by each of its ranks is one collective. */
  addCollectives(expand: ExpandCollective): void {
    this.checkSize();
    for (const { name, ranks, calls } of this.communicators.values()) {
      const [mostRank, most] = [...calls].reduce((longest, of) => (of[1].length > longest[1].length ? of : longest));
      for (let n = 0; n < most.length; n++) {
        const first = most[n] as Call;
        checkExpanded(this.graph, ranks.length);
        const called = ranks.map((rank) => {
          const of = calls.get(rank) ?? [];
          const call = of[n];
          if (call === undefined)
            throw this.error(
              mostRank,
              first.node,
              `rank ${rank} takes no part: it calls communicator "${name}" ${of.length} times, rank ${mostRank} ${most.length}`,
            );
          if (call.kind.operation !== first.kind.operation || call.bytes !== first.bytes || call.root !== first.root)
            throw this.error(
              mostRank,
              first.node,
              `${first.kind.name} of ${first.bytes} bytes is call ${n} of communicator "${name}", but for rank ${rank} that is ` +
                `node ${call.node.id}, ${call.kind.name} of ${call.bytes} bytes, or it names another root`,
            );
          return call;
        });
        const ends = this.named(mostRank, first.node, () =>
          expand(
            this.graph,
            {
              operation: first.kind.operation as CollectiveOperation,
              ranks,
              // Chakra counts what a rank brings, nccl-tests the larger of its buffers.
              bytes: first.kind.operation === "allgather" ? first.bytes * ranks.length : first.bytes,
              ...(first.kind.operation === "broadcast" ? { root: ranks.indexOf(first.root) } : {}),
            },
            called.map(({ begin }) => begin),
          ),
        );
        for (const [place, call] of called.entries()) call.entry.end = ends[place] as Operation;
      }
    }
  }

  /** Before any collective is made. */
  private checkSize(): void {
    let operations = 0;
    for (const { ranks, calls } of this.communicators.values()) {
      for (const { kind, bytes } of calls.values().next().value ?? []) {
        operations += leastOperations({ operation: kind.operation as CollectiveOperation, ranks, bytes });
        checkExpanded(this.graph, operations);
      }
    }
  }

  addDependencies(): void {
    for (const entries of this.nodes) {
      for (const [id, { begin, dependencies }] of entries) {
        for (const dependency of dependencies) {
          const earlier = entries.get(dependency);
          if (dependency === id) this.own++;
          else if (earlier === undefined) this.absent++;
          else this.graph.requires(begin as Operation, earlier.end);
        }
      }
    }
  }

  private number(rank: number, node: ChakraNode, name: string, fallback?: number): number {
    const value = node.attributes.get(name) ?? fallback;
    if (value === undefined) throw this.error(rank, node, `${name} is missing`);
    if (!Number.isInteger(value) || (value as number) < 0)
      throw this.error(rank, node, `${name}: ${value} is no whole number`);
    return value as number;
  }

  /** Errors of `action` with the node. */
  private named<T>(rank: number, node: ChakraNode, action: () => T): T {
    try {
      return action();
    } catch (error) {
      if (!(error instanceof WeirError)) throw error;
      throw this.error(rank, node, error.message, error.hint);
    }
  }

  private error(rank: number, node: ChakraNode, problem: string, hint?: string): WeirError {
    const name = node.name.replace(/[^\x20-\x7e]/g, "?").slice(0, 60);
    return new WeirError(`${this.files[rank]}: node ${node.id} (${name}): ${problem}`, { hint });
  }
}

const isOfCpu = ({ attributes }: ChakraNode): boolean => Boolean(attributes.get("is_cpu_op"));

/** PyTorch's call that starts a collective is a node of that type as well, beside the kernel, and is no more than its duration. */
const isLaunch = (node: ChakraNode): boolean => isOfCpu(node) && !node.attributes.has("comm_type");
