// Headroom of a switch's ports: one size for all, sizes of profiles, or the need of each port's link (`auto`).
import type { Findings, Where } from "../base/findings.js";
import { formatRate, formatSize, formatTime } from "../base/units.js";
import { type HeadroomPort, headroomFor, headroomOfCable, headroomOfLink, type NamedPort } from "./headroom.js";
import { settingsOf } from "./port_profiles.js";
import type { SwitchPort } from "./topology.js";
import type { Scenario, SwitchConfig } from "./types.js";

/** Headroom as written of a switch, or of a profile. */
export interface WrittenHeadroom {
  headroom?: number | "auto" | undefined;
  /** Length of the cable, mm. */
  cable?: number | undefined;
}

export interface PortHeadroom {
  /** Headroom of ports that have none of their own, bytes. */
  usual: number;
  /** Headroom of the others, by their names. */
  own: ReadonlyMap<string, number>;
  /** Bytes that these reserve beyond `usual`, of one priority; negative where that is less. */
  besides: number;
}

/** Returns undefined where the switch's holds; also where a rate is needed that the port does not have (checks tell of that). */
function headroomOf({ headroom, cable }: WrittenHeadroom, port: HeadroomPort): number | undefined {
  if (cable !== undefined && port.rate > 0) return headroomOfCable({ ...port, cable });
  if (headroom !== "auto") return headroom;
  return port.rate > 0 ? headroomOfLink(port) : undefined;
}

/** @param profile Returns the settings of a port that are written in place of those of all. */
export function portHeadroom(
  headroom: number | "auto",
  ports: readonly NamedPort[],
  profile: (port: string) => WrittenHeadroom | undefined,
): PortHeadroom {
  const found = ports.map((port) => {
    const own = headroomOf(profile(port.name) ?? {}, port);
    return { name: port.name, bytes: own ?? headroomOf({ headroom }, port), profiled: own !== undefined };
  });
  // Headroom found by links is that of the port with the most, so that ports that are alike need none of their own.
  const most = (ofWhich: typeof found) => Math.max(0, ...ofWhich.map(({ bytes = 0 }) => bytes));
  const usual = headroom === "auto" ? most(found.filter(({ profiled }) => !profiled)) || most(found) : headroom;
  const own = found.flatMap(({ name, bytes, profiled }) =>
    bytes !== undefined && (profiled || bytes !== usual) ? [[name, bytes] as const] : [],
  );
  return { usual, own: new Map(own), besides: own.reduce((sum, [, bytes]) => sum + bytes - usual, 0) };
}

/** Finds ports whose headroom cannot be computed. */
export function checkAutomatic(s: SwitchConfig, ports: readonly NamedPort[], at: Where, found: Findings): void {
  if (!s.buffer.automatic || !s.pfc.enabled) return;
  const unrated = ports.filter(({ name, rate }) => rate === 0 && !s.profiled.has(name));
  if (unrated.length === 0) return;
  const message = `auto, but the link to ${unrated.map(({ name }) => name).join(", ")} has no rate, by which it is found`;
  found.problem(at("buffer", "headroom"), message, "give the link a rate, or headroom a size");
}

/** Headroom of one kind of link. */
export interface LinkHeadroom {
  switch: string;
  /** First port of the kind. */
  port: string;
  rate_bps: number;
  delay_ns: number;
  mtu: number;
  headroom_bytes: number;
  /** Number of ports at all switches. */
  ports: number;
}

/** Switches, each with its ports. */
type Ported = readonly (readonly [SwitchConfig, readonly NamedPort[]])[];

export const switchesWithPorts = (
  { switches }: Pick<Scenario, "switches">,
  ports: ReadonlyMap<string, readonly SwitchPort[]>,
): Ported =>
  switches.map((s) => [
    s,
    (ports.get(s.name) ?? []).map(({ peer: name, link: { rate, delay, mtu } }) => ({ name, rate, delay, mtu })),
  ]);

/** Headroom of the links that `chosen` admits, those alike together, in the order of the switches. */
function byLink(all: Ported, chosen: (s: SwitchConfig, port: NamedPort, headroom: number) => boolean): LinkHeadroom[] {
  const kinds = new Map<string, LinkHeadroom>();
  for (const [s, ports] of all) {
    for (const port of ports) {
      const { headroom } = settingsOf(s, port.name).buffer;
      if (!chosen(s, port, headroom)) continue;
      const { name, rate: rate_bps, delay: delay_ns, mtu } = port;
      const key = [rate_bps, delay_ns, mtu, headroom].join();
      const known = kinds.get(key);
      if (known !== undefined) known.ports++;
      else kinds.set(key, { switch: s.name, port: name, rate_bps, delay_ns, mtu, headroom_bytes: headroom, ports: 1 });
    }
  }
  return [...kinds.values()];
}

/** Headroom that `auto` results in. */
export const automaticHeadroom = (all: Ported): LinkHeadroom[] =>
  byLink(all, (s, { name, rate }) => rate > 0 && (s.buffer.automatic || isAutomatic(s, name)));

const isAutomatic = (s: SwitchConfig, port: string) => {
  const { name = "" } = s.profiled.get(port) ?? {};
  return s.port_profiles[name]?.buffer?.headroom === "auto";
};

/**
 * Warns, once for each kind of link, where headroom is less than what can be under way. Devices of Weir obey at once, and the delay of a
 * link is all there is between them; without a rate there is no bound.
 * @param remedy Setting that finds headroom by itself.
 */
export function warnOfHeadroom(all: Ported, remedy: string, found: Findings): void {
  const underWay = ({ rate, delay, mtu }: HeadroomPort) =>
    headroomFor({ rate, delay, mtu, response: 0, interfaceDelay: 0, trigger: true }).bytes;
  const short = byLink(
    all,
    ({ pfc }, port, headroom) => pfc.enabled && pfc.priorities.length > 0 && port.rate > 0 && headroom < underWay(port),
  );
  for (const { switch: name, port, rate_bps: rate, delay_ns: delay, mtu, headroom_bytes, ports } of short) {
    const more = ports === 1 ? "" : `, and ${ports - 1} ${ports === 2 ? "port" : "ports"} alike`;
    found.warn(
      `switch ${name}: headroom ${formatSize(headroom_bytes)} is less than the ${formatSize(underWay({ rate, delay, mtu }))} that ` +
        `can be under way on the link to ${port} (${formatRate(rate)}, ${formatTime(delay)})${more}: packets may be lost in ` +
        `spite of PFC; ${remedy}`,
    );
  }
}
