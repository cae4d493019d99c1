// The scenario file as users write it. Every field is optional where a default exists; resolve.ts fills the defaults in.
import { z } from "zod";
import { field, integer, section, showValue, time } from "../base/fields.js";
import { congestionSchema } from "../congestion/section.js";
import { changeSchema } from "./change_schema.js";
import { hostSchema, interfaceSchema, linkText, nameSchema, switchSchema } from "./device_schema.js";
import { scenarioFault } from "./fault_schema.js";
import { topologySchema } from "./topology_schema.js";
import { trafficSchema } from "./traffic_schema.js";
import { transportSchema } from "./transport_schema.js";

/** Most queues that are sampled where the scenario does not choose them. */
export const kMostDefaultProbes = 64;

export const probesSchema = section({
  interval: time("Time between samples of the series.", { default: "100us", min: 1_000 }),
  queues: z
    .array(
      z.string().regex(/^[^:\s]+:[^:\s]+:[0-7]$/, {
        error: (issue) => `${String(issue.input)}: write a queue as "switch:peer:priority"`,
      }),
    )
    .optional()
    .meta({
      description: `Queues to sample, as "switch:peer:priority". Default: those of the ports that face a traffic destination or a host of programs, the first ${kMostDefaultProbes} of them.`,
    }),
  flows: integer("How many of the flows, in order, have series.", 0, 1_000_000, 64),
});

export const failureSchema = section({
  link: field(linkText, 'Link that fails, in both directions: "a -- b".'),
  switch: field(z.string(), "Or switch that fails, with all its links."),
  at: time("When, from the start of traffic.").unwrap().meta({ description: "When, from the start of traffic." }),
  until: time("When it is there again. Default: never."),
  reroute: time("How long after that routes follow: both times.", { default: "1ms", max: 10e9 }),
});

const failure = failureSchema.superRefine(({ link, switch: name, at, until }, context) => {
  const problem = (path: string, message: string, hint: string) =>
    context.addIssue({ code: "custom", message, path: [path], params: { hint } });
  if (link === undefined && name === undefined) problem("link", "is missing", "give link, or switch");
  if (link !== undefined && name !== undefined) problem("switch", "link is given too", "give one of the two");
  if (until !== undefined && until <= at) problem("until", "is not after `at`", "give a later time, or leave it out");
});

export const partSchema = section({
  nodes: z.array(z.string()).min(1).max(10_000).meta({
    description: "Its switches and hosts. Hosts that no part names are with their switch.",
  }),
  interfaces: field(
    z.record(z.string().max(100), interfaceSchema),
    'Each link to another part, "a -- b" -> the interface of this machine that is its end here. It exists, and what is sent there comes out at the other part\'s.',
    {},
  ),
});

/** The seed of a scenario that names none. */
export const kDefaultSeed = 1;

export const scenarioSchema = section({
  name: z
    .string()
    .regex(/^[^/\p{C}]{1,100}$/u, { error: "a name has up to 100 printable characters, without /" })
    .optional()
    .meta({ description: "Name of the scenario. Default: the file's name." }),
  description: field(z.string().max(10_000), "What it shows.", ""),
  scale: field(
    z.union([z.number().min(1).max(1e6), z.literal("auto")], {
      error: (issue) => `${showValue(issue.input)} is not a number from 1 to 1000000, or auto`,
    }),
    "On the wire rates are divided by this and times multiplied by it; results are in the units meant. 1 to 1000000, or auto.",
    "auto",
  ),
  seed: integer(
    "Seed of everything random. The same seed gives the same simulation.",
    0,
    Number.MAX_SAFE_INTEGER,
    kDefaultSeed,
  ),
  duration: time("How long traffic runs.", { default: "100ms", min: 1_000 }),
  warmup: time(
    "Start of the run that is left out of steady-state figures. Default: 20% of the duration; none of a run that ends with its message graphs, or with programs that are all its traffic.",
  ),
  topology: topologySchema.meta({ description: "Hosts, switches and the links between them: a kind, or written out." }),
  switch: field(switchSchema, "Defaults of every switch."),
  host: field(hostSchema, "Defaults of every host."),
  congestion: field(congestionSchema, "Congestion control of the hosts."),
  transport: field(transportSchema, "How the queue pairs carry their messages."),
  traffic: field(z.array(trafficSchema), "Who sends what to whom.", []),
  changes: field(
    z.array(changeSchema).max(1000),
    "Service rates of switches' egress queues that change while traffic runs.",
    [],
  ),
  failures: field(
    z.array(failure).max(1000),
    "Links and switches that fail while traffic runs, with routes that follow.",
    [],
  ),
  faults: field(
    z.array(scenarioFault).max(1000),
    "Faults that are made to frames, and to links, while traffic runs ([faults](../guides/faults.md)). Routes do not follow, but where a link that is down has `reroute`.",
    [],
  ),
  parts: field(
    z.record(nameSchema, partSchema),
    "The same network on several machines: name -> what of it one machine runs ([labs on several machines](../guides/lab-parts.md)). Without `--part` a lab runs all of it.",
    {},
  ),
  probes: field(probesSchema, "Series that are recorded."),
  expect: field(
    z.array(z.string().max(1000)).max(1000),
    "What the result is to be, each `FIELD OPERATOR VALUE`: `flows.*.lost == 0`, `totals.goodput_bps >= 36Gbps`. Else the exit status is 4. Fields are those of [results](results.md), `*` is each.",
    [],
  ),
  fidelity: field(
    section({
      lateness: time(
        "Wall-clock allowance for late feedback on the wire: adds headroom, and a run that exceeds it is invalid.",
        { default: "50ms", max: 1e9 },
      ),
    }),
    "What a wire run must hold.",
  ),
});

/** The scenario after parsing, before defaults: base units, names and sections as written. */
export type ScenarioInput = z.output<typeof scenarioSchema>;
