/** `weir plan`: thresholds of a shared-buffer switch, marking and DCQCN parameters, and whether a scenario is lossless. */
import type { Command } from "commander";
import { stringify } from "yaml";
import { formatLength, formatSize, parseLength } from "../base/units.js";
import { type Converted, checkConverted, warningsOf } from "../device/sonic/convert.js";
import { checkSpeeds, scenarioOf } from "../device/sonic/plan.js";
import {
  type BufferPlanInput,
  checkPlan,
  headroomFor,
  kNanosecondsPerMetre,
  type PlanCheck,
  planBuffers,
  planEcn,
  SWITCH_PROFILES,
  type SwitchProfile,
} from "../models/buffers/index.js";
import { loadScenario } from "../scenario/scenario.js";
import { type AddVerb, asUsage, type CliContext, collect, kExit, print, UsageError, warn } from "./context.js";
import { integer } from "./device_options.js";
import { bufferText, checkText, ecnText, profileText } from "./plan_text.js";
import { quantity, rateOption, sizeOption, timeOption } from "./quantity.js";
import { load } from "./scenario_file.js";
import { convert, convertOptions, type SonicOptions, switchFields, withSonic } from "./sonic.js";

interface BufferChoice {
  profile?: SwitchProfile & { name: string };
  ports?: number;
  priorities: number;
  buffer?: number;
  headroom?: number;
  beta: number;
  kmin?: number;
  rate?: number;
  mtu: number;
  cable?: number;
  delay?: number;
  response?: number;
  interfaceDelay?: number;
  rtt?: number;
  flows: number;
  json?: boolean;
}

const kBuffersHelp = `
Section 4 of the DCQCN paper, for any switch. Without --headroom t_flight is computed from rate, MTU, cable and response time of the
peer, and its terms are listed. KB is 1000 bytes. docs/guides/planning.md has the formulas, and the assumptions behind the paper's figures.

Examples:
  weir plan buffers --profile trident2
  weir plan buffers --ports 32 --priorities 8 --buffer 12MB --headroom 22.4KB --beta 8 --kmin 5KB --json
  weir plan buffers --ports 32 --buffer 64MB --rate 400Gbps --cable 30m --priorities 2
  weir plan buffers --profile spectrum --priorities 2 --rtt 20us     with Kmin, Kmax, Pmax and timers

Exit status: 0 ok, 2 bad usage, or the buffer does not hold the headroom.
`;
const kEcnHelp = `
Scales what the DCQCN paper chose for 40 Gb/s and a feedback delay of 50 us; every line has its source. The YAML at the end goes into a
scenario.

Examples:
  weir plan ecn --rate 40Gbps --rtt 50us
  weir plan ecn --rate 100Gbps --rtt 20us --flows 64 --json
`;
const kCheckHelp = `
Says for each link whether the headroom holds what may come after a pause, and for each pair of ports that the traffic uses whether
marking begins before a pause; and whether pauses can wait for each other, by the paths of the traffic, or of all if there is none. Peers may take as long to obey as IEEE 802.3 allows; Weir's own obey at once: --response 0ns.

With --sonic it is about one switch, with a host at the end of each cable, and an incast of all ports to one at each lossless priority.

Examples:
  weir plan check examples/incast-4to1.yaml
  weir plan check --sonic config_db.json
  weir plan check scenario.yaml --response 0ns --set switch.buffer.headroom=30KB
  weir plan check scenario.yaml --json | jq '.links[] | select(.enough | not)'

Exit status: 0 lossless, ECN before PFC, and free of deadlock, 1 not so, nothing to judge, or an error, 2 bad usage or bad scenario. ECN is
no condition where the congestion control takes no marks (timely, swift, hpcc, qcn, none).
`;

const kDefaultRate = 40e9;
const kDefaultKmin = 5_000;
/** mm. */
const kDefaultCable = 100_000;

export const addPlan: AddVerb = (parent, context, done) => {
  const plan = parent.command("plan").description("plan buffers, PFC and ECN: thresholds, headroom, is it lossless?");
  addBuffers(plan, context);
  plan
    .command("ecn")
    .description("Kmin, Kmax, Pmax and DCQCN timers for a rate and a round-trip time")
    .requiredOption("--rate <rate>", "of the links", rateOption("--rate", kRates))
    .requiredOption("--rtt <time>", "round-trip time without queues", rttOption)
    .option("--mtu <bytes>", "largest IP packet", mtuOption, 1500)
    .option("--flows <n>", "flows that may meet at one port", flowsOption, 16)
    .option("--json", "one JSON document on stdout")
    .addHelpText("after", kEcnHelp)
    .action(({ json, ...input }: Parameters<typeof planEcn>[0] & { json?: boolean }) => {
      const found = planEcn(input);
      print(context, json, found, (color) => ecnText(found, color));
    });
  const check = plan
    .command("check")
    .description("is a scenario, or a SONiC switch, lossless, and does ECN act before PFC?")
    .argument("[scenario.yaml]", "scenario file");
  withSonic(check)
    .option("--response <time>", "what peers take to obey a pause (default: what IEEE 802.3 allows)", responseOption)
    .option("--set <path=value>", "override a field, repeatable", collect)
    .option("--json", "one JSON document on stdout")
    .addHelpText("after", kCheckHelp)
    .action((file: string | undefined, options: CheckChoice) => {
      const found = checked(context, file, options);
      print(context, options.json, found, (color) => checkText(found, color));
      const ordered = found.ecn_before_pfc || !found.ecn_heard;
      done(found.lossless && ordered && found.deadlock_free ? kExit.ok : kExit.failure);
    });
  plan
    .command("profiles")
    .description("list the switches that --profile knows, and their sources")
    .option("--json", "one JSON document on stdout")
    .addHelpText("after", "\nExample:\n  weir plan profiles\n")
    .action(({ json }: { json?: boolean }) =>
      print(context, json, SWITCH_PROFILES, (color) => profileText(SWITCH_PROFILES, color)),
    );
};

interface CheckChoice extends SonicOptions {
  response?: number;
  set?: string[];
  json?: boolean;
}

function checked(context: CliContext, file: string | undefined, options: CheckChoice): PlanCheck {
  const { sonic, set = [], response } = options;
  const chosen = convertOptions(options);
  if ((file === undefined) === (sonic === undefined)) {
    const message = file === undefined ? "no scenario" : "--sonic: not with a scenario";
    throw new UsageError(message, { hint: "give either a scenario.yaml, or --sonic config_db.json" });
  }
  if (sonic === undefined) return checkPlan(load(context, file ?? "", set).scenario, { response });
  const converted = convert(sonic, chosen);
  checkConverted(converted);
  checkSpeeds(converted);
  for (const warning of warningsOf(converted)) warn(context, warning);
  const text = stringify(scenarioOf(converted));
  const { scenario } = asUsage(() =>
    loadScenario(`${sonic} (as a scenario)`, { text, set: switchFields(set, "switch") }),
  );
  return withSharedHeadroom(checkPlan(scenario, { response }), converted);
}

/** SONiC's chips may have less headroom than their priority groups together. */
function withSharedHeadroom(check: PlanCheck, { shared_headroom, headroom }: Converted): PlanCheck {
  const least = Math.max(0, ...check.links.map(({ needed_bytes }) => needed_bytes));
  if (shared_headroom === 0 || shared_headroom >= headroom) return check;
  const message =
    `in SONiC all priority groups share ${formatSize(shared_headroom)} of headroom, and have ${formatSize(headroom)} together: ` +
    `it is enough for ${Math.floor(shared_headroom / Math.max(1, least))} of them that are paused at once`;
  return { ...check, findings: [...check.findings, { kind: "note", device: check.scenario, message }] };
}

function addBuffers(plan: Command, context: CliContext): void {
  plan
    .command("buffers")
    .description("t_flight, t_PFC and t_ECN of a shared-buffer switch")
    .option("--profile <name>", `a known switch: ${Object.keys(SWITCH_PROFILES).join(", ")}`, profile)
    .option("--ports <n>", "ports that share the buffer", integer("--ports", 1, 1024))
    .option("--priorities <n>", "priorities that headroom is kept for", integer("--priorities", 1, 8), 8)
    .option("--buffer <size>", "packet memory", sizeOption("--buffer", { least: 1_000, most: 1e12 }))
    .option("--headroom <size>", "t_flight (default: computed)", sizeOption("--headroom", { least: 0, most: 1e9 }))
    .option("--beta <n>", "dynamic threshold: t_PFC = beta (B - P n t_flight - s) / P", beta, 8)
    .option("--kmin <size>", "t_ECN to judge (default: 5 KB, or with --rtt the recommended one)", kmin)
    .option("--rate <rate>", "of the ports (default: the profile's, or 40 Gb/s)", rateOption("--rate", kRates))
    .option("--mtu <bytes>", "largest IP packet", mtuOption, 1500)
    .option("--cable <length>", `cable, at ${kNanosecondsPerMetre} ns/m (default: 100 m)`, cable)
    .option(
      "--delay <time>",
      "one-way propagation, instead of --cable",
      timeOption("--delay", { least: 0, most: 10e9 }),
    )
    .option("--response <time>", "what a peer takes to obey (default: what IEEE 802.3 allows)", responseOption)
    .option(
      "--interface-delay <time>",
      "MAC and PHY at one end, both directions (default: by rate)",
      timeOption("--interface-delay", { least: 0, most: 1e9 }),
    )
    .option("--rtt <time>", "recommend marking and timers for this round-trip time as well", rttOption)
    .option("--flows <n>", "for --rtt: flows that may meet at one port", flowsOption, 16)
    .option("--json", "one JSON document on stdout")
    .addHelpText("after", kBuffersHelp)
    .action((choice: BufferChoice) => buffers(context, choice));
}

function buffers(context: CliContext, choice: BufferChoice): void {
  const { profile: known, rtt, mtu, flows, json } = choice;
  const { ports = known?.ports, buffer = known?.buffer, rate = known?.rate ?? kDefaultRate } = choice;
  if (ports === undefined || buffer === undefined) {
    const missing = ports === undefined ? "--ports" : "--buffer";
    throw new UsageError(`${missing}: missing`, { hint: "give --ports and --buffer, or --profile" });
  }
  const recommended = rtt === undefined ? undefined : planEcn({ rate, rtt, mtu, flows });
  const input: BufferPlanInput = {
    ports,
    priorities: choice.priorities,
    buffer,
    headroom: headroom(choice, rate),
    beta: choice.beta,
    kmin: choice.kmin ?? recommended?.kmin_bytes ?? kDefaultKmin,
  };
  const plan = planBuffers(input);
  if (plan === undefined) throw noRoom(input);
  const found = {
    ...(known && { profile: known.name, profile_source: known.source }),
    ...plan,
    ...(recommended && { recommended }),
  };
  print(context, json, found, (color) => bufferText(found, color, recommended));
}

/** t_flight as given; else computed, if some of its terms were given; else the profile's. */
function headroom(choice: BufferChoice, rate: number): BufferPlanInput["headroom"] {
  const { headroom: given, profile: known, mtu, cable: length, delay, response, interfaceDelay } = choice;
  const terms = { "--cable": length, "--delay": delay, "--response": response, "--interface-delay": interfaceDelay };
  const named = Object.entries(terms).flatMap(([option, value]) => (value === undefined ? [] : [option]));
  if (given !== undefined) {
    if (named.length === 0) return given;
    throw new UsageError(`${named[0]}: not with --headroom`, { hint: "--headroom is t_flight itself" });
  }
  if (length !== undefined && delay !== undefined) {
    throw new UsageError("--delay: not with --cable", { hint: "give the length of the cable, or its delay" });
  }
  const computed = named.length > 0 || choice.rate !== undefined || mtu !== 1500;
  if (known?.headroom !== undefined && !computed) return known.headroom;
  const propagation = delay ?? Math.ceil(((length ?? kDefaultCable) * kNanosecondsPerMetre) / 1000);
  return headroomFor({ rate, mtu, delay: propagation, response, interfaceDelay });
}

function noRoom({ ports, priorities, buffer, headroom: given }: BufferPlanInput): UsageError {
  const bytes = typeof given === "number" ? given : given.bytes;
  const reserved = formatSize(priorities * ports * bytes);
  const most = Math.ceil(buffer / (ports * bytes)) - 1;
  const fewer = most >= 1 ? `at most ${most} ${most === 1 ? "priority" : "priorities"}, or ` : "";
  return new UsageError(
    `--buffer ${formatSize(buffer)}: too small for the headroom: ${priorities} priorities x ${ports} ports x ` +
      `${formatSize(bytes)} = ${reserved}`,
    { hint: `${fewer}a buffer of more than ${reserved}` },
  );
}

const cable = quantity("--cable", parseLength, formatLength, { least: 0, most: 1e9 });
const kRates = { least: 1_000, most: 10e12 };
const kmin = sizeOption("--kmin", { least: 0, most: 1e9 });
const responseOption = timeOption("--response", { least: 0, most: 10e9 });
const rttOption = timeOption("--rtt", { least: 1, most: 10e9 });
const mtuOption = integer("--mtu", 576, 16_000);
const flowsOption = integer("--flows", 1, 1_000_000);

function beta(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value > 0 && value <= 1024) return value;
  throw new UsageError(`--beta ${text}: not a number greater than 0, to 1024`);
}

function profile(text: string): SwitchProfile & { name: string } {
  const known: SwitchProfile | undefined = Object.entries(SWITCH_PROFILES).find(([name]) => name === text)?.[1];
  if (known !== undefined) return { name: text, ...known };
  throw new UsageError(`--profile ${text}: unknown`, { hint: `known: ${Object.keys(SWITCH_PROFILES).join(", ")}` });
}
