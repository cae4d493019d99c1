/** Computes the most that a network could deliver. */
import type { Scenario } from "../scenario/types.js";

/**
 * Goodput in bit/s when all senders' or all receivers' links are full, whichever is less: the link rates times
 * `payloadShare` (payload / everything that a full packet takes on the wire). Links inside the fabric may allow less.
 * Undefined where flows do not always offer all they can (a rate cap, a total, a later start or an earlier stop), where
 * a host's link has no rate, where service rates change or links fail, and where kernels or programs send, too.
 */
export function goodputLimit(scenario: Scenario, payloadShare: number): number | undefined {
  const { flows, links, duration, changes, failures, faults, tcp, programs } = scenario;
  if ([changes, failures, faults, tcp, programs].some((list) => list.length > 0)) return undefined;
  if (flows.some((flow) => flow.rate !== undefined || flow.bytes !== undefined || flow.sizes)) return undefined;
  if (flows.some((flow) => flow.start > 0 || flow.stop < duration)) return undefined;
  const rates = new Map(links.flatMap(({ from, to, rate }) => [from, to].map((end) => [end, rate] as const)));
  const rateOf = (host: string) => rates.get(host) ?? 0;
  const side = (hosts: Iterable<string>) => [...new Set(hosts)].map(rateOf);
  const senders = side(flows.map((flow) => flow.from));
  const receivers = side(flows.map((flow) => flow.to));
  if ([...senders, ...receivers].some((rate) => rate === 0)) return undefined;
  const sum = (rates: readonly number[]) => rates.reduce((total, rate) => total + rate, 0);
  return Math.min(sum(senders), sum(receivers)) * payloadShare;
}
