/** What is in a message graph, in numbers. */
import { kCalculate, kReceive, kSend, kStartOnly, type MessageGraph, type Operation } from "./graph.js";
import { kNone, partners } from "./match.js";
import { startOrder } from "./order.js";

export interface Share {
  operations: number;
  /** Of sends. */
  bytes: number;
  /** Of calculations, ns. */
  calculation: number;
}

export interface GraphSummary extends Share {
  ranks: number;
  sends: number;
  receives: number;
  calculations: number;
  dependencies: number;
  /** Most that one rank has, of each for itself, and the first rank that has it. */
  most: { [Name in keyof Share]: { rank: number; value: number } };
  /** Operations of the longest chain in which each waits for the one before, or receives what it sends. */
  depth: number;
  /** ns that the graph takes on a network that takes no time, with as many processors as can be used. */
  criticalCalculation: number;
  /** By phase, if there are any; operations of no phase have the name "". */
  phases: (Share & { name: string })[];
}

const nothing = (): Share => ({ operations: 0, bytes: 0, calculation: 0 });

/** Of a graph that checkGraph() has taken: operations that can never start have no part in depth and critical path. */
export function summarize(graph: MessageGraph): GraphSummary {
  const kinds = [0, 0, 0];
  const total = nothing();
  const phases = graph.phases.map((name) => ({ name, ...nothing() }));
  const most = { operations: first(), bytes: first(), calculation: first() };
  for (let rank = 0; rank < graph.ranks; rank++) {
    const own = nothing();
    for (let i = graph.first[rank] as number; i < (graph.first[rank + 1] as number); i++) {
      const kind = graph.kind[i] as number;
      kinds[kind] = (kinds[kind] as number) + 1;
      const phase = phases[graph.phase[i] as number] as Share;
      own.operations++;
      phase.operations++;
      const size = graph.size[i] as number;
      if (kind === kSend) {
        own.bytes += size;
        phase.bytes += size;
      } else if (kind === kCalculate) {
        own.calculation += size;
        phase.calculation += size;
      }
    }
    for (const name of ["operations", "bytes", "calculation"] as const) {
      total[name] += own[name];
      if (own[name] > most[name].value) most[name] = { rank, value: own[name] };
    }
  }
  return {
    ranks: graph.ranks,
    ...total,
    sends: kinds[kSend] as number,
    receives: kinds[kReceive] as number,
    calculations: kinds[kCalculate] as number,
    dependencies: graph.dependencies.length,
    most,
    ...longestChain(graph),
    phases: phases.length === 1 ? [] : phases.filter(({ operations }) => operations > 0),
  };
}

const first = () => ({ rank: 0, value: 0 });

function longestChain(graph: MessageGraph): Pick<GraphSummary, "depth" | "criticalCalculation"> {
  const partner = partners(graph);
  const { order } = startOrder(graph, partner);
  const start = new Float64Array(graph.kind.length);
  /** Operations of the longest chain up to each, itself included. */
  const level = new Uint32Array(graph.kind.length);
  const sendOf = (i: Operation) => (graph.kind[i] === kReceive ? (partner[i] as number) : kNone);
  const levelAtEnd = (i: Operation) => {
    const send = sendOf(i);
    return send === kNone ? (level[i] as number) : Math.max(level[i] as number, (level[send] as number) + 1);
  };
  const endOf = (i: Operation) => {
    if (graph.kind[i] === kCalculate) return (start[i] as number) + (graph.size[i] as number);
    const send = sendOf(i);
    return send === kNone ? (start[i] as number) : Math.max(start[i] as number, start[send] as number);
  };
  for (let at = 0; at < order.length; at++) {
    const i = order[at] as number;
    let time = 0;
    let chain = 0;
    for (let d = graph.firstDependency[i] as number; d < (graph.firstDependency[i + 1] as number); d++) {
      const entry = graph.dependencies[d] as number;
      const awaited = entry % kStartOnly;
      const startOnly = entry >= kStartOnly;
      // What ends before this starts has met its send by now: in that order they stand.
      time = Math.max(time, startOnly ? (start[awaited] as number) : endOf(awaited));
      chain = Math.max(chain, startOnly ? (level[awaited] as number) : levelAtEnd(awaited));
    }
    start[i] = time;
    level[i] = chain + 1;
  }
  let depth = 0;
  let criticalCalculation = 0;
  for (let at = 0; at < order.length; at++) {
    const i = order[at] as number;
    depth = Math.max(depth, levelAtEnd(i));
    criticalCalculation = Math.max(criticalCalculation, endOf(i));
  }
  return { depth, criticalCalculation };
}
