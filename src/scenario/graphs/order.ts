/** The order in which operations of a graph can start, on a network that takes no time. */
import { kReceive, kSend, kStartOnly, type MessageGraph, type Operation } from "./graph.js";
import { kNone } from "./match.js";

/** Of an entry of dependencies: where it points. Faster than the remainder by kStartOnly. */
const kPosition = kStartOnly - 1;

const kWaiting = 0;
const kStarted = 1;
const kEnded = 2;

export interface StartOrder {
  /** Operations, each after all that it waits for; those that can never start are not among them. */
  order: Uint32Array;
  /** One of each circle of which nobody can go on, from one to what it waits for; undefined if all can start. */
  circle: Operation[] | undefined;
}

/**
 * Starts everything that can be, until nothing can. A send ends by itself; a receive ends when its send has started, and at once
 * where `partner` (of partners()) knows none.
 */
export function startOrder(graph: MessageGraph, partner: Uint32Array): StartOrder {
  const count = graph.kind.length;
  const { firstDependency, dependencies } = graph;
  const firstDependent = new Uint32Array(count + 1);
  for (let i = 0; i < dependencies.length; i++) {
    const at = ((dependencies[i] as number) & kPosition) + 1;
    firstDependent[at] = (firstDependent[at] as number) + 1;
  }
  for (let i = 0; i < count; i++)
    firstDependent[i + 1] = (firstDependent[i + 1] as number) + (firstDependent[i] as number);
  const next = firstDependent.slice(0, count);
  const dependents = new Uint32Array(dependencies.length);
  const open = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    const end = firstDependency[i + 1] as number;
    open[i] = end - (firstDependency[i] as number);
    for (let d = firstDependency[i] as number; d < end; d++) {
      const entry = dependencies[d] as number;
      const awaited = entry & kPosition;
      const at = next[awaited] as number;
      next[awaited] = at + 1;
      dependents[at] = i + (entry >= kStartOnly ? kStartOnly : 0);
    }
  }
  const order = new Uint32Array(count);
  const state = new Uint8Array(count);
  let known = 0;
  for (let i = 0; i < count; i++) if (open[i] === 0) order[known++] = i;
  const release = (i: Operation, startOnly: boolean) => {
    for (let d = firstDependent[i] as number; d < (firstDependent[i + 1] as number); d++) {
      const entry = dependents[d] as number;
      if (entry >= kStartOnly !== startOnly) continue;
      const dependent = entry & kPosition;
      open[dependent] = (open[dependent] as number) - 1;
      if (open[dependent] === 0) order[known++] = dependent;
    }
  };
  const finish = (i: Operation) => {
    state[i] = kEnded;
    release(i, false);
  };
  for (let at = 0; at < known; at++) {
    const i = order[at] as number;
    const other = partner[i] as number;
    state[i] = kStarted;
    release(i, true);
    if (graph.kind[i] !== kReceive || other === kNone || state[other] !== kWaiting) finish(i);
    if (graph.kind[i] === kSend && other !== kNone && state[other] === kStarted) finish(other);
  }
  return { order: order.subarray(0, known), circle: known === count ? undefined : circleOf(graph, partner, state) };
}

/** Each operation that has not started waits for another that has not, or for the end of a receive, whose send has not started. */
function circleOf(graph: MessageGraph, partner: Uint32Array, state: Uint8Array): Operation[] {
  const awaitedBy = (i: Operation): Operation => {
    if (state[i] === kStarted) return partner[i] as number;
    for (let d = graph.firstDependency[i] as number; d < (graph.firstDependency[i + 1] as number); d++) {
      const entry = graph.dependencies[d] as number;
      const awaited = entry & kPosition;
      if (state[awaited] === kWaiting || (entry < kStartOnly && state[awaited] === kStarted)) return awaited;
    }
    return i;
  };
  const seen = new Uint8Array(state.length);
  let at = state.indexOf(kWaiting);
  while (seen[at] === 0) {
    seen[at] = 1;
    at = awaitedBy(at);
  }
  const circle: Operation[] = [];
  for (let i = at; circle.length === 0 || i !== at; i = awaitedBy(i)) circle.push(i);
  return circle;
}
