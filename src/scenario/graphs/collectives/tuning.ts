/**
 * The choice of an algorithm as NCCL 2.30 makes it: src/graph/tuning.cc, ncclTopoTuneModel() and ncclTopoGetAlgoTime(), for ring,
 * tree and PAT. Its constants are for GPUs of the Hopper generation and Intel processors. Assumed of what NCCL finds out on the
 * machine: each rank has a NIC of its own with two channels, ranks of a node are joined by 18 NVLinks, one operation at a time.
 */
import { algorithmsOf } from "./add.js";
import { kProtocols, type Protocol } from "./protocols.js";
import type { CollectiveAlgorithm, CollectiveOperation } from "./request.js";
import type { TunerRule } from "./tuner_csv.js";

export interface TuningCase {
  ranks: number;
  /** Ranks of a node; divides all. */
  perNode: number;
  /** As CollectiveRequest's. */
  bytes: number;
  /** Of a NIC, bit/s. */
  rate: number;
  /** Rules of readTunerCsv(): the first that fits decides. */
  rules?: readonly TunerRule[];
}

export interface Choice {
  algorithm: CollectiveAlgorithm;
  /** Undefined where NCCL has no choice: all-to-all, barrier, one rank. */
  protocol?: Protocol;
  /** What the model says, microseconds; 0 by a rule, as NCCL's example plugin puts it. */
  time?: number;
  /** Number of channels that a rule wants. */
  channels?: number;
}

const kAlgorithms = ["tree", "ring", "pat"] as const;
type Tuned = (typeof kAlgorithms)[number];
type PerProtocol = Readonly<Record<Protocol, number>>;

const perProtocol = (ll: number, ll128: number, simple: number): PerProtocol => ({ ll, ll128, simple });

/** baseLatencies, microseconds. */
const kBase: Record<Tuned, PerProtocol> = {
  tree: perProtocol(6.8, 14, 8.4),
  ring: perProtocol(6.6, 14, 8.4),
  pat: perProtocol(8, 8, 8),
};
/** hwLatencies of NVLink and of the network, microseconds. */
const kInside: Record<Tuned, PerProtocol> = {
  tree: perProtocol(0.6, 1.25, 4),
  ring: perProtocol(0.6, 1.9, 3.4),
  pat: perProtocol(0, 0, 4),
};
const kNetwork: Record<Tuned, PerProtocol> = {
  tree: perProtocol(5, 8.5, 14),
  ring: perProtocol(2.7, 4, 14),
  pat: perProtocol(0, 0, 14),
};
/** Limits in GB/s for one node, two, and more: llMaxBws of the GPU, then of the processor; others are of a channel. */
const kMostLl = [141, 39, 20.4] as const;
const kMostRingLl128 = [36.7, 36.7, 36.7] as const;
const kMostTreeLl128 = [36.7, 36.7, 29] as const;
const kMostTree = [38.7, 41.4, 36] as const;
/** treeCorrectionFactor: for each power of two from 64 bytes; NCCL's last column is not used for trees. */
const kTreeCorrection: Record<Protocol, readonly number[]> = {
  ll: [1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
  ll128: [1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9],
  simple: [
    0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9,
  ],
};
/** getNetOverhead() of an Intel processor, microseconds. */
const kNetworkOverhead = 1;
/** SM90_NVLINK_BW in src/graph/topo.h, GB/s, and how many a GPU has. */
const kNvlink = 20.6;
const kNvlinks = 18;
const kChannelsOfNic = 2;

/** The algorithm that NCCL would take, or the first rule that fits. */
export function chooseAlgorithm(operation: CollectiveOperation, tuning: TuningCase): Choice {
  const [first] = algorithmsOf(operation) as [CollectiveAlgorithm];
  if (operation === "alltoall" || operation === "barrier" || tuning.ranks === 1) return { algorithm: first };
  let best: (Choice & { time: number }) | undefined;
  for (const algorithm of kAlgorithms) {
    for (const protocol of kProtocols) {
      const time = modelTime(operation, algorithm, protocol, tuning);
      if (time !== undefined && (best === undefined || time < best.time)) best = { algorithm, protocol, time };
    }
  }
  const rule = tuning.rules?.find((candidate) => ruleFits(candidate, operation, tuning));
  if (rule === undefined) return best ?? { algorithm: first };
  const { algorithm, protocol, channels } = rule;
  return { algorithm: algorithm as Tuned, protocol, time: 0, ...(channels === undefined ? {} : { channels }) };
}

/** As pluginGetCollInfo() of NCCL's plugins/tuner/example: a rule that asks for what is not possible is passed over. */
function ruleFits(rule: TunerRule, operation: CollectiveOperation, tuning: TuningCase): boolean {
  const { ranks, perNode, bytes } = tuning;
  return (
    rule.operation === operation &&
    bytes >= rule.least &&
    bytes <= rule.most &&
    (rule.nodes ?? ranks / perNode) === ranks / perNode &&
    (rule.ranks ?? ranks) === ranks &&
    kAlgorithms.some((algorithm) => algorithm === rule.algorithm) &&
    modelTime(operation, rule.algorithm as Tuned, rule.protocol, tuning) !== undefined
  );
}

/** Microseconds; undefined for a combination that NCCL does not use. */
export function modelTime(
  operation: CollectiveOperation,
  algorithm: Tuned,
  protocol: Protocol,
  tuning: TuningCase,
): number | undefined {
  const { ranks, perNode, bytes } = tuning;
  const scatters = operation === "allgather" || operation === "reducescatter";
  if (algorithm === "tree" && operation !== "allreduce") return undefined;
  if (algorithm === "pat" && (!scatters || protocol !== "simple" || perNode > 1)) return undefined;
  const steps = operation === "allreduce" ? 2 * (ranks - 1) : scatters ? ranks - 1 : ranks;
  let bandwidth = busBandwidth(algorithm, protocol, tuning);
  if (algorithm === "ring") bandwidth *= ranks / steps;
  else if (!scatters) bandwidth *= 0.5;
  if (algorithm === "tree") bandwidth *= kTreeCorrection[protocol][Math.floor(Math.log2(bytes / 64))] ?? 1;
  let latency = kBase[algorithm][protocol] + stepLatency(operation, algorithm, protocol, tuning, steps);
  const { channels } = linksOf(tuning);
  // NCCL doubles the channels of its search, and has a plateau of rings across nodes.
  const plateau = operation === "allreduce" && algorithm === "ring" && protocol === "simple" && ranks > perNode;
  if (plateau && Math.floor(bytes / (2 * channels * ranks)) >= 64) latency *= 1.4;
  return latency + bytes / (1_000 * bandwidth);
}

/** Channels of a node, and GB/s of each. */
function linksOf({ ranks, perNode, rate }: TuningCase) {
  if (ranks === perNode) return { channels: kNvlinks, bandwidth: kNvlink };
  return { channels: kChannelsOfNic * perNode, bandwidth: rate / 8e9 / kChannelsOfNic };
}

/** GB/s. */
function busBandwidth(algorithm: Tuned, protocol: Protocol, tuning: TuningCase): number {
  const { channels, bandwidth } = linksOf(tuning);
  const nodes = tuning.ranks / tuning.perNode;
  const scale = Math.min(nodes, 3) - 1;
  const most = (limits: readonly number[]) => limits[scale] as number;
  const all = channels * bandwidth;
  if (algorithm === "pat") return all * 0.75;
  if (algorithm === "ring") {
    if (protocol === "ll") return Math.min(most(kMostLl), all * 0.5);
    return protocol === "ll128" ? Math.min(all * 0.92, channels * most(kMostRingLl128)) : all;
  }
  let tree = Math.min(all * 0.92, channels * most(kMostTree));
  if (protocol === "ll") tree = Math.min(tree / 3.8, most(kMostLl));
  if (protocol === "ll128") tree = Math.min(tree * (nodes === 1 ? 7 / 9 : 120 / 128), channels * most(kMostTreeLl128));
  // Nodes of one GPU have simple trees instead of balanced ones (src/graph/search.cc).
  return tuning.perNode === 1 ? tree * 0.85 : tree;
}

/** Microseconds of all steps. */
function stepLatency(
  operation: CollectiveOperation,
  algorithm: Tuned,
  protocol: Protocol,
  { ranks, perNode }: TuningCase,
  steps: number,
): number {
  const nodes = ranks / perNode;
  const inside = kInside[algorithm][protocol];
  // With one rank in a node latencies are fully exposed, and NCCL takes those of trees.
  const across = kNetwork[perNode === 1 ? "tree" : algorithm][protocol];
  const levels = Math.floor(Math.log2(nodes));
  if (algorithm === "tree") return 2 * ((perNode - 1) * inside + levels * across);
  if (algorithm === "pat") return levels * (across / 3.5) + ranks * 2.8;
  if (operation === "broadcast") return (nodes === 1 ? kInside : kNetwork).ring[protocol];
  const overhead = nodes === 1 ? 0 : kNetworkOverhead * (protocol === "simple" ? 3 : 1);
  const stepsAcross = nodes === 1 ? 0 : (operation === "allreduce" ? 2 : 1) * (nodes - 1);
  return (steps - stepsAcross) * Math.max(inside, overhead) + stepsAcross * across;
}
