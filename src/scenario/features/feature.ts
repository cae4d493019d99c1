/**
 * A feature of a device is a file that has its section as users write it, the way it is filled in, the values that go together, and its
 * numbers in the native core, and what a running device tells of its setting. Lists of features make schemas, checks, configurations and
 * reports of devices.
 */
import type { Findings, Where } from "../../base/findings.js";
import type { NativeNic, NativeNicParameters, NativeSwitchParameters } from "../../native/configuration.js";

/** A port as far as checks need it. */
export interface CheckedPort {
  /** The device that it leads to. */
  name: string;
  /** Rate, bit/s; 0: not shaped. */
  rate: number;
  /** Propagation of its link, ns. */
  delay: number;
  mtu: number;
}

/** The host on which a device is played. */
export interface Play {
  /** Bytes that a port may take beyond its headroom, as feedback may be late. */
  latenessHeadroom: number;
}

/** A feature of switches. `Needs`: the sections of the switch that it reads. */
export interface SwitchFeature<Needs> {
  /** Reports errors and doubts; `at` gives the place where a field of the switch was written. */
  check?: (needs: Needs, ports: readonly CheckedPort[], at: Where, found: Findings) => void;
  /** Parameters of the native core, as they are meant: src/native/wall.ts stretches their times. */
  native: (needs: Needs, play: Play) => Partial<NativeSwitchParameters>;
  /** Setting as reports of a running switch have it. */
  report?: (needs: Needs) => object;
}

/** A feature of NICs, with the sections that it reads. */
export interface HostFeature<Needs> {
  check?: (needs: Needs, at: Where, found: Findings) => void;
  native: (needs: Needs) => Partial<NativeNicParameters & NativeNic>;
}

/** Type of all that a list of features makes. */
export type AllOf<Features extends readonly object[], What extends "native" | "report"> = Features extends readonly [
  infer First,
  ...infer Rest extends readonly object[],
]
  ? (First extends { [Name in What]: (...args: never) => infer Made } ? Made : unknown) & AllOf<Rest, What>
  : unknown;

/** Priorities as the bits of a byte. */
export function mask(priorities: readonly number[]): number {
  return priorities.reduce((bits, priority) => bits | (1 << priority), 0);
}
