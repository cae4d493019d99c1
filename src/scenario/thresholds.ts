/**
 * Buffer thresholds: the formulas of section 4 of the DCQCN paper (Zhu et al., SIGCOMM 2015). Bytes; n is a number of ports.
 *
 *   F     = B - P n t_flight                what all share once headroom is taken
 *   t_PFC = beta (F - s) / P                dynamic, with s bytes occupied
 *   t_PFC <= F / (P n)                      static
 *
 * native/switching/shared_buffer.h decides by the same at run time.
 *
 * ECN comes before PFC if an ingress (port, priority) is below t_PFC while no egress queue is above t_ECN. The worst case: its
 * frames wait in e egress queues, and q queues of the switch are filled to t_ECN. From e t_ECN < t_PFC and s = q t_ECN:
 *
 *   t_ECN < t_PFC / e                       static
 *   t_ECN < beta F / (P e + beta q)         dynamic
 *
 * With e = n and q = P n, all priorities of all ports in use, the latter is the paper's beta F / (P n (beta + 1)).
 */
import type { BufferConfig } from "./features/buffer.js";

type Sizes = Pick<BufferConfig, "total" | "headroom" | "priorities"> & Partial<Pick<BufferConfig, "besides">>;
type Thresholds = Sizes & Pick<BufferConfig, "beta" | "mode" | "threshold">;

/** P n t_flight, and the bytes that ports with headroom of their own reserve besides. */
export function reservedBytes({ headroom, priorities, besides = 0 }: Omit<Sizes, "total">, ports: number): number {
  return priorities * ports * headroom + besides;
}

/** F; negative where the buffer does not even hold the headroom. */
export function sharedBytes(buffer: Sizes, ports: number): number {
  return buffer.total - reservedBytes(buffer, ports);
}

/** F / (P n), rounded down: the largest static t_PFC that cannot overflow the buffer. */
export function staticThresholdBound(buffer: Sizes, ports: number): number {
  const n = Math.max(ports, 1);
  return Math.max(0, Math.floor(sharedBytes(buffer, n) / (buffer.priorities * n)));
}

/** t_PFC while `occupied` bytes are held, rounded down. */
export function pfcThreshold(buffer: Thresholds, ports: number, occupied: number): number {
  if (buffer.mode === "static") return buffer.threshold;
  return Math.floor((buffer.beta * Math.max(0, sharedBytes(buffer, ports) - occupied)) / buffer.priorities);
}

/** The t_PFC that an ingress meets which fills the buffer alone: q = beta (F - q) / P. */
export function pfcThresholdAlone(buffer: Thresholds, ports: number): number {
  if (buffer.mode === "static") return buffer.threshold;
  return Math.floor((buffer.beta * sharedBytes(buffer, ports)) / (buffer.priorities + buffer.beta));
}

/** Queues in use in a worst case. */
export interface QueuesInUse {
  /** Egress queues that the frames of one ingress (port, priority) may wait in. */
  ofIngress: number;
  /** Egress queues of the whole switch. */
  ofSwitch: number;
}

/** Queues of every priority of every port: the worst case of the paper. */
export function allQueues({ priorities }: Pick<BufferConfig, "priorities">, ports: number): QueuesInUse {
  return { ofIngress: ports, ofSwitch: priorities * ports };
}

/** t_ECN has to be below this for ECN to come before PFC. Not rounded. */
export function ecnThresholdBound(buffer: Thresholds, ports: number, queues = allQueues(buffer, ports)): number {
  if (buffer.mode === "static") return buffer.threshold / queues.ofIngress;
  const free = sharedBytes(buffer, ports);
  return (buffer.beta * free) / (buffer.priorities * queues.ofIngress + buffer.beta * queues.ofSwitch);
}
