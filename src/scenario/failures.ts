/** Links and switches that fail, and faults that are made: when which links are down or routed around. */
import { endOfFault, type Outage, outages, placeOfFault } from "./faults.js";
import type { Failure, Link, Scenario } from "./types.js";

/** Something that happens to the network. */
export interface NetworkEvent {
  /** Time, ns. */
  at: number;
  /** Description of the event, in words. */
  what: string;
}

type Failing = Pick<Scenario, "failures" | "faults" | "links" | "duration">;

/** Links that fail, each time for as long as they do. */
export function failedLinks({ failures, links }: Failing): Outage[] {
  return failures.flatMap((failure) =>
    links
      .filter((link) => concerns(failure, link))
      .map((link) => ({ link, at: failure.at, until: failure.until ?? Number.POSITIVE_INFINITY })),
  );
}

/** Times at which routes change, ascending, ns. */
export function rerouteTimes({ failures, duration }: Failing): number[] {
  const times = failures.flatMap(({ at, until = Number.POSITIVE_INFINITY, reroute }) => [
    at + reroute,
    until + reroute,
  ]);
  return [...new Set(times)].filter((time) => time < duration).sort((a, b) => a - b);
}

/** Events before the end of traffic, in order of time. */
export function networkEvents(scenario: Failing): NetworkEvent[] {
  const { failures, duration } = scenario;
  return failures
    .flatMap((failure): NetworkEvent[] => {
      const { at, until, reroute } = failure;
      const name = nameOf(failure);
      const fails = [
        { at, what: `${name} fails` },
        { at: at + reroute, what: `routes without ${name}` },
      ];
      if (until === undefined) return fails;
      return [
        ...fails,
        { at: until, what: `${name} is there again` },
        { at: until + reroute, what: `routes with ${name}` },
      ];
    })
    .concat(faultEvents(scenario))
    .filter(({ at }) => at < duration)
    .sort((a, b) => a.at - b.at);
}

function faultEvents(scenario: Failing): NetworkEvent[] {
  const frames = scenario.faults
    .filter(({ kind }) => kind !== "down")
    .flatMap((fault) => {
      const name = `${fault.kind} at ${placeOfFault(fault)}`;
      return [
        { at: fault.at, what: `${name} begins` },
        { at: endOfFault(fault), what: `${name} ends` },
      ];
    });
  const links = outages(scenario, scenario.duration).flatMap(({ link: { from, to }, at, until }) => [
    { at, what: `link ${from} -- ${to} goes down` },
    { at: until, what: `link ${from} -- ${to} is up again` },
  ]);
  return [...frames, ...links];
}

/** Links that are down from `time` on. */
export function linksDown(times: readonly Outage[], time: number): Set<Link> {
  return new Set(times.filter(({ at, until }) => at <= time && time < until).map(({ link }) => link));
}

/** Times for which links are down, by failures and by faults. */
export function allOutages(scenario: Failing): Outage[] {
  return [...failedLinks(scenario), ...outages(scenario, scenario.duration)];
}

/** Links that routes go around from `time` on: links that have been down for as long as routes take to follow. */
export function linksAvoided(scenario: Failing, time: number): Set<Link> {
  return linksOf(
    scenario,
    ({ at, until = Number.POSITIVE_INFINITY, reroute }) => at + reroute <= time && time < until + reroute,
  );
}

/** Each set of links that routes go around at some time, without repetition; the empty one first. */
export function linksAvoidedInTurn(scenario: Failing): Set<Link>[] {
  const found = new Map<string, Set<Link>>([["", new Set()]]);
  for (const { at } of networkEvents(scenario)) {
    const avoided = linksAvoided(scenario, at);
    const key = scenario.links.flatMap((link, i) => (avoided.has(link) ? [i] : [])).join();
    if (!found.has(key)) found.set(key, avoided);
  }
  return [...found.values()];
}

function linksOf({ failures, links }: Failing, holds: (failure: Failure) => boolean): Set<Link> {
  const held = failures.filter(holds);
  return new Set(links.filter((link) => held.some((failure) => concerns(failure, link))));
}

function concerns({ link, switch: name }: Failure, { from, to }: Link): boolean {
  if (link === undefined) return from === name || to === name;
  return (from === link.from && to === link.to) || (from === link.to && to === link.from);
}

function nameOf({ link, switch: name }: Failure): string {
  return link === undefined ? `switch ${name}` : `link ${link.from} -- ${link.to}`;
}
