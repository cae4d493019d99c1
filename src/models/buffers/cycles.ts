/**
 * Cyclic buffer dependencies: pauses that can wait for each other. A frame that has come over one link waits in that link's
 * ingress for the link that it leaves by, and that one may be paused because of the ingress at its other end. Where these
 * dependencies go in a circle of links between lossless switches, a deadlock is possible; without a circle it is not (Dally and
 * Seitz, "Deadlock-Free Message Routing", 1987; for PFC Hu et al., "Deadlocks in Datacenter Networks", HotNets 2016). Whether one
 * comes about is another question: that takes load on all of it at a time.
 */
import type { SwitchConfig } from "../../scenario/types.js";
import type { PortPair } from "./pairs.js";

/** Switches in the order in which frames pass, each once; from the last, frames go on to the first. */
export interface BufferCycle {
  priority: number;
  switches: string[];
}

/** Finds one for each set of links that depend on each other: a short circle among them. */
export function bufferCycles(
  pairs: readonly PortPair[],
  devices: ReadonlyMap<string, Pick<SwitchConfig, "pfc">>,
): BufferCycle[] {
  const lossless = (name: string, priority: number) => {
    const pfc = devices.get(name)?.pfc;
    return pfc?.enabled === true && pfc.priorities.includes(priority);
  };
  const links = new Map<string, Dependent>();
  const linkOf = (from: string, to: string, priority: number): Dependent => {
    const key = `${from} ${to} ${priority}`;
    const found = links.get(key) ?? { from, to, priority, next: [] };
    links.set(key, found);
    return found;
  };
  for (const { switch: name, ingress, egress, priority: written } of pairs) {
    // PAUSE frames stop all priorities for the sake of one.
    const priority = devices.get(name)?.pfc.by === "pause" ? 0 : written;
    if (![ingress, name, egress].every((one) => lossless(one, priority))) continue;
    linkOf(ingress, name, priority).next.push(linkOf(name, egress, priority));
  }
  return knots([...links.values()]).map((knot) => {
    const circle = shortCircle(knot);
    return { priority: circle[0]?.priority ?? 0, switches: circle.map(({ from }) => from) };
  });
}

/** A link from switch to switch at a priority, and the links by which its frames go on. */
interface Dependent {
  from: string;
  to: string;
  priority: number;
  next: Dependent[];
}

/** Sets of links that can be reached from each other: links without a way in, or out, are taken away, and the rest is taken apart. */
function knots(links: readonly Dependent[]): Dependent[][] {
  const found: Dependent[][] = [];
  const place = new Map<Dependent, { order: number; lowest: number; open: boolean }>();
  const path: Dependent[] = [];
  // Sets are Tarjan's strongly connected components, without recursion: a fabric's paths are too long for the stack of calls.
  for (const root of links) {
    if (place.has(root)) continue;
    const work: { link: Dependent; at: number }[] = [{ link: root, at: 0 }];
    while (work.length > 0) {
      const step = work[work.length - 1] as (typeof work)[number];
      const { link } = step;
      let own = place.get(link);
      if (own === undefined) {
        own = { order: place.size, lowest: place.size, open: true };
        place.set(link, own);
        path.push(link);
      }
      const child = link.next[step.at];
      if (child !== undefined) {
        const seen = place.get(child);
        if (seen === undefined) {
          work.push({ link: child, at: 0 });
          continue;
        }
        if (seen.open) own.lowest = Math.min(own.lowest, seen.lowest);
        step.at++;
        continue;
      }
      work.pop();
      if (own.lowest !== own.order) continue;
      const knot = path.splice(path.indexOf(link));
      for (const one of knot) (place.get(one) as NonNullable<typeof own>).open = false;
      if (knot.length > 1) found.push(knot);
    }
  }
  return found;
}

/** Links of a knot from which a circle is looked for: each search may go through all of it. */
const kMostStarts = 100;

/** Finds a short circle of a knot, which has one. */
function shortCircle(knot: readonly Dependent[]): Dependent[] {
  const members = new Set(knot);
  let shortest: Dependent[] = [];
  for (const start of knot.slice(0, kMostStarts)) {
    const before = new Map<Dependent, Dependent | undefined>([[start, undefined]]);
    const pending = [start];
    for (const link of pending) {
      if (link.next.includes(start)) {
        const circle: Dependent[] = [];
        for (let at: Dependent | undefined = link; at !== undefined; at = before.get(at)) circle.unshift(at);
        if (shortest.length === 0 || circle.length < shortest.length) shortest = circle;
        break;
      }
      for (const next of link.next) {
        if (!members.has(next) || before.has(next)) continue;
        before.set(next, link);
        pending.push(next);
      }
    }
  }
  return shortest;
}
