/** `weir versus`: runs one scenario under several congestion controls. */
import { basename, extname, join } from "node:path";
import { Option } from "commander";
import { writeWhole } from "../base/write_file.js";
import type { ClockName } from "../clocks/clock.js";
import { wantsColor } from "../result/report/terminal.js";
import { loadScenario } from "../scenario/scenario.js";
import { ResultStore } from "../study/store.js";
import { type Contender, parseContenders, planVersus, usualContenders } from "../study/versus/contenders.js";
import { firstRuns, versusDocument } from "../study/versus/document.js";
import { renderVersusPage } from "../study/versus/page.js";
import { renderVersus, versusCsv } from "../study/versus/tables.js";
import { clockList } from "./clock_option.js";
import { type AddVerb, asUsage, type CliContext, kExit, warn } from "./context.js";
import { integer } from "./device_options.js";
import { boundOf, type FastForwardChoice, fastForwardOption } from "./fast_forward.js";
import { addPointOptions, kPointTools, type PointTools, runPoints, tellSummary, workers } from "./points.js";
import { runFolder } from "./run_folder.js";
import { addTrustOption, readyToRun, type TrustOptions } from "./trust.js";

interface VersusChoice extends TrustOptions, Pick<FastForwardChoice, "fastForward"> {
  algorithms?: Contender[];
  seeds: number;
  set?: string[];
  out?: string;
  jobs?: number;
  json?: boolean;
  csv?: boolean;
  quiet?: boolean;
  on: ClockName[];
}

const kMostSeeds = 1000;
const kPage = "versus.html";
/** Clocks in the order of their columns. */
const kClocks = ["sim", "wire", "model"] as const satisfies ClockName[];

const kHelp = `
Runs the scenario under each congestion control, in virtual time or, with --on wire, on real frames, with the same seeds: the scenario's own and those after it. Each
takes the place of the scenario's \`congestion\`, with its default profile or the one behind the colon; \`file\` is the scenario's
\`congestion\` as it is. A variant is named like an algorithm (timely-patched). All else is the same for all: the transport, and where
switches mark. timely, timely-patched, swift, dctcp, hpcc and nscc need transport.type: rc, which all then run on (--set transport.type=rc).
Tables go to stdout, and a page with the curves of all over each other to versus.html in the folder of --out.
What is done in that folder is not run again: to go on after a stop, run the same command with it. On the wire runs go one after
another, at the scenario's time scale, and one that was not valid is run again. With --on all each has a column for both clocks, and a
table says how far apart they are.

Figures are means over the seeds with half of their 95% confidence interval; a second table has the differences from the first
congestion control, seed by seed.

Examples:
  weir versus incast.yaml
  weir versus incast.yaml --algorithms dcqcn,timely,timely-patched,swift,dctcp --set transport.type=rc
  weir versus websearch.yaml --algorithms dcqcn:hpcc-ns3,swift,none --seeds 5 --out results
  weir versus incast.yaml --algorithms dcqcn,swift --on all --set scale=100 --set transport.type=rc --seeds 1
  weir versus incast.yaml --algorithms file,dcqcn --json | jq '.contenders[].figures.queue_p99_bytes.mean'

Exit status: 0 ok, 1 a run has no result, 2 bad usage or bad scenario, 3 a run is not valid, 42 a run fails for reasons of its own,
130 and 143 after SIGINT and SIGTERM.
`;

export const addVersus: AddVerb = (parent, context, done) => addVersusOn(kPointTools, parent, context, done);

/** Adds the verb with tools of the caller's. */
export function addVersusOn(tools: PointTools, ...[parent, context, done]: Parameters<AddVerb>): void {
  addTrustOption(addPointOptions(parent.command("versus")))
    .description("run a scenario under several congestion controls and compare them")
    .option(
      "--algorithms <a,b:profile,...>",
      "congestion controls, separated by commas (default: dcqcn,dcqcn:mlx5,none; with transport.type: rc dcqcn,timely-patched,swift,dctcp,none)",
      contenders,
    )
    .option("--seeds <n>", "runs of each, with as many seeds", integer("--seeds", 1, kMostSeeds), 3)
    .addOption(
      new Option("--on <clock,...|all>", "clocks to run on: sim, wire, both (all), model (equations, for dcqcn alone)")
        .argParser(clockList(kClocks, ["sim", "wire"]))
        .default(["sim"], "sim"),
    )
    .addOption(fastForwardOption("in virtual time: skip what repeats itself"))
    .addOption(new Option("--csv", "a row for each run on stdout instead of tables").conflicts("json"))
    .addHelpText("after", kHelp)
    .action(async (file: string, choice: VersusChoice) => done(await versus(tools, context, file, choice)));
}

function contenders(text: string): Contender[] {
  return asUsage(() => parseContenders(text));
}

async function versus(tools: PointTools, context: CliContext, file: string, choice: VersusChoice): Promise<number> {
  const { seeds, set = [], jobs, quiet = false } = choice;
  const on = kClocks.filter((clock) => choice.on.includes(clock));
  const algorithms = choice.algorithms ?? asUsage(() => usualContenders(file, set));
  const { plan, warnings } = asUsage(() =>
    planVersus(file, algorithms, { set, seeds, on, fast_forward: boundOf(choice), code: tools.codeVersion() }),
  );
  const elevated = await readyToRun(context, file, [loadScenario(file, { set }).scenario], on, choice);
  if (elevated !== undefined) return elevated;
  for (const warning of warnings) warn(context, warning);
  const out = choice.out ?? runFolder(basename(file, extname(file)), new Date());
  const ran = await runPoints(tools, context, plan, plan.points, { out, jobs: workers(jobs), quiet });
  if (ran.status !== kExit.ok) {
    tellSummary(context, ran.summary, plan.points, { out, quiet });
    return ran.status;
  }
  const store = ResultStore.open(out);
  const document = versusDocument(plan, algorithms, store);
  const page = join(out, kPage);
  writeWhole(page, renderVersusPage(document, firstRuns(plan, algorithms, store)));
  const { stdout } = context;
  if (choice.json) stdout.write(`${JSON.stringify(document, undefined, 2)}\n`);
  else if (choice.csv) stdout.write(versusCsv(document));
  else stdout.write(`${renderVersus(document, { color: wantsColor(stdout) })}\nreport: ${page}\n`);
  return document.contenders.every(({ runs }) => runs.every(({ valid }) => valid)) ? kExit.ok : kExit.invalid;
}
