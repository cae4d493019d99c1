// Entries of the `traffic` section: queue pairs written out, and patterns that traffic.ts expands to flows.
import { z } from "zod";
import { WeirError } from "../base/error.js";
import { choice, field, flag, fraction, integer, rate, section, showValue, size, time } from "../base/fields.js";
import { nearest } from "../base/nearest.js";
import { parseSize } from "../base/units.js";
import { kRdmaPriority } from "../wire/priority.js";
import { graphFields, kCollectiveAlgorithms, kCollectiveOperations } from "./graphs/job_schema.js";
import { kDistributionNames } from "./size_distribution.js";

/** Bytes of the longest message that RDMA knows. */
export const kLongestMessage = 2 ** 31;

const pattern = <const Pattern extends string>(name: Pattern, description: string) =>
  z.literal(name).meta({ description });

const idSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, { error: "an id has up to 64 letters, digits, - _ or ." })
  .optional();

const patternId = (name: string) =>
  idSchema.meta({ description: "Name of the group; its flows are called after it.", default: name });

/** Fields of every entry. */
const common = {
  priority: integer("Priority (traffic class) of the data.", 0, 7, kRdmaPriority),
  dscp: integer("DSCP of the data. Default: one that the switch maps to `priority`.", 0, 63),
  start: time("When to start, from the start of traffic.", { default: "0ms" }),
  stop: time("When to stop. Default: the end."),
  operation: choice(
    "RDMA operation. With `read` the receiver of the data asks for each message, 16 requests at a time: reliable connections only (`transport.type: rc`).",
    ["write", "send", "read"],
    "write",
  ),
  source_mac: choice(
    "Source address of the frames: the host's, or one for each flow, as of packet generators that share a link.",
    ["host", "own"],
    "host",
  ),
};

/** Fields of entries whose flows send messages of one size, one after another. */
const streams = {
  message: size("Size of one message.", { default: "4MB", min: 1, max: kLongestMessage }),
  rate: rate("Cap on the rate that the application offers. Default: none."),
  bytes: size("Total to send, after which the flow is done. Default: no limit.", { min: 1, max: 1e15 }),
  outstanding: integer("Messages posted at a time; reliable connections only (`transport.type: rc`).", 1, 1024, 2),
  qps: integer("Queue pairs of each sender; each is a flow of its own.", 1, 1024, 1),
};

const csv = (description: string) =>
  z
    .string()
    .min(1)
    .meta({ description: `${description} The path is relative to the scenario file.` });

/** A distribution's name, or bytes. */
const namedOrFixed = z.union([z.string(), z.number()]).transform((input, context) => {
  const name = kDistributionNames.find((known) => known === input);
  if (name !== undefined) return name;
  try {
    const bytes = parseSize(input);
    if (bytes >= 1 && bytes <= kLongestMessage) return bytes;
    const hint = `must be 1 B to ${kLongestMessage} B`;
    context.addIssue({ code: "custom", message: `${input} is out of range`, params: { hint }, input });
  } catch (error) {
    if (!(error instanceof WeirError)) throw error;
    const names = kDistributionNames.join(", ");
    const meant = nearest(String(input), kDistributionNames);
    const hint = meant === undefined ? `use ${names}, a size, or { csv: FILE }` : `did you mean ${meant}?`;
    context.addIssue({ code: "custom", message: error.message, params: { hint }, input });
  }
  return z.NEVER;
});

const sizes = (description: string) =>
  z
    .union([
      namedOrFixed,
      section({ csv: csv("Columns `size_bytes` and `cdf` (from 0 or more, rising to 1), linear in between.") }),
    ])
    .meta({
      description: `${description} \`web-search\`, \`data-mining\`, \`storage\`, a size, or \`{ csv: FILE }\`.`,
    });

const hosts = field(z.array(z.string()).min(2), "Hosts that take part. Default: all.");

const flows = section({
  pattern: pattern("flows", "One flow for each sender; the default.").optional(),
  id: idSchema.meta({
    description: "Name of the flow, or of the group if there are several senders. Default: from-to.",
  }),
  from: z.union([z.string(), z.array(z.string())]).meta({ description: "Sending host, or a list of them." }),
  to: z.string().meta({ description: "Receiving host." }),
  ...common,
  ...streams,
});

const incast = section({
  pattern: pattern("incast", "Several hosts send to one at the same time."),
  id: patternId("incast"),
  to: field(z.string(), "Receiving host. Default: one chosen at random."),
  from: field(z.array(z.string()).min(1), "Sending hosts; or give `degree`."),
  degree: integer("Number of senders, chosen at random among the other hosts.", 1, 65_000),
  period: time("Send `bytes` again each time this has passed. Default: once.", { min: 1 }),
  ...common,
  ...streams,
}).superRefine(({ from, degree, period, bytes }, context) => {
  const problem = (path: string, message: string, hint: string) =>
    context.addIssue({ code: "custom", message, path: [path], params: { hint } });
  if (from === undefined && degree === undefined) problem("degree", "is missing", "give degree, or from");
  if (from !== undefined && degree !== undefined) problem("degree", "from is given too", "give one of the two");
  if (period !== undefined && bytes === undefined) problem("period", "nothing ends", "give bytes too");
});

const permutation = section({
  pattern: pattern("permutation", "Every host sends to one other and receives from one other, at random."),
  id: patternId("permutation"),
  hosts,
  ...common,
  ...streams,
});

const poisson = section({
  pattern: pattern(
    "poisson",
    "Flows arrive at random and go to random hosts; each is a queue pair that sends one message.",
  ),
  id: patternId("poisson"),
  load: fraction("Bytes that arrive, as a share of what the hosts' links can send.", { min: 1e-6 })
    .unwrap()
    .meta({ description: "Bytes that arrive, as a share of what the hosts' links can send. Greater than 0, to 1." }),
  sizes: sizes("Sizes of the flows."),
  hosts,
  ...common,
});

const pairs = section({
  pattern: pattern(
    "pairs",
    "Hosts in random pairs, each of which sends one message after another, the next when the one before is complete (`transport.type: rc`).",
  ),
  id: patternId("pairs"),
  count: z
    .int()
    .min(1)
    .max(1_000_000)
    .meta({ description: "Number of pairs. All hosts send in as many pairs, or one more." }),
  sizes: sizes("Sizes of the messages."),
  hosts,
  ...common,
});

const list = section({
  pattern: pattern("list", "Flows from a file, each a queue pair that sends one message."),
  id: patternId("list"),
  csv: csv(
    "Columns `src`, `dst` (hosts by name, or by number from 0 in the order of the topology), `size_bytes` and `start_s` (or `start_ns`), from `start` on.",
  ),
  ...common,
});

const graph = section({
  pattern: pattern(
    "graph",
    "Messages that wait for others, from a file: a program, an iteration of training, a collective ([message graphs](graphs.md)); `transport.type: rc`.",
  ),
  id: patternId("graph"),
  file: z.string().min(1).meta({
    description:
      "The graph: GOAL, Chakra, AICB, MSCCL, a connection matrix of htsim, or YAML. The path is relative to the scenario file.",
  }),
  size: size("Of the collective, where the file does not say (MSCCL).", { default: "1MB", min: 1, max: 1e15 }),
  ranks: integer("How many, where the file does not say (AICB).", 1, 1_000_000),
  calculation: field(
    z.number().min(0).max(1e6),
    "Factor for the times of all calculations: 0.5 for ranks that are twice as fast, 1 / scale for what was recorded in a lab, 0 for none. 0 to 1000000.",
    1,
  ),
  ...graphFields,
  ...common,
});

const collective = section({
  pattern: pattern(
    "collective",
    "A collective operation of all ranks ([message graphs](graphs.md)); `transport.type: rc`.",
  ),
  id: patternId("collective"),
  collective: z.enum(kCollectiveOperations).meta({ description: "Which." }),
  size: size("Of a rank's larger buffer, as nccl-tests count it.", { default: "1MB", min: 1, max: 1e15 }),
  algorithm: z
    .enum([...kCollectiveAlgorithms, "auto"])
    .optional()
    .meta({
      description:
        "Which, of those that the operation has; `auto`: ring, tree or PAT, as NCCL would choose. Default: `ring`, or the operation's first.",
    }),
  tuner: csv("Rules of NCCL's example tuner plugin, which decide before `auto` does.").optional(),
  ranks: integer("How many. Default: as many as there is room for.", 1, 1_000_000),
  iterations: integer("How often, one after another.", 1, 1_000_000, 1),
  channels: integer("Rings or trees among which the data are divided.", 1, 64, 1),
  chunk: size("Most of a message; longer ones are sent in parts, which follow one another. Default: no limit.", {
    min: 1,
    max: 1e15,
  }),
  ...graphFields,
  ...common,
});

const tcp = section({
  pattern: pattern("tcp", "Connections of TCP between the kernels of hosts, as iperf3 makes them. Labs only."),
  id: patternId("tcp"),
  from: z.union([z.string(), z.array(z.string()).min(1)]).meta({ description: "Sending host, or a list of them." }),
  to: z.string().meta({ description: "Receiving host." }),
  streams: integer("Connections of each sender; each is a flow of its own.", 1, 256, 1),
  control: field(
    z.string().regex(/^[a-z0-9_]{1,15}$/, { error: "the name of a congestion control of TCP, such as dctcp" }),
    "Congestion control, by the name that Linux has for it: `cubic`, `reno`, `dctcp`, `bbr`, ... Its module must be there.",
    "cubic",
  ),
  priority: integer("Priority (traffic class) of the data.", 0, 7, 0),
  dscp: common.dscp,
  start: common.start,
  stop: common.stop,
  rate: rate("Most that each connection sends (pacing). Default: no limit."),
  bytes: size("Total that each connection sends. Default: no limit.", { min: 1, max: 1e15 }),
});

const program = section({
  pattern: z.literal("program").meta({
    description: "A program that runs on a host; the default where there is `run`. Labs, and virtual time.",
    default: "program",
  }),
  id: idSchema.meta({ description: "Name in the result, and of its output. Default: that of the program." }),
  run: z
    .string()
    .min(1)
    .max(10_000)
    .meta({ description: "Command line, for `sh`, in the folder where weir was started." }),
  on: z
    .union([z.string(), z.array(z.string()).min(1)])
    .meta({ description: "Host that it runs on, or a list of hosts, each with one of its own." }),
  start: time("When to start, from the start of traffic, as the scenario means it: times the scale for the program.", {
    default: "0ms",
  }),
  after: field(
    z.union([z.string(), z.array(z.string()).min(1)]),
    "Not before this other entry (its `id`) is ready: listens, where it has `listens`, else has ended with exit status 0.",
  ),
  listens: integer(
    "Port of TCP or of librdmacm at which it is ready once something of its host listens there.",
    1,
    65_535,
  ),
  compute: field(
    z.union(
      [
        z.literal("free"),
        section({
          measured: z.number().min(0.001).max(1000).meta({
            description:
              "Virtual time that passes for each time of this machine's processors that a thread uses: 1 as here, 2 for processors half as fast. 0.001 to 1000.",
          }),
        }),
      ],
      { error: (issue) => `${showValue(issue.input)} is not free, or { measured: FACTOR }` },
    ),
    "Of virtual time: what it costs that the program computes. `free`: nothing. `{ measured: FACTOR }`: the processor time that each of its threads uses, times the factor ([programs in virtual time](../guides/sim-programs.md#what-programs-compute)); runs differ then. In a lab it takes what it takes, whatever is here.",
    "free",
  ),
  background: flag(
    "Nobody waits for it: it may still run at the end, and is told to end then. Any other has to end by itself, with exit status 0.",
    false,
  ),
});

/** Fills in the pattern `program`: an entry with `run` need not name it. */
function withPattern(input: unknown): unknown {
  const runs = typeof input === "object" && input !== null && "run" in input && !("pattern" in input);
  return runs ? { ...input, pattern: "program" } : input;
}

export const trafficSchema = z.preprocess(
  withPattern,
  z.discriminatedUnion("pattern", [flows, incast, permutation, poisson, pairs, list, graph, collective, tcp, program]),
);

/** These schemas hold the defaults of entries that make no flows of RDMA. */
export { program as programSchema, tcp as tcpSchema };

/** Defaults of all fields that have one. */
export const trafficDefaultsSchema = section({ ...common, ...streams });

export type TrafficInput = z.output<typeof trafficSchema>;
/** The entries of one pattern. */
export type PatternInput<Name extends string> = Extract<TrafficInput, { pattern: Name }>;
export type FlowsInput = z.output<typeof flows>;
/** Entries that make flows of RDMA. */
export type FlowEntryInput = Exclude<TrafficInput, { pattern: "tcp" | "program" }>;
