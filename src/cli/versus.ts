/** `weir versus`: one scenario under several congestion controls. */
import { basename, extname, join } from "node:path";
import { Option } from "commander";
import { writeWhole } from "../base/write_file.js";
import type { ClockName } from "../clocks/clock.js";
import { wantsColor } from "../result/report/terminal.js";
import { loadScenario } from "../scenario/scenario.js";
import type { Scenario } from "../scenario/types.js";
import type { Plan } from "../study/sweep/plan.js";
import { ResultStore } from "../study/sweep/store.js";
import { type Contender, parseContenders, planVersus, usualContenders } from "../study/versus/contenders.js";
import { firstRuns, versusDocument } from "../study/versus/document.js";
import { renderVersusPage } from "../study/versus/page.js";
import { renderVersus, versusCsv } from "../study/versus/tables.js";
import { clockList } from "./clock_option.js";
import { type AddVerb, asUsage, type CliContext, kExit, warn } from "./context.js";
import { integer } from "./device_options.js";
import { addPointOptions, kPointTools, type PointTools, runPoints, tellSummary, workers } from "./points.js";
import { runFolder } from "./run_folder.js";
import { addTrustOption, askForTrust, type TrustOptions } from "./trust.js";

interface VersusChoice extends TrustOptions {
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
/** In the order of their columns. */
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

/** The verb with tools of the caller's. */
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
    .addOption(new Option("--csv", "a row for each run on stdout instead of tables").conflicts("json"))
    .addHelpText("after", kHelp)
    .action(async (file: string, choice: VersusChoice) => done(await versus(tools, context, file, choice)));
}

function contenders(text: string): Contender[] {
  return asUsage(() => parseContenders(text));
}

async function versus(tools: PointTools, context: CliContext, file: string, choice: VersusChoice): Promise<number> {
  const { seeds, set = [], on } = choice;
  const algorithms = choice.algorithms ?? asUsage(() => usualContenders(file, set));
  const suits = (scenario: Scenario) => {
    for (const clock of on) context.clocks[clock].check(scenario);
  };
  const options = { set, seeds, code: tools.codeVersion(), suits };
  const { plan, warnings } = asUsage(() => planVersus(file, algorithms, options));
  // In virtual time a scenario has no commands, and plans have no libraries.
  if (on.includes("wire")) await askForTrust(context, file, loadScenario(file, { set }).scenario, choice);
  const elevated = on.includes("wire") ? await context.elevate() : undefined;
  if (elevated !== undefined) return elevated;
  for (const warning of warnings) warn(context, warning);
  const folder = choice.out ?? runFolder(basename(file, extname(file)), new Date());
  const stores = new Map<ClockName, ResultStore>();
  for (const clock of kClocks.filter((one) => on.includes(one))) {
    const out = clock === "sim" ? folder : join(folder, clock);
    const status = await runOn(clock, tools, context, plan, out, choice);
    if (status !== kExit.ok) return status;
    stores.set(clock, ResultStore.open(out));
  }
  const document = versusDocument(plan, algorithms, stores);
  const page = join(folder, kPage);
  writeWhole(page, renderVersusPage(document, firstRuns(plan, algorithms, stores)));
  const { stdout } = context;
  if (choice.json) stdout.write(`${JSON.stringify(document, undefined, 2)}\n`);
  else if (choice.csv) stdout.write(versusCsv(document));
  else stdout.write(`${renderVersus(document, { color: wantsColor(stdout) })}\nreport: ${page}\n`);
  return document.contenders.every(({ runs }) => runs.every(({ valid }) => valid)) ? kExit.ok : kExit.invalid;
}

/** Results of all points in `out`; or the exit status of why not, which is told. */
async function runOn(
  clock: ClockName,
  tools: PointTools,
  context: CliContext,
  plan: Plan,
  out: string,
  { jobs, quiet = false }: VersusChoice,
): Promise<number> {
  const { points } = plan;
  if (clock === "wire") removeInvalid(plan, ResultStore.create(out));
  // Two labs at once would be in each other's way, and equations are soon solved.
  const [own, places] =
    clock === "sim" ? [tools, workers(jobs)] : [{ ...tools, clock: () => context.clocks[clock] }, undefined];
  const ran = await runPoints(own, context, plan, points, { out, jobs: places, quiet });
  if (ran.status !== kExit.ok) tellSummary(context, ran.summary, points, { out, quiet });
  return ran.status;
}

/** What was not valid may be so this time. */
function removeInvalid({ points }: Plan, store: ResultStore): void {
  for (const { id } of points) if (store.hasResult(id) && !store.result(id).fidelity.valid) store.removeResult(id);
}
