// Results of programs and connections of TCP in a lab.
import { z } from "zod";

const count = z.int().min(0);
const amount = z.number().min(0);

const outputSchema = z.looseObject({
  file: z.string().describe("In the run's folder."),
  bytes: count.describe("All that it wrote."),
  kept: count.describe("How much of it is in the file, from its beginning."),
  error: z.string().optional().describe("Why the file ends before that, such as a full disk."),
});

export const programResultSchema = z.looseObject({
  host: z.string().describe("Where it ran."),
  command: z.string().describe("As the scenario has it."),
  started_s: amount
    .optional()
    .describe(
      "When it started, s from the start of traffic, as the scenario means it: times `scale` in real time. Absent: it never did.",
    ),
  ended_s: amount.optional().describe("When it ended."),
  status: count.optional().describe("Exit status; absent where a signal ended it, or it never ran."),
  signal: z.string().optional().describe("Signal that ended it, such as SIGTERM of a `background` program at the end."),
  failure: z
    .string()
    .optional()
    .describe(
      "Why it failed: it did not start, ended otherwise than with exit status 0, or still ran at the end. The run's exit status is then 4.",
    ),
  stdout: outputSchema
    .optional()
    .describe(
      "`file` in the run's folder, `bytes` that it wrote, `kept` in the file: the first MiB; `error` of writing.",
    ),
  stderr: outputSchema.optional().describe("The same."),
  interface: z
    .looseObject({ tx_packets: count, tx_bytes: count, rx_packets: count, rx_bytes: count })
    .optional()
    .describe(
      "`tx_packets`, `tx_bytes`, `rx_packets`, `rx_bytes` of the host's `weir0` while it ran, of TCP and RDMA and whatever else ran there.",
    ),
  counters: z
    .record(z.string(), z.number())
    .optional()
    .describe(
      "What the [counters](metrics.md) of the host's NIC grew by while it ran, RDMA alone; zeros are left out. Times are real time.",
    ),
});

export const tcpResultSchema = z
  .looseObject({
    control: z.string().describe("Congestion control."),
    retransmitted: count.describe("Segments sent again."),
    rtt_us: z
      .looseObject({ mean: amount, min: amount, max: amount })
      .describe("Smoothed round trip times at the samples after the warm-up, us."),
    failure: z.string().optional().describe("Why it ended before its time."),
    cwnd_packets: z
      .looseObject({ mean: amount, max: amount })
      .describe("Congestion window at the same samples, segments."),
  })
  .describe(
    "Of TCP: `control`, segments `retransmitted`, `mean`, `min`, `max` of the smoothed round trip time `rtt_us`, `mean` and `max` of the window `cwnd_packets`, as the kernel has them (TCP_INFO), at samples after the warm-up; `failure`, where it ended before its time: the run's exit status is then 4.",
  );

export type ProgramResult = z.output<typeof programResultSchema>;
export type TcpResult = z.output<typeof tcpResultSchema>;
