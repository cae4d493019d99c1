/**
 * What a feature of a device is: a file that has its section as users write it, how that is filled in, which values go together, and its
 * numbers in the native core. Lists of features make schemas, checks and configurations of devices.
 */
import type { Findings, Where } from "../../base/findings.js";
import type { NativeNic, NativeNicParameters, NativeSwitchParameters } from "../../native/configuration.js";

/** A port as far as checks go by it. */
export interface CheckedPort {
  /** The device that it leads to. */
  name: string;
  /** bit/s; 0: not shaped. */
  rate: number;
  /** Propagation of its link, ns. */
  delay: number;
  mtu: number;
}

/** How a device is played. */
export interface Play {
  /** Wall time = meant time * scale, wall rate = meant rate / scale. */
  scale: number;
  /** Bytes that a port may take beyond its headroom, as feedback may be late. */
  latenessHeadroom: number;
}

/** `Needs`: the sections of the switch that the feature goes by. */
export interface SwitchFeature<Needs> {
  /** Tells what is wrong or questionable; `at` gives the place where a field of the switch was written. */
  check?: (needs: Needs, ports: readonly CheckedPort[], at: Where, found: Findings) => void;
  /** Bytes stay as they are at every scale, times do not. */
  native: (needs: Needs, play: Play) => Partial<NativeSwitchParameters>;
}

/** The same of a NIC. */
export interface HostFeature<Needs> {
  check?: (needs: Needs, at: Where, found: Findings) => void;
  native: (needs: Needs, play: Pick<Play, "scale">) => Partial<NativeNicParameters & NativeNic>;
}

/** Everything that features make. */
export type AllOf<Features extends readonly { native: (...args: never) => object }[]> = Features extends readonly [
  infer First extends { native: (...args: never) => object },
  ...infer Rest extends readonly { native: (...args: never) => object }[],
]
  ? ReturnType<First["native"]> & AllOf<Rest>
  : unknown;

/** Priorities as the bits of a byte. */
export function mask(priorities: readonly number[]): number {
  return priorities.reduce((bits, priority) => bits | (1 << priority), 0);
}
