/** `weir tune`: finds parameters of a scenario's congestion control by many runs. */
import { basename, extname, join } from "node:path";
import { Option } from "commander";
import { writeWhole } from "../base/write_file.js";
import { type ClockName, kClockNames } from "../clocks/clock.js";
import { wantsColor } from "../result/report/terminal.js";
import { loadScenario } from "../scenario/scenario.js";
import { ResultStore } from "../study/store.js";
import { type Objective, parseObjective } from "../study/tune/objective.js";
import { renderTuning, tunedYaml } from "../study/tune/text.js";
import { Tuning } from "../study/tune/tune.js";
import { type AddVerb, asUsage, type CliContext, kExit, warn } from "./context.js";
import { integer } from "./device_options.js";
import { boundOf, type FastForwardChoice, fastForwardOption } from "./fast_forward.js";
import { addPointOptions, kPointTools, type PointTools, runPoints, tellSummary, workers } from "./points.js";
import { runFolder } from "./run_folder.js";
import { addTrustOption, readyToRun, type TrustOptions } from "./trust.js";

interface TuneChoice extends TrustOptions, Pick<FastForwardChoice, "fastForward"> {
  on: ClockName;
  objective?: Objective;
  parameters?: string;
  runs: number;
  seeds?: number;
  verify?: number;
  set?: string[];
  out?: string;
  jobs?: number;
  json?: boolean;
  quiet?: boolean;
}

const kMostRuns = 100_000;
const kMostSeeds = 1000;
const kFound = "tuned.yaml";

const kHelp = `
Candidates are drawn at random from the ranges, the same for the same scenario and seed, and run in virtual time, or on the clock of --on: all with one seed,
the better half with more, and so on (successive halving). What the scenario has is a candidate, too, and runs with all seeds. Runs in
which less of the scenario's \`expect\` is met are worse, whatever the objective. The best is then verified with seeds that nobody was
tuned on. An objective is a field of the result, written as in \`expect\`; with * the worst of all counts.
A parameter's range is up to 8 times more or less than the scenario has, or what is behind "=" (not for yes or no).
What was found goes to tuned.yaml in the folder of --out. What is done in that folder is not run again.

Examples:
  weir tune websearch.yaml
  weir tune incast.yaml --objective "min switches.sw.queues.r.3.p99" --set 'expect=["totals.goodput_bps > 35Gbps"]'
  weir tune incast.yaml --on model --objective "min switches.sw.queues.r.3.p99" --runs 500
  weir tune incast.yaml --objective "max totals.jain" --parameters rpg_ai_rate=5Mbps..400Mbps,dce_tcp_g --runs 100

Exit status: 0 ok, also where nothing better was found, 1 a run has no result, or its result not the objective's field, or no run says
anything, 2 bad usage or bad scenario, 42 a run fails for reasons of its own, 130 and 143 after SIGINT and SIGTERM.
`;

const kObjective = "min fct.slowdown.p99";

export const addTune: AddVerb = (parent, context, done) => addTuneOn(kPointTools, parent, context, done);

/** Adds the verb with tools of the caller's. */
export function addTuneOn(tools: PointTools, ...[parent, context, done]: Parameters<AddVerb>): void {
  addTrustOption(addPointOptions(parent.command("tune")))
    .description("look for better parameters of a scenario's congestion control")
    .option(
      "--objective <min|max field>",
      `field of the result that is to be small, or large (default: "${kObjective}")`,
      (text: string) => asUsage(() => parseObjective(text)),
    )
    .option("--parameters <a,b=low..high,...>", "what to change (default: what the algorithm names)")
    .addOption(
      new Option("--on <clock>", "clock to run on: equations are soon solved, real frames take their time")
        .choices(kClockNames)
        .default("sim"),
    )
    .option("--runs <n>", "runs at most, in all", integer("--runs", 1, kMostRuns), 64)
    .option(
      "--seeds <n>",
      "seeds to tune on, from the scenario's own on (default: 4; equations 1)",
      integer("--seeds", 1, kMostSeeds),
    )
    .option("--verify <n>", "other seeds to verify on (default: 4; equations 2)", integer("--verify", 2, kMostSeeds))
    .addOption(fastForwardOption("in virtual time: skip what repeats itself"))
    .addHelpText("after", kHelp)
    .action(async (file: string, choice: TuneChoice) => done(await tune(tools, context, file, choice)));
}

async function tune(tools: PointTools, context: CliContext, file: string, choice: TuneChoice): Promise<number> {
  const { on, set = [], quiet = false, objective = parseObjective(kObjective), parameters, runs } = choice;
  // Equations know no chance: every seed comes to the same.
  const usual = on === "model" ? { seeds: 1, verify: 2 } : { seeds: 4, verify: 4 };
  const { seeds = usual.seeds, verify = usual.verify } = choice;
  const options = {
    on,
    set,
    objective,
    parameters,
    runs,
    seeds,
    verify,
    fast_forward: boundOf(choice),
    code: tools.codeVersion(),
  };
  const tuning = asUsage(() => new Tuning(file, options));
  const { scenario } = asUsage(() => loadScenario(file, { set }));
  const elevated = await readyToRun(context, file, [scenario], [on], choice);
  if (elevated !== undefined) return elevated;
  for (const warning of tuning.warnings) warn(context, warning);
  const out = choice.out ?? runFolder(basename(file, extname(file)), new Date());
  const jobs = workers(choice.jobs);
  let status: number = kExit.ok;
  const document = await tuning.search(ResultStore.create(out), async (plan, what) => {
    if (!quiet) context.stderr.write(`${what}\n`);
    const ran = await runPoints(tools, context, plan, plan.points, { out, jobs, quiet });
    status = ran.status;
    if (status !== kExit.ok) tellSummary(context, ran.summary, plan.points, { out, quiet });
    return status === kExit.ok;
  });
  if (document === undefined) return status;
  const found = join(out, kFound);
  writeWhole(found, tunedYaml(document));
  const { stdout } = context;
  const judged = document.verdict === "nothing" ? kExit.failure : kExit.ok;
  if (choice.json) {
    stdout.write(`${JSON.stringify(document, undefined, 2)}\n`);
    return judged;
  }
  stdout.write(renderTuning(document, wantsColor(stdout)));
  if (document.set.length > 0) {
    const again = [...set, ...document.set].map((assignment) => `--set ${quoted(assignment)}`);
    const verb = on === "wire" ? "lab" : on;
    stdout.write(`\nweir ${verb} run ${quoted(file)} ${again.join(" ")}\nwritten: ${found}\n`);
  }
  return judged;
}

/** Quotes text for a shell. */
function quoted(text: string): string {
  return /^[\w./=:%,+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
