/** What a result tells of message graphs of which phases came from memory, and of what that cost. */
import { z } from "zod";
import { percent } from "./report/format.js";

const part = z.number().min(0);
const count = z.int().min(0);
const open = z.looseObject;

/** Of what was skipped, the part that was simulated as well and compared. */
export const verifiedSchema = open({ asked: part.optional(), reached: part });

export const recalledResultSchema = open({
  bound: part.describe("Part by which the mean length of phases may differ."),
  skipped: part.describe("Part of the bytes of all messages that was not sent as packets."),
  messages: count.describe("Messages from machine to machine that were begun."),
  messages_skipped: count.describe("How many of these came by memory alone."),
  phases: count.describe("Phases: sets of messages that met on links."),
  recalled: count.describe("How many of these came from memory."),
  known: count.describe("Kinds of phases that are remembered."),
  left: count.describe("Phases that went on unlike what was remembered: the rest of their messages was simulated."),
  left_part: part.describe("Part of the bytes of all messages that was sent so, from the middle of a message on."),
  stretches: count.describe("Stretches in which all phases that began were simulated, known or not."),
  judged: count.describe("Phases that were known, were simulated, and compared."),
  judged_messages: count.describe("Their messages."),
  verified: verifiedSchema.describe(
    "Of the bytes of messages that were known, the part that was simulated and compared: `asked`, at least (absent without `--verify`), and `reached`. It is less than asked where phases that began as known ones went on otherwise.",
  ),
  contended: part.describe(
    "Part of the time that all messages took, of those that were simulated and met messages of other flows.",
  ),
  judged_contended: count.describe("How many of the phases that were compared were of several flows."),
  reason: z.string().optional().describe("Why nothing is skipped, or from some time on nothing more."),
  errors: open({
    mean: part.describe("Sum of the absolute differences of lengths, over the sum of lengths."),
    bias: z.number().describe("The same with signs: positive where memory is longer."),
    worst: part.describe("Largest difference, as a part of its phase's length."),
    contended: part.describe("The mean of phases of several flows alone; 0 where none was compared."),
    messages: open({ mean: part, p99: part }).describe(
      "Of completion times of the messages of these phases, as `fct` has them: `mean` as above, and 99th percentile `p99` of each message's difference as a part of its own time.",
    ),
  })
    .optional()
    .describe(
      "**Measured** errors of the lengths of phases: what was remembered against what was simulated. Absent where nothing was compared.",
    ),
}).describe(
  "Of `sim run --fast-forward` with message graphs: what came from memory, and the measured errors ([guide](../guides/collectives.md#by-memory)).",
);

export type RecalledResult = z.output<typeof recalledResultSchema>;

/** As the core tells of it (`LearnedReport`): web pages do not know the types of the core. */
interface Learned {
  reason: string;
  messages: number;
  skipped: number;
  bytes: number;
  skipped_bytes: number;
  phases: number;
  recalled: number;
  known: number;
  left: number;
  left_bytes: number;
  judged: number;
  judged_messages: number;
  stretches: number;
  error: number;
  bias: number;
  worst: number;
  contended: number;
  judged_contended: number;
  contended_error: number;
  share: number;
  judged_bytes: number;
  message_error: number;
  message_p99: number;
}

export function recalledResult(learned: Learned, bound: number): RecalledResult {
  const { reason, messages, skipped, bytes, phases, recalled, known, left, judged, judged_messages, stretches } =
    learned;
  const { contended, judged_contended, contended_error, share, judged_bytes, skipped_bytes } = learned;
  const certain = judged_bytes + skipped_bytes;
  const ofBytes = (one: number) => (bytes > 0 ? one / bytes : 0);
  return {
    ...{ bound, skipped: ofBytes(learned.skipped_bytes), messages, messages_skipped: skipped },
    ...{ phases, recalled, known, left, left_part: ofBytes(learned.left_bytes), stretches, judged, judged_messages },
    verified: { ...(share > 0 && { asked: share }), reached: certain > 0 ? judged_bytes / certain : 0 },
    ...{ contended, judged_contended },
    ...(reason !== "" && { reason }),
    ...(judged > 0 && {
      errors: {
        ...{ mean: learned.error, bias: learned.bias, worst: learned.worst, contended: contended_error },
        messages: { mean: learned.message_error, p99: learned.message_p99 },
      },
    }),
  };
}

/** Fewer messages, or fewer phases, than these say nothing of all others; nor do fewer phases of several flows of such. */
const kFewestMessages = 20;
const kFewestPhases = 3;
const kMostContended = 1 / 3;
/**
 * A step of a graph waits for the slowest of many, and memory has means: of 100 normal deviates the largest is 2.5 standard
 * deviations beyond the mean, which are 3 mean deviations.
 */
const kSlowestOfMany = 3;

/** How far the slowest of many phases may be off: by the bias, which all have, and by what varies around it. */
const slowestError = ({ mean, bias }: { mean: number; bias: number }) =>
  Math.abs(bias) + kSlowestOfMany * (mean - Math.abs(bias));

/**
 * Why such a run is not to be believed; empty: it is. Where flows contend, a difference of a nanosecond is another draw of
 * marks: only where such phases came again, and ended alike, is it known that it does not matter.
 */
export function recalledReasons(recalled: RecalledResult): string[] {
  const { bound, skipped, left_part, judged, judged_messages, judged_contended, contended, errors } = recalled;
  if (skipped === 0) return [];
  const reasons: string[] = [];
  if (judged < kFewestPhases || judged_messages < kFewestMessages) {
    reasons.push(
      `${percent(skipped)} of all bytes came from memory, and ${judged} phases of ${judged_messages} messages were compared, of ${kFewestPhases} and ${kFewestMessages} that it takes`,
    );
  }
  if (errors !== undefined && slowestError(errors) > bound) {
    reasons.push(
      `phases that came from memory are off by ${percent(errors.mean)}, and the slowest of many by ${percent(slowestError(errors))}, more than the bound of ${percent(bound)}`,
    );
  }
  if (contended > bound && judged_contended < kFewestPhases) {
    reasons.push(
      `flows that contend took ${percent(contended)} of the time of all messages, and ${judged_contended} such phases came again, of ${kFewestPhases} that it takes: what becomes of them may be chance`,
    );
  } else if (contended > kMostContended) {
    reasons.push(
      `flows that contend and were simulated took ${percent(contended)} of the time of all messages, more than a third: rates that contention left behind are not remembered`,
    );
  } else if (contended > bound && errors !== undefined && errors.contended > bound) {
    reasons.push(
      `phases of flows that contend ended otherwise by ${percent(errors.contended)}, more than the bound of ${percent(bound)}`,
    );
  }
  if (left_part > bound) {
    reasons.push(
      `${percent(left_part)} of all bytes were simulated from the middle of a message on, more than the bound of ${percent(bound)}`,
    );
  }
  return reasons.map((reason) => `${reason}: use --fast-forward off`);
}

/** Returns "0.4% of it verified (0.2% asked)". */
export function verifiedText({ asked, reached }: z.output<typeof verifiedSchema>): string {
  return `${percent(reached)} of it verified${asked === undefined ? "" : ` (${percent(asked)} asked)`}`;
}

/**
 * Returns "fast-forward: 97.1% of the bytes from memory, 3654 of 4096 phases, 2.1% of it verified (2.0% asked), measured error 0.1%,
 * worst 0.4%, of completion times 0.1%, p99 0.3%".
 */
export function recalledLine({ skipped, phases, recalled, verified, reason, errors }: RecalledResult): string {
  if (skipped === 0) return `fast-forward: nothing was skipped: ${reason ?? "no phase came again"}`;
  const known =
    errors === undefined
      ? "error not measured"
      : `measured error ${percent(errors.mean)}, worst ${percent(errors.worst)}, of completion times ${percent(errors.messages.mean)}, p99 ${percent(errors.messages.p99)}`;
  const stopped = reason === undefined ? "" : `; then nothing more: ${reason}`;
  return `fast-forward: ${percent(skipped)} of the bytes from memory, ${recalled} of ${phases} phases, ${verifiedText(verified)}, ${known}${stopped}`;
}
