// Settings that some ports of a switch have instead of its own: marking, buffer, congestion points; by their names or their rate.
import type { z } from "zod";
import type { Problem } from "../base/error.js";
import type { Findings, Where } from "../base/findings.js";
import { formatRate, formatSize } from "../base/units.js";
import type { portProfileSchema } from "./device_schema.js";
import type { PortThresholds } from "./features/buffer.js";
import type { Marking } from "./features/ecn.js";
import type { Points } from "./features/qcn.js";
import type { NamedPort } from "./headroom.js";

type Written = z.output<typeof portProfileSchema>;
type Profiles = Readonly<Record<string, Written>>;

/** Settings of one port, in full. */
export interface PortProfile {
  /** Name of the profile; undefined when only the headroom differs. */
  name: string | undefined;
  ecn: Marking;
  buffer: PortThresholds;
  qcn: Points;
}

/** Settings of the switch. */
export type Usual = Pick<PortProfile, "ecn" | "buffer" | "qcn">;

/** Picks the fields that a profile can have from the larger sections. */
const usualOf = ({ ecn, buffer, qcn }: Usual): Usual => ({
  ecn: { kmin: ecn.kmin, kmax: ecn.kmax, pmax: ecn.pmax },
  buffer: {
    headroom: buffer.headroom,
    beta: buffer.beta,
    threshold: buffer.threshold,
    xon_offset: buffer.xon_offset,
    lossy_alpha: buffer.lossy_alpha,
  },
  qcn: { cpQSp: qcn.cpQSp, cpWeight: qcn.cpWeight, cpSampleBase: qcn.cpSampleBase },
});

/** A port as far as profiles need it; `rate` in bit/s, 0: not shaped. */
export type ProfiledPort = Pick<NamedPort, "name" | "rate">;

/** Name of the profile of each port that has one. */
export function profilesOf(profiles: Profiles, ports: readonly ProfiledPort[]): Map<string, string> {
  const entries = Object.entries(profiles);
  return new Map(
    ports.flatMap(({ name, rate: own }) => {
      const found =
        entries.find(([, { ports: named }]) => named?.includes(name)) ??
        entries.find(([, { rate: of }]) => of !== undefined && of === own);
      return found === undefined ? [] : [[name, found[0]] as const];
    }),
  );
}

/** @param headroom Headroom of the port, bytes. */
export function resolveProfile(
  name: string | undefined,
  written: Written,
  headroom: number,
  usual: Usual,
): PortProfile {
  const { cable: _, headroom: _h, ...buffer } = written.buffer ?? {};
  const all = usualOf(usual);
  return {
    name,
    ecn: { ...all.ecn, ...given(written.ecn) },
    buffer: { ...all.buffer, ...given(buffer), headroom },
    qcn: { ...all.qcn, ...given(written.qcn) },
  };
}

const given = <T extends object>(section: T | undefined) =>
  Object.fromEntries(Object.entries(section ?? {}).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };

/** Checks profiles as written. @param known Names that may be used where something was written. */
export function checkPortProfiles(
  profiles: Profiles,
  ports: readonly ProfiledPort[],
  known: (path: Problem["path"]) => readonly string[],
  at: Where,
  found: Findings,
): void {
  const entries = Object.entries(profiles);
  entries.forEach(([name, { ports: named, rate: of, buffer }], i) => {
    const where = (...path: string[]) => at("port_profiles", name, ...path);
    const before = entries.slice(0, i);
    if (named === undefined && of === undefined) {
      found.problem(where(), "it is for no port", "give `ports`, or a `rate`");
    }
    for (const port of named ?? []) {
      const names = known(where("ports"));
      if (!names.includes(port)) found.unknown(where("ports"), "port", port, names);
      const other = before.find(([, { ports: others }]) => others?.includes(port));
      if (other !== undefined) {
        found.problem(where("ports"), `${port} is of profile ${other[0]}, too`, "a port is of one profile at most");
      }
    }
    const same = before.find(([, { rate: other }]) => of !== undefined && other === of);
    if (same !== undefined) {
      found.problem(
        where("rate"),
        `${formatRate(of ?? 0)} is that of profile ${same[0]}, too`,
        "a rate has one profile",
      );
    }
    if (buffer?.cable !== undefined && buffer.headroom !== undefined) {
      found.problem(where("buffer", "cable"), "headroom is given, too", "give one of the two");
    }
    if (buffer?.cable !== undefined || buffer?.headroom === "auto") {
      const unrated = ports.filter((port) => port.rate === 0 && profilesOf(profiles, [port]).get(port.name) === name);
      if (unrated.length > 0) {
        const message = `${unrated.map((port) => port.name).join(", ")} has no rate, by which headroom is found`;
        const written = buffer.cable === undefined ? "headroom" : "cable";
        found.problem(where("buffer", written), message, "give the port a rate, or `headroom` a size");
      }
    }
  });
}

/** Checks the resulting settings of the ports, each reported once for its profile. */
export function checkProfiled(
  profiles: ReadonlyMap<string, PortProfile>,
  fixed: boolean,
  at: Where,
  found: Findings,
): void {
  for (const profile of profiles.values()) {
    const { name, ecn, buffer } = profile;
    // Ports without a profile have the switch's settings, which are checked elsewhere.
    if (name === undefined) continue;
    const where = (...path: string[]) => at("port_profiles", name, ...path);
    if (ecn.kmin > ecn.kmax) {
      const message = `${formatSize(ecn.kmin)} is greater than kmax ${formatSize(ecn.kmax)}`;
      found.problem(where("ecn", "kmin"), message, "kmin must be between 0 and kmax");
    }
    if (fixed && buffer.xon_offset >= buffer.threshold) {
      const message = `${formatSize(buffer.xon_offset)} is not less than the threshold ${formatSize(buffer.threshold)}`;
      found.problem(where("buffer", "xon_offset"), message, "a paused queue is resumed at threshold - xon_offset");
    }
  }
}

/** Settings of a port, by its profile or those of the switch. */
export const settingsOf = (s: Usual & { profiled: ReadonlyMap<string, PortProfile> }, port: string): Usual =>
  s.profiled.get(port) ?? usualOf(s);
