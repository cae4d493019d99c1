// Descriptor of one congestion control algorithm: all that schema, checks, docs, results and pages know of it follows from it.
import type { Findings } from "../base/findings.js";
import { formatRate, formatTime } from "../base/units.js";
import type { Parameter, ParameterInput } from "./parameter.js";
import type { HostQcn } from "./qcn_points.js";

/**
 * Senders hear of congestion by notification packets of the receiver (RoCEv2); messages of the switch (802.1Q); acknowledgements of
 * reliable connections, by the marks that they echo, by when they come, or by the telemetry of switches (INT) that they echo; or not at
 * all.
 */
export type Feedback = "CNP" | "CNM" | "ECN echo" | "RTT" | "ECN echo and RTT" | "INT" | "none";

/** A value as a user would write it (a number means the parameter's unit), and where it is from. */
export type Sourced = readonly [value: ParameterInput, source: string];

export interface Profile<Name extends string = string> {
  title: string;
  /** Form, of algorithms that have several. */
  form?: string;
  parameters: Readonly<Record<Name, Sourced>>;
}

/** A library with a congestion control. */
export interface LibraryChoice {
  /** Name with its path. */
  file: string;
  names: string[];
  /** Values by position, one for each name. */
  values: number[];
  /** Time in ns. */
  min_time_between_cnps: number;
}

/** Choices besides the parameters. */
export interface Choice<Standard = Readonly<Record<string, number | boolean>>> {
  profile: string;
  variant: string;
  /** Rate in bit/s, of the slowest host. */
  lineRate: number;
  /** Parameters before overrides. */
  standard: Standard;
  /** Parameters that are given one by one. */
  overridden: ReadonlySet<string>;
  /** Chosen where the algorithm is `library`. */
  library?: LibraryChoice | undefined;
}

/** Conditions under which a NIC runs it. */
export interface NativeSetting {
  /** Keys of the random draws of its reaction points. */
  seed: number;
  component: number;
  /** `priorities` as a bit mask; `groups`: parameters of CNPVs that have their own. */
  qcn: Omit<HostQcn, "priorities" | "reaction_point_groups"> & {
    priorities: number;
    groups: ReadonlyMap<number, object>;
  };
}

/** Gives one of the parameters by another quantity. */
export interface PaperSymbol {
  /** The parameter. */
  of: string;
  /** `parse` gives that one's value. */
  parameter: Parameter;
  /** Writes a value of that parameter as one of this. */
  write(value: number): ParameterInput;
}

export interface Algorithm {
  /** Name in headings and messages. */
  title: string;
  /** Other needs of a scenario, in the description of `congestion.algorithm`. */
  needs?: string;
  /** Origin of the names of parameters, in the description of `congestion.parameters`. */
  names: string;
  feedback: Feedback;
  /** State of a flow: current rate R_C and target rate R_T; a congestion window; an estimate alpha of the congestion. */
  state: { readonly rates: boolean; readonly window: boolean; readonly alpha: boolean };
  /** Names differ from those of all other algorithms. */
  parameters: Readonly<Record<string, Parameter>>;
  /** Parameters that `weir tune` looks for unless it is told others. */
  tuned?: readonly string[];
  /** The paper's symbols for parameters whose values it states in another way. */
  symbols?: Readonly<Record<string, PaperSymbol>>;
  /** Named sets of parameters, the default first. */
  profiles?: Readonly<Record<string, Profile>>;
  /** Values of an algorithm without profiles. */
  defaults?: Readonly<Record<string, Sourced>>;
  /** Variants, the default first. */
  variants?: { readonly description: string; readonly names: readonly string[] };
  /** Its section of docs/reference/parameters.md, before the tables. */
  doc: string;
  /** Returns what senders run on, in base units. */
  resolve(values: Readonly<Record<string, number | boolean>>, choice: Choice): object;
  /** Finds combinations that cannot work or are unlikely to be meant. `lineRate` is that of the slowest host, bit/s. */
  check?(parameters: object, lineRate: number, found: Findings): void;
  /** Time between two pieces of feedback to a flow while congestion lasts, ns. `sampling`: the interval of congestion points. */
  feedbackInterval(parameters: object, sampling: number): number;
  /** Fields of a native NIC, as they are meant. */
  native(parameters: object, setting: NativeSetting, variant: string | undefined): object;
}

/** Bytes on the link of a packet with the path MTU that most have, 1024. */
const kPacket = 1106;

/** Warns where an RTT is above a threshold (ns) though no queue stands: a packet is on two links at least. `lineRate` in bit/s. */
export function warnOfThreshold(name: string, threshold: number, lineRate: number, found: Findings): void {
  const onLinks = (2 * kPacket * 8e9) / lineRate;
  if (onLinks < threshold) return;
  found.warn(
    `congestion: ${name} ${formatTime(threshold)} is not more than the ${formatTime(Math.round(onLinks))} that a packet of 1 KB takes ` +
      `over two links of ${formatRate(lineRate)}: flows slow down though no queue stands`,
  );
}
