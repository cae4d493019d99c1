// Fields of traffic entries that are message graphs.
import { z } from "zod";
import { field, integer, rate, section, size, time } from "../../base/fields.js";

const placeSchema = z.union([z.enum(["packed", "round-robin", "random"]), z.array(z.string()).min(1)], {
  error: "use packed, round-robin, random, or a list with the host of each rank",
});

/** Bytes of a collective, where nobody says. */
export const kDefaultSize = 1_000_000;
export const kBarrierSize = 8;

export const kCollectiveOperations = [
  "allreduce",
  "allgather",
  "reducescatter",
  "alltoall",
  "broadcast",
  "barrier",
] as const;

/** All algorithms of collectives; which operation has which, src/scenario/graphs/collectives/ says. */
export const kCollectiveAlgorithms = [
  "ring",
  "tree",
  "halving-doubling",
  "two-level-ring",
  "two-level-tree",
  "direct",
  "pat",
  "pairwise",
  "pxn",
  "binomial",
  "dissemination",
] as const;

export const graphFields = {
  hosts: field(z.array(z.string()).min(1), "Hosts that ranks may be on. Default: all."),
  per_host: integer("Most ranks on a host: on a NIC, where machines have several.", 1, 1024, 1),
  place: field(
    placeSchema,
    "Which rank is where: `packed`: host by host, as many as `per_host`, and machine by machine; `round-robin`: machines in turns, and then the next NIC of each; `random`: as `packed`, machines in random order; or a list with the host of each rank.",
    "packed",
  ),
  outstanding: integer("Messages of one rank to another that are under way at a time; others wait.", 1, 1024, 16),
  eager: size(
    "Sends of at most that size end when they start, as their buffer is copied. Longer ones end when they are acknowledged.",
    {
      default: "64KiB",
      max: 1e15,
    },
  ),
  rendezvous: size("Longer sends ask first, and move when the receive that takes them is posted. Default: none does.", {
    min: 0,
    max: 1e15,
  }),
  inside_rate: rate("Of each rank's link to others of its machine.", { zero: "unlimited", default: "unlimited" }),
  inside_latency: time("Of messages between ranks of a machine.", { default: "0ns" }),
};

/** Defaults of all fields that have one. */
export const graphDefaultsSchema = section({
  per_host: graphFields.per_host,
  place: graphFields.place,
  outstanding: graphFields.outstanding,
  eager: graphFields.eager,
  inside_rate: graphFields.inside_rate,
  inside_latency: graphFields.inside_latency,
});

export type Placement = z.output<typeof placeSchema>;

/** What users write, besides what all entries have. */
export interface GraphFields {
  hosts?: string[] | undefined;
  per_host?: number | undefined;
  place?: Placement | undefined;
  outstanding?: number | undefined;
  eager?: number | undefined;
  rendezvous?: number | undefined;
  inside_rate?: number | undefined;
  inside_latency?: number | undefined;
  operation?: string | undefined;
}
