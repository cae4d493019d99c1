/** A finished run as its files have it. */
import { z } from "zod";
import type { SwitchQcn } from "../congestion/qcn_points.js";
import type { EcnConfig, Scenario } from "../scenario/types.js";
import type { Result, Series } from "./result.js";

/** The request for a run: the file as written, the overrides, and the scenario that they came to. Saved as scenario.json. */
export interface RunSource {
  text: string;
  set: readonly string[];
  scenario: Scenario;
}

/**
 * The part of scenario.json that is read again: thresholds and parameters of the scenario. Fields that older versions did not write are
 * optional.
 */
export interface SavedSource extends Omit<RunSource, "scenario"> {
  scenario: {
    switches: readonly {
      name: string;
      ecn?: Pick<EcnConfig, "enabled" | "priorities" | "kmin" | "kmax"> | undefined;
      qcn?: Pick<SwitchQcn, "enabled" | "priorities" | "cpQSp"> | undefined;
    }[];
    congestion?: { parameters?: object | undefined } | undefined;
  };
}

const section = { enabled: z.boolean(), priorities: z.array(z.number()) };
const parameter = z.union([z.string(), z.number(), z.boolean(), z.null()]);

export const savedSourceSchema: z.ZodType<SavedSource> = z.object({
  text: z.string(),
  set: z.array(z.string()),
  scenario: z.object({
    switches: z.array(
      z.object({
        name: z.string(),
        ecn: z.object({ ...section, kmin: z.number(), kmax: z.number() }).optional(),
        qcn: z.object({ ...section, cpQSp: z.number() }).optional(),
      }),
    ),
    congestion: z.object({ parameters: z.record(z.string(), parameter).optional() }).optional(),
  }),
});

/** A run as its folder has it; `source` where there is a scenario.json. */
export interface SavedRun {
  result: Result;
  series: Series;
  source: SavedSource | undefined;
}
