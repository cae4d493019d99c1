/** Fields that a result or its series may carry beyond the contract; what has the wrong shape counts as absent. */
import { z } from "zod";
import type { Result, Series } from "./result.js";

const samplesByName = z.record(z.string(), z.array(z.number()));
const points = z.array(z.tuple([z.number(), z.number()]));

const resultFields = z.object({
  /** Bytes of payload in a full packet; several where hosts differ. */
  path_mtu: z
    .union([z.number(), z.array(z.number())])
    .optional()
    .catch(undefined),
  totals: z.object({
    /** Goodput that would fill the access links: their rate less all headers, bit/s. */
    goodput_limit_bps: z.number().optional().catch(undefined),
  }),
  /** Of reliable connections, all hosts together. */
  transport: z
    .object({
      /** Data packets that were sent again. */
      retransmitted: z.number(),
    })
    .optional()
    .catch(undefined),
  switches: z.record(
    z.string(),
    z.object({
      /** Peer -> priority -> time-weighted distribution after the warm-up: [bytes, fraction of time at or below]. */
      queue_cdf: z.record(z.string(), z.record(z.string(), points)).optional().catch(undefined),
    }),
  ),
});

const seriesFields = z.object({
  /** By host: CNPs sent in the interval. */
  cnps: samplesByName.optional().catch(undefined),
});

export function resultExtras(result: Result): z.output<typeof resultFields> {
  return resultFields.parse(result);
}

export function seriesExtras(series: Series): z.output<typeof seriesFields> {
  return seriesFields.parse(series);
}
