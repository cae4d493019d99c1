/** Variations of one scenario about its congestion control: their scenarios, refusals, and native NICs. */
import { nativeCongestion } from "../../src/congestion/algorithms.js";
import { kUnits } from "../../src/native/units.js";
import { inWallUnits } from "../../src/native/wall.js";
import { parseScenarioText } from "../../src/scenario/scenario.js";
import { refusalOf } from "../fixtures/refusal.js";

const kQcn = {
  priorities: 0,
  flows: "queue-pair",
  reaction_points: 0,
  cn_tag: false,
  notification: "l2",
  limiter: "pacer",
  groups: new Map(),
} as const;

/** Variations of `text`, each with assignments of `--set`. */
export function variationsOf(text: string) {
  const load = (...set: string[]) => parseScenarioText(text, "scenario.yaml", { set });
  return {
    load,
    refusal: (...set: string[]) => refusalOf(() => load(...set)),
    /** Native NICs in wall units at this scale. */
    native: (scale: number, ...set: string[]) =>
      inWallUnits(
        nativeCongestion(load(...set).scenario.congestion, { seed: 1, component: 0, qcn: kQcn }),
        kUnits.NativeNic,
        scale,
      ),
  };
}
