// Results of message graphs: part of result.ts.
import { z } from "zod";

const count = z.int().min(0);
const amount = z.number().min(0);
const open = z.looseObject;

export const graphResultSchema = open({
  id: z.string().describe("`traffic` id."),
  source: z.string().describe("File, or collective."),
  ranks: count.describe("How many there are."),
  operations: count.describe("Sends, receives and calculations of all ranks."),
  ended: count.describe("How many of those ended."),
  messages: count.describe("Sends."),
  bytes: amount.describe("Of all messages."),
  time_s: amount
    .optional()
    .describe(
      "From its start until the last receive and calculation ended; absent where not all did. Acknowledgements of the last messages come later.",
    ),
  ideal_s: amount
    .optional()
    .describe(
      "The same on an ideal network: each message alone, propagation of its path and its bytes at the slowest link's rate.",
    ),
  slowdown: amount
    .optional()
    .describe("Quotient `time_s` / `ideal_s`: what headers, acknowledgements and congestion cost."),
  calculation_s: amount.describe("Time for which a rank calculates, mean of all."),
  exposed_s: amount.describe(
    "Time for which a rank has not ended and calculates nothing, mean of all: exposed communication.",
  ),
  phases: z
    .array(
      open({
        name: z.string(),
        start_s: amount.describe("First start."),
        end_s: amount.describe("Last end."),
        calculation_s: amount.describe("Time for which a rank calculates in it, mean of all."),
      }),
    )
    .describe("Phases that the graph names; times from its start."),
  time_line: z
    .array(
      open({
        rank: count,
        host: z.string(),
        end_s: amount.describe("When it had ended."),
        calculations: z
          .array(z.tuple([amount, amount]))
          .describe("From and to, s: at most 200, with the shortest gaps closed."),
      }),
    )
    .optional()
    .describe("Of the first 64 ranks, from the start of the graph."),
  progress: open({
    steps: count.describe("Parts of the same size into which receives and calculations are divided: at most 200."),
    reached_s: z.array(amount).describe("When each of these parts had ended; shorter than `steps` where not all did."),
    ideal_s: z.array(amount).describe("The same on the ideal network."),
  })
    .optional()
    .describe("How far it had come at each time, from its start."),
  critical: open({
    calculation_s: amount.describe("Calculations on it."),
    network_s: amount.describe("Messages on it, from their start to their receive's end."),
    processor_s: amount.describe("Waiting for the rank's processor, with another calculation."),
    messages: count.describe("How many messages are on it."),
    ranks: count.describe("How many ranks it touches."),
  })
    .optional()
    .describe("The critical path: the chain of operations, each of which waited for the one before, that ended last."),
}).describe("What became of one message graph.");

export type GraphResult = z.output<typeof graphResultSchema>;
