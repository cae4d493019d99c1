import { formatTime } from "../base/units.js";
import type { RunProgress } from "../clocks/clock.js";
import { dcqcnFixedPoint, dcqcnStability } from "../models/dcqcn/index.js";
import { fixed, gbps, kilobytes, percent, printable } from "../result/report/format.js";
import { StatusLine } from "../result/report/status_line.js";
import { drawGrid } from "../result/report/table.js";
import { type AddVerb, asUsage, type CliContext, print, warn } from "./context.js";
import { integer } from "./device_options.js";
import {
  addLinkOptions,
  delayOption,
  type LinkChoice,
  linkParameters,
  listOf,
  modelRateOption,
  partOption,
} from "./model_options.js";
import { runFolder } from "./run_folder.js";
import { addRunOptions, overridesOf, type RunChoice } from "./run_options.js";
import { runScenario, untilStopped } from "./run_scenario.js";
import { load } from "./scenario_file.js";

interface ModelChoice extends RunChoice {
  delay?: number;
}

interface StabilityChoice extends Omit<LinkChoice, "delay"> {
  flows: number[];
  delay?: number[];
  g?: number[];
  aiRate?: number[];
  json?: boolean;
}

const kMostFlows = 1_000_000;
const flowCount = (text: string) => integer("--flows", 1, kMostFlows)(text);

const kRunHelp = `
The equations take streams of one switch that all go to one host, without rate, bytes or sizes, one for each sender, at one priority, with
DCQCN in the paper's form. Other scenarios are refused (exit status 2). PFC, buffers and hyper increase are not in the equations.

Examples:
  weir model run incast.yaml
  weir model run incast.yaml --delay 50us --set switch.ecn.kmax=400KB
  weir compare wire/ sim/ model/ --out overlay.html       all three over each other
`;
const kFixedPointHelp = `
Prints p, alpha, R_C (rate_bps), R_T (target_rate_bps) and the queue. There is no queue (null) where p is more than Pmax, or where
Kmin = Kmax: it swings about Kmax.

Examples:
  weir model fixed-point --flows 8
  weir model fixed-point --flows 2 --rate 100Gbps --mtu 4096 --kmax 400KB --json
`;
const kStabilityHelp = `
Lists are separated by commas; every combination is a row. A margin below 0 means that deviations grow.

Examples:
  weir model stability --flows 2,4,8,10 --delay 4us,50us,85us
  weir model stability --flows 2,64 --kmax 1955KB --pmax 10% --ai-rate 10Mbps,40Mbps --json
`;

const kHelp = `
Its sweeps, figures 11 and 12 of the paper: weir paper dcqcn-fig11, weir paper dcqcn-fig12
`;

export const addModel: AddVerb = (parent, context, done) => {
  const model = parent
    .command("model")
    .description("the fluid model of DCQCN: the equations of its paper")
    .addHelpText("after", kHelp);
  addRunOptions(model.command("run"))
    .description("solve the equations for a scenario and report")
    .option(
      "--delay <time>",
      "tau*, delay of the loop (default: CNP interval and propagation, there and back)",
      delayOption("--delay"),
    )
    .addHelpText("after", kRunHelp)
    .action(async (file: string, choice: ModelChoice) => done(await run(context, file, choice)));
  addLinkOptions(model.command("fixed-point"))
    .description("where N flows rest")
    .requiredOption("--flows <n>", "identical flows", flowCount)
    .option("--json", "one JSON document on stdout instead of a table")
    .addHelpText("after", kFixedPointHelp)
    .action((choice: LinkChoice & { flows: number; json?: boolean }) => fixedPoint(context, choice));
  addLinkOptions(model.command("stability"))
    .description("is the fixed point stable? Phase margins")
    .requiredOption("--flows <n,...>", "identical flows", listOf(flowCount))
    .option("--delay <time,...>", "tau* (default: the CNP interval)", listOf(delayOption("--delay")))
    .option("--g <part,...>", "gain of alpha, such as 1/256 (default: the profile's)", listOf(partOption("--g")))
    .option("--ai-rate <rate,...>", "R_AI (default: the profile's)", listOf(modelRateOption("--ai-rate")))
    .option("--json", "one JSON document on stdout instead of a table")
    .addHelpText("after", kStabilityHelp)
    .action((choice: StabilityChoice) => stability(context, choice));
};

async function run(context: CliContext, file: string, choice: ModelChoice): Promise<number> {
  const set = overridesOf(choice);
  const { scenario, text } = load(context, file, set);
  const { model: clock } = await context.clocks();
  asUsage(() => clock.check(scenario));
  const directory = choice.out ?? runFolder(scenario.name, new Date());
  const line = choice.quiet ? undefined : new StatusLine(context.stderr);
  return untilStopped(context, choice, (signal) =>
    runScenario(context, choice, {
      clock,
      source: { text, set, scenario },
      directory,
      progress: line && { finish: () => line.close() },
      options: {
        signal,
        delay: choice.delay,
        onProgress:
          line && (({ done }: RunProgress) => line.show(() => `${printable(scenario.name)}: ${percent(done)}`)),
      },
    }),
  );
}

function fixedPoint(context: CliContext, choice: LinkChoice & { flows: number; json?: boolean }): void {
  const parameters = linkParameters(choice);
  const point = dcqcnFixedPoint(parameters, choice.flows);
  if (point.target_rate_bps > parameters.bandwidth) {
    warn(context, "the target rate is above the link's: flows of a line rate like the link's do not get there");
  }
  const grid = {
    title: `Fixed point of ${choice.flows} flow${choice.flows === 1 ? "" : "s"}`,
    head: ["p %", "alpha", "R_C Gb/s", "R_T Gb/s", "queue KB"],
    names: 0,
    rows: [
      [
        (point.p * 100).toPrecision(4),
        point.alpha.toPrecision(4),
        gbps(point.rate_bps),
        gbps(point.target_rate_bps),
        point.queue_bytes === null ? "none" : kilobytes(point.queue_bytes),
      ],
    ],
  };
  print(context, choice.json, point, (color) => drawGrid(grid, color));
}

function stability(context: CliContext, choice: StabilityChoice): void {
  const { delay: delays, ...rest } = choice;
  const base = linkParameters(rest);
  const { g = [base.g], aiRate = [base.rpg_ai_rate] } = choice;
  const rows = (delays ?? [base.delay]).flatMap((delay) =>
    g.flatMap((gain) =>
      aiRate.flatMap((rpg_ai_rate) =>
        choice.flows.map((flows) => {
          const { fixedPoint, ...figures } = dcqcnStability({ ...base, delay, g: gain, rpg_ai_rate }, flows);
          const { p, queue_bytes } = fixedPoint;
          return { flows, delay_us: delay / 1e3, g: gain, ai_rate_bps: rpg_ai_rate, p, queue_bytes, ...figures };
        }),
      ),
    ),
  );
  const number = (value: number | null) => (value === null ? "-" : fixed(value));
  const grid = {
    title: "Stability",
    head: [
      "flows",
      "tau*",
      "1/g",
      "R_AI Mb/s",
      "p %",
      "queue KB",
      "stable",
      "margin deg",
      "rad/s",
      "growth 1/s",
      "between flows",
    ],
    names: 0,
    rows: rows.map((row) => [
      String(row.flows),
      formatTime(row.delay_us * 1e3),
      String(Number((1 / row.g).toPrecision(6))),
      fixed(row.ai_rate_bps / 1e6),
      (row.p * 100).toPrecision(4),
      row.queue_bytes === null ? "none" : kilobytes(row.queue_bytes),
      row.stable === null ? "-" : row.stable ? "yes" : "NO",
      number(row.phase_margin_deg),
      number(row.crossover_rad_s),
      number(row.growth_per_s),
      number(row.growth_between_flows_per_s),
    ]),
  };
  print(context, choice.json, rows, (color) => drawGrid(grid, color));
}
