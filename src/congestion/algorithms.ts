// All congestion control algorithms: who adds one adds its descriptor here.
import type { Algorithm, NativeSetting } from "./algorithm.js";
import { dcqcn, none } from "./dcqcn.js";
import { dctcp } from "./dctcp.js";
import { hpcc } from "./hpcc.js";
import { library } from "./library.js";
import { nscc } from "./nscc.js";
import { qcn } from "./qcn.js";
import { swift } from "./swift.js";
import { timely } from "./timely.js";

/** The first is the default. */
export const kAlgorithms = { dcqcn, qcn, dctcp, timely, swift, hpcc, nscc, library, none } as const satisfies Record<
  string,
  Algorithm
>;

export type AlgorithmName = keyof typeof kAlgorithms;
export const kAlgorithmNames = Object.keys(kAlgorithms) as AlgorithmName[];
/** Algorithms that slow anybody. */
export const kControls = kAlgorithmNames.filter((name) => kAlgorithms[name].feedback !== "none");

export const algorithmOf = (name: AlgorithmName): Algorithm => kAlgorithms[name];

type ProfileOf<Descriptor> = Descriptor extends { profiles: infer Profiles } ? keyof Profiles & string : undefined;
type VariantOf<Descriptor> = Descriptor extends { variants: { names: readonly (infer Name)[] } } ? Name : undefined;

/** Congestion control that the hosts of a scenario run. */
export type CongestionOf<Name extends AlgorithmName> = {
  [N in Name]: {
    algorithm: N;
    profile: ProfileOf<(typeof kAlgorithms)[N]>;
    variant: VariantOf<(typeof kAlgorithms)[N]>;
    parameters: ReturnType<(typeof kAlgorithms)[N]["resolve"]>;
  };
}[Name];
export type Congestion = CongestionOf<AlgorithmName>;

/** Narrows to DCQCN, which some things are about alone, such as the equations of its fluid model. */
export const isDcqcn = (congestion: Congestion): congestion is CongestionOf<"dcqcn"> =>
  congestion.algorithm === "dcqcn";

/** Time between two pieces of feedback to a flow while congestion lasts, ns. `sampling`: the interval of congestion points. */
export function feedbackInterval({ algorithm, parameters }: Congestion, sampling: number): number {
  return algorithmOf(algorithm).feedbackInterval(parameters, sampling);
}

/** Fields of a native NIC, as they are meant. */
export function nativeCongestion({ algorithm, parameters, variant }: Congestion, setting: NativeSetting) {
  const native = algorithmOf(algorithm).native(parameters, setting, variant);
  return native as ReturnType<(typeof kAlgorithms)[AlgorithmName]["native"]>;
}

/** Name in results and tables: the profile, if there is any, and the variant where it is not the standard's. */
export function profileText({ algorithm, profile, variant }: Congestion): string {
  const { feedback, variants } = algorithmOf(algorithm);
  if (feedback === "none" || profile === undefined) return algorithm;
  return variant === variants?.names[0] ? profile : `${profile} ${variant}`;
}
