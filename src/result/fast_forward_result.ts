/** What a result tells of time that was skipped, and of what that cost. */
import { z } from "zod";
import { recalledResultSchema, verifiedSchema, verifiedText } from "./recalled_result.js";
import { percent } from "./report/format.js";

const amount = z.number().min(0);
const count = z.int().min(0);
const open = z.looseObject;

const errorSchema = open({
  mean: amount.describe("Mean of the absolute errors, by the time skipped, as a part of what was foretold."),
  worst: amount.describe("Largest of them."),
});

export const fastForwardResultSchema = open({
  bound: amount.describe("Part by which stretches may differ."),
  skipped_s: amount.describe("Virtual time that was skipped, s."),
  skipped: amount.describe("Part of the run that it is."),
  judged_s: amount.describe("Virtual time that was simulated to judge it, s."),
  verified: verifiedSchema.describe(
    "Of the time skipped, the part that was simulated to judge it: `asked`, at least, and `reached`.",
  ),
  jumps: count.describe("Stretches that were skipped."),
  judged: count.describe("Stretches among them behind which the network was simulated and compared."),
  disagreed: count.describe("Comparisons that found more than the bound: the network was watched anew from there."),
  reason: z.string().optional().describe("Why nothing was skipped."),
  errors: open({
    goodput: errorSchema.describe("Of all flows together."),
    shares: errorSchema.describe(
      "Of single flows: sum of what each differs by, over the sum. Of flows that go up and down it is mostly that, and not judged.",
    ),
    marks: errorSchema.describe("Of packets marked CE."),
    queue: errorSchema.describe("Of the mean lengths of all queues together."),
  })
    .optional()
    .describe(
      "**Measured** errors: of the stretches simulated behind those that were skipped, against what was repeated in these: `mean`, `worst` of `goodput`, `shares`, `marks`, `queue`. They say nothing of what happened and was over within a skipped stretch.",
    ),
  stretches: z
    .array(open({ from_s: amount, to_s: amount, goodput: amount, shares: amount, marks: amount, queue: amount }))
    .describe(
      "Those that were skipped: `from_s`, `to_s`, and their errors. Series go on in them by the means that were repeated, in states that stand.",
    ),
}).describe(
  "Of `sim run --fast-forward`: what was skipped, and the measured errors ([guide](../guides/sim.md#fast-forward)).",
);

/** What a result has of either kind. */
export const fastForwardFields = {
  fast_forward: fastForwardResultSchema.optional(),
  fast_forward_graphs: recalledResultSchema.optional(),
};

/** A stretch that was skipped; times in ns, as the core tells of it (`SkippedStretch`): web pages do not know the types of the core. */
interface Skipped {
  from: number;
  to: number;
  judged: number;
  agrees: boolean;
  goodput: number;
  shares: number;
  marks: number;
  queues: number;
}

export type FastForwardResult = z.output<typeof fastForwardResultSchema>;

/** @param now Time reached, ns. */
export function fastForwardResult(
  { reason, share, stretches }: { reason: string; share: number; stretches: readonly Skipped[] },
  bound: number,
  now: number,
): FastForwardResult {
  const length = ({ from, to }: { from: number; to: number }) => Math.min(to, now) - from;
  const judged = stretches.filter((stretch) => stretch.judged > 0);
  const skipped = stretches.reduce((sum, stretch) => sum + length(stretch), 0);
  const weights = judged.reduce((sum, stretch) => sum + length(stretch), 0);
  const error = (of: "goodput" | "shares" | "marks" | "queues") => ({
    mean: judged.reduce((sum, stretch) => sum + stretch[of] * length(stretch), 0) / weights,
    worst: Math.max(...judged.map((stretch) => stretch[of])),
  });
  const simulated = judged.reduce((sum, stretch) => sum + stretch.judged, 0);
  return {
    bound,
    skipped_s: skipped / 1e9,
    skipped: now > 0 ? skipped / now : 0,
    judged_s: simulated / 1e9,
    verified: { asked: share, reached: skipped > 0 ? simulated / skipped : 0 },
    jumps: stretches.length,
    judged: judged.length,
    disagreed: judged.filter(({ agrees }) => !agrees).length,
    ...(reason !== "" && { reason }),
    ...(judged.length > 0 && {
      errors: { goodput: error("goodput"), shares: error("shares"), marks: error("marks"), queue: error("queues") },
    }),
    stretches: stretches.map(({ from, to, goodput, shares, marks, queues }) => ({
      ...{ from_s: from / 1e9, to_s: Math.min(to, now) / 1e9 },
      ...{ goodput, shares, marks, queue: queues },
    })),
  };
}

/** Why such a run is not to be believed; empty: it is. */
export function fastForwardReasons({ bound, errors }: FastForwardResult): string[] {
  if (errors === undefined) return [];
  const beyond = (["goodput", "marks", "queue"] as const).filter((of) => errors[of].mean > bound);
  return beyond.map(
    (of) =>
      `skipped time is off by ${percent(errors[of].mean)} in ${of}, more than the bound of ${percent(bound)}: use --fast-forward off`,
  );
}

/** Returns "fast-forward: 97.0% of the time skipped in 5 stretches, 0.4% of it verified (0.2% asked), measured errors: goodput 0.2%, single flows 1.6%, ...". */
export function fastForwardLine({ skipped, verified, jumps, reason, errors }: FastForwardResult): string {
  if (reason !== undefined) return `fast-forward: nothing was skipped: ${reason}`;
  const measured = (["goodput", "shares", "marks", "queue"] as const).map(
    (of) => errors && `${of === "shares" ? "single flows" : of} ${percent(errors[of].mean)}`,
  );
  const stretches = jumps === 1 ? "1 stretch" : `${jumps} stretches`;
  const known = errors === undefined ? "errors not measured" : `measured errors: ${measured.join(", ")}`;
  return `fast-forward: ${percent(skipped)} of the time skipped in ${stretches}, ${verifiedText(verified)}, ${known}`;
}

/** Returns a warning where flows were not alike in stretches that all together were. */
export function sharesWarning({ bound, errors }: FastForwardResult): string | undefined {
  if (errors === undefined || errors.shares.mean <= bound) return undefined;
  return (
    `fast-forward: goodputs of single flows, and Jain's index, are those of the stretches that were repeated, between which flows ` +
    `differ by ${percent(errors.shares.mean)}; totals and queues hold`
  );
}
