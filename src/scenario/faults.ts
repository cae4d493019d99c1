/** Faults of a scenario: where they are, when, and what to call them. */
import { hostIp } from "./addresses.js";
import type { Fabric } from "./fabric.js";
import type { Fault, Link, Scenario } from "./types.js";

type Faulty = Pick<Scenario, "faults" | "links">;

/** Links at whose ends a fault is: those of a whole device go down where it names no port. */
export function linksOfFault(links: readonly Link[], { device, port }: Pick<Fault, "device" | "port">): Link[] {
  const joins = (near: string, far: string) => near === device && (port === undefined || far === port);
  return links.filter(({ from, to }) => joins(from, to) || joins(to, from));
}

/** Position of the link at whose end a fault of frames is; -1: there is none. */
export function linkOfFault(links: readonly Link[], fault: Pick<Fault, "device" | "port">): number {
  return links.indexOf(linksOfFault(links, fault)[0] as Link);
}

/** Device at whose end of a link a fault is made to frames that come in: those that leave at one end come in at the other. */
export function deviceOfFault({ device, direction }: Pick<Fault, "device" | "direction">, link: Link): string {
  if (direction !== "out") return device;
  return device === link.from ? link.to : link.from;
}

/** Time at which a fault ends by itself, or has nothing more to do. */
export const endOfFault = ({ at, for: lasts = Number.POSITIVE_INFINITY }: Fault): number => at + lasts;

/** A time for which a link is down, ns. */
export interface Outage {
  link: Link;
  at: number;
  until: number;
}

/** Times between which links are down by faults, in the order of the faults, up to the end of traffic. */
export function outages({ faults, links }: Faulty, duration: number): Outage[] {
  return faults.flatMap((fault) =>
    timesDown(fault, duration).flatMap((time) => linksOfFault(links, fault).map((link) => ({ link, ...time }))),
  );
}

/** Times between which a fault has its links down, up to the end of traffic. */
export function timesDown(fault: Fault, duration: number): Omit<Outage, "link">[] {
  if (fault.kind !== "down") return [];
  const end = Math.min(endOfFault(fault), duration);
  const { at, down = end - at, up = 0 } = fault;
  const count = Math.ceil((end - at) / Math.max(1, down + up));
  return Array.from({ length: Math.max(0, count) }, (_, i) => {
    const begins = at + i * (down + up);
    const until = begins + down < end ? begins + down : endOfFault(fault) <= duration ? end : Number.POSITIVE_INFINITY;
    return { at: begins, until };
  });
}

/** Times that links may go down by one fault, together. */
export const kMostOutages = 10_000;

interface FaultPlace {
  device: string;
  port?: string | undefined;
  direction?: "in" | "out" | undefined;
}

/** Name of the place of a fault. */
export function placeOfFault({ device, port, direction }: FaultPlace): string {
  if (direction === "out") return port === undefined ? `${device}, out` : `${device} to ${port}`;
  return port === undefined ? device : `${device} from ${port}`;
}

/** A fault as it is asked for of a device: hosts by their addresses. */
export function requestOf(
  { at: _, device: _d, port: _p, direction: _o, from, to, ...fault }: Fault,
  fabric: Pick<Fabric, "host">,
) {
  const address = (host: string) => hostIp(fabric.host(host)).join(".");
  return {
    ...fault,
    from: from === undefined ? undefined : address(from),
    to: to === undefined ? undefined : address(to),
  };
}
