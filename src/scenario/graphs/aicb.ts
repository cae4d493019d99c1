/**
 * Workloads of AICB, as SimAI runs them (Workload.cc, iterate_hybrid_parallel_Transformer_fwd_in_bckwd; groups of MockNcclGroup.cc;
 * Wang et al., "SimAI", NSDI 2025): one iteration. All layers go forward, and then backward from the last. A layer waits for its
 * forward and input-gradient collectives; those of weight gradients go on beside, and the iteration ends with them. Times are ns:
 * SimAI's CLOCK_PERIOD is 1. Bytes are those of the larger buffer: its all-gather divides them by the ranks.
 */
import { WeirError } from "../../base/error.js";
import { type AicbWorkload, type GroupKind, kPhases, type Layer, type Phase, parseAicb } from "./aicb_file.js";
import { checkExpanded, type ExpandCollective, joined, leastOperations } from "./expand.js";
import { GraphBuilder, type MessageGraph, type Operation } from "./graph.js";
import { readSourceText } from "./source_text.js";

/** SimAI makes smaller messages of the forward pass as large, if they have any bytes. */
const kLeastForward = 4096;

export interface AicbOptions {
  /** Number of ranks, where the header has no all_gpus. */
  ranks?: number | undefined;
}

/**
 * Reads a workload; `expand` carries out its collectives. Says in `notes` what was left out. @throws WeirError with file and line.
 * @param text Text of the file, where it was read already.
 */
export function readAicb(
  file: string,
  expand: ExpandCollective,
  options: AicbOptions = {},
  text = readSourceText(file),
  notes: string[] = [],
): MessageGraph {
  const workload = parseAicb(file, text);
  const ranks = ranksOf(file, workload, options.ranks);
  const iteration = new Iteration(file, workload, ranks, expand);
  iteration.checkSize();
  if (workload.policy === "MICRO") iteration.addMicroBenchmark();
  else iteration.addTraining();
  notes.push(...workload.left);
  return iteration.graph.build();
}

function ranksOf(file: string, { gpus, tensor, expert }: AicbWorkload, option: number | undefined): number {
  if (gpus !== undefined && option !== undefined && gpus !== option)
    throw new WeirError(`${file}: all_gpus: ${gpus} is not the number of ranks that is asked for, ${option}`);
  const ranks = gpus ?? option;
  if (ranks === undefined)
    throw new WeirError(`${file}: the header has no all_gpus`, { hint: "say how many ranks there are" });
  if (ranks < 1 || ranks % (tensor * expert) !== 0)
    throw new WeirError(
      `${file}: ${ranks} ranks are no multiple of model_parallel_NPU_group: ${tensor} times ep: ${expert}`,
    );
  return ranks;
}

class Iteration {
  readonly graph: GraphBuilder;
  /** What each rank has done last; nothing at first. */
  private last: (Operation | undefined)[];
  private readonly groups = new Map<GroupKind, number[][]>();

  constructor(
    file: string,
    private readonly workload: AicbWorkload,
    private readonly ranks: number,
    private readonly expand: ExpandCollective,
  ) {
    this.graph = new GraphBuilder(file, ranks);
    this.last = Array.from({ length: ranks }, () => undefined);
  }

  /** Before anything is made. */
  checkSize(): void {
    const { layers, policy } = this.workload;
    let operations = 0;
    for (const layer of layers) {
      for (const phase of policy === "MICRO" ? (["weightGradient"] as const) : kPhases) {
        const { calculation, collective } = layer.phases[phase];
        if (calculation > 0) operations += this.ranks;
        if (collective === undefined) continue;
        const [size] = this.shapeOf(collective.group);
        const one = { ...collective, ranks: { length: size } };
        if (size > 1) operations += (this.ranks / size) * leastOperations(one);
      }
      checkExpanded(this.graph, operations);
    }
  }

  addTraining(): void {
    const { layers } = this.workload;
    this.graph.enterPhase("forward");
    for (const layer of layers) this.addBlocking(layer, "forward");
    const beside: Operation[][] = [];
    for (const layer of layers.toReversed()) {
      this.graph.enterPhase("input gradient");
      this.addBlocking(layer, "inputGradient");
      this.graph.enterPhase("weight gradient");
      this.addCalculation(layer, layer.phases.weightGradient.calculation);
      const ends = this.addCollective(layer, "weightGradient", this.last);
      if (ends !== undefined) beside.push(this.addUpdate(layer, ends));
    }
    this.graph.enterPhase("");
    this.joinAll(beside);
  }

  addMicroBenchmark(): void {
    for (const layer of this.workload.layers) this.addBlocking(layer, "weightGradient");
  }

  /** The layer goes on when its collective has ended. */
  private addBlocking(layer: Layer, phase: Phase): void {
    this.addCalculation(layer, layer.phases[phase].calculation);
    const ends = this.addCollective(layer, phase, this.last);
    if (ends === undefined) return;
    this.last = ends;
    this.addCalculation(layer, layer.update);
  }

  private addCalculation({ line }: Layer, ns: number): void {
    if (ns === 0) return;
    checkExpanded(this.graph, this.ranks);
    this.last = this.last.map((before, rank) => {
      const operation = this.graph.calculate(rank, ns, { line });
      if (before !== undefined) this.graph.requires(operation, before);
      return operation;
    });
  }

  /** Updates of weights do not hold up what the rank calculates meanwhile: SimAI counts them as a delay. */
  private addUpdate({ line, update }: Layer, ends: readonly Operation[]): Operation[] {
    if (update === 0) return [...ends];
    return ends.map((end, rank) => {
      const operation = this.graph.calculate(rank, update, { line, processor: kUpdates });
      this.graph.requires(operation, end);
      return operation;
    });
  }

  /** Returns with what it ends at each rank; undefined if there is none, or nobody to talk to. */
  private addCollective(
    layer: Layer,
    phase: Phase,
    after: readonly (Operation | undefined)[],
  ): Operation[] | undefined {
    const { collective } = layer.phases[phase];
    if (collective === undefined) return undefined;
    const { operation, group } = collective;
    const groups = this.groupsOf(group);
    if (groups[0]?.length === 1) return undefined;
    const bytes = phase === "forward" ? Math.max(collective.bytes, kLeastForward) : collective.bytes;
    const ends: Operation[] = [];
    for (const ranks of groups) {
      checkExpanded(this.graph, ranks.length);
      const parts = this.expand(
        this.graph,
        { operation, ranks, bytes },
        ranks.map((rank) => after[rank]),
      );
      for (const [place, rank] of ranks.entries()) ends[rank] = parts[place] as Operation;
    }
    return ends;
  }

  /** All groups of a kind, which together have all ranks. */
  private groupsOf(kind: GroupKind): number[][] {
    const known = this.groups.get(kind);
    if (known !== undefined) return known;
    const [size, stride] = this.shapeOf(kind);
    const groups: number[][] = [];
    for (let block = 0; block < this.ranks; block += size * stride) {
      for (let first = block; first < block + stride; first++)
        groups.push(Array.from({ length: size }, (_, i) => first + i * stride));
    }
    this.groups.set(kind, groups);
    return groups;
  }

  /** Ranks of a group, and how far they are apart: they count tensor groups fastest, then experts, then data. */
  private shapeOf(kind: GroupKind): [size: number, stride: number] {
    const { tensor, expert } = this.workload;
    if (kind === "TP") return [tensor, 1];
    if (kind === "EP") return [expert, tensor];
    return kind === "DP" ? [this.ranks / tensor, tensor] : [this.ranks / (tensor * expert), tensor * expert];
  }

  private joinAll(beside: readonly Operation[][]): void {
    if (beside.length === 0) return;
    for (let rank = 0; rank < this.ranks; rank++) {
      const own = this.last[rank];
      const all = beside.map((ends) => ends[rank] as Operation);
      joined(this.graph, rank, own === undefined ? all : [own, ...all]);
    }
  }
}

/** Processor of updates, beside that of the layers. */
const kUpdates = 1;
