/** Links and switches that fail, and faults that are made: when which links are down or routed around. */
import { endOfFault, linksOfFault, type Outage, outages, placeOfFault, timesDown } from "./faults.js";
import type { Failure, Fault, Link, Scenario } from "./types.js";

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

/** Links that routes lead around for a time, ns. */
interface Detour {
  at: number;
  until: number;
  around: (link: Link) => boolean;
  /** Description of what is not there. */
  name: string;
}

/** Detours around what fails. */
const detourOf = (failure: Failure): Detour => {
  const { at, until = Number.POSITIVE_INFINITY, reroute } = failure;
  const around = (link: Link) => concerns(failure, link);
  return { at: at + reroute, until: until + reroute, around, name: nameOf(failure) };
};

/** Detours around links that are down by faults with `reroute`. */
function detoursOfFaults({ faults, links, duration }: Failing): Detour[] {
  return faults.flatMap((fault) => {
    const { reroute } = fault;
    if (reroute === undefined) return [];
    const down = linksOfFault(links, fault);
    const around = (link: Link) => down.includes(link);
    const name = nameOfDown(fault, down);
    return timesDown(fault, duration).map(({ at, until }) => {
      return { at: at + reroute, until: until + reroute, around, name };
    });
  });
}

const detours = (scenario: Failing): Detour[] => [...scenario.failures.map(detourOf), ...detoursOfFaults(scenario)];

const turns = ({ at, until, name }: Detour): [NetworkEvent, NetworkEvent] => [
  { at, what: `routes without ${name}` },
  { at: until, what: `routes with ${name}` },
];

/** Times at which routes change, ascending, ns. */
export function rerouteTimes(scenario: Failing): number[] {
  const { duration } = scenario;
  const times = detours(scenario).flatMap(({ at, until }) => [at, until]);
  return [...new Set(times)].filter((time) => time < duration).sort((a, b) => a - b);
}

/** Events before the end of traffic, in order of time. */
export function networkEvents(scenario: Failing): NetworkEvent[] {
  const { failures, duration } = scenario;
  return failures
    .flatMap((failure): NetworkEvent[] => {
      const { at, until = Number.POSITIVE_INFINITY } = failure;
      const name = nameOf(failure);
      const [around, back] = turns(detourOf(failure));
      return [{ at, what: `${name} fails` }, around, { at: until, what: `${name} is there again` }, back];
    })
    .concat(faultEvents(scenario), detoursOfFaults(scenario).flatMap(turns))
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
  const links = scenario.faults.flatMap((fault) => {
    const name = nameOfDown(fault, linksOfFault(scenario.links, fault));
    return timesDown(fault, scenario.duration).flatMap(({ at, until }) => [
      { at, what: `${name} goes down` },
      { at: until, what: `${name} is up again` },
    ]);
  });
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
  const now = detours(scenario).filter(({ at, until }) => at <= time && time < until);
  return new Set(scenario.links.filter((link) => now.some(({ around }) => around(link))));
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

function concerns({ link, switch: name }: Failure, { from, to }: Link): boolean {
  if (link === undefined) return from === name || to === name;
  return (from === link.from && to === link.to) || (from === link.to && to === link.from);
}

/** Name of what a fault has down: one link, or the device with all of its links. */
const nameOfDown = ({ device }: Fault, [link, ...more]: readonly Link[]): string =>
  link === undefined || more.length > 0 ? nameOf({ link: undefined, switch: device }) : nameOf({ link });

function nameOf({ link, switch: name }: Pick<Failure, "link"> & Partial<Pick<Failure, "switch">>): string {
  return link === undefined ? `switch ${name}` : `link ${link.from} -- ${link.to}`;
}
