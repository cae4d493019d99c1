/** `weir paper`: figures and tables of papers, run again and held against what the papers say of them. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import pc from "picocolors";
import { makeFolder } from "../../src/base/folder.js";
import { wrap } from "../../src/base/wrap.js";
import { type AddVerb, asUsage, type CliContext, kExit, print, UsageError, warn } from "../../src/cli/context.js";
import { kPointTools, runPoints, workers } from "../../src/cli/points.js";
import { runFolder } from "../../src/cli/run_folder.js";
import { StopSignals } from "../../src/cli/stop_signals.js";
import { codeVersion } from "../../src/result/code_version.js";
import { madeNow } from "../../src/result/made.js";
import { ResultStore } from "../../src/study/store.js";
import { documentOf } from "../engine/document.js";
import { CLOCKS, type Clock, clocksOf, type Experiment } from "../engine/experiment.js";
import { writePaper } from "../engine/files.js";
import { keyOf, paperMade } from "../engine/made.js";
import { type References, readReferences } from "../engine/reference.js";
import { type PaperOptions, runExperiment } from "../engine/run.js";
import { planRuns } from "../engine/runs.js";
import { renderText } from "../engine/text.js";
import { loadTrial } from "../engine/trial.js";
import { EXPERIMENTS, findExperiment, type Listing, listExperiments, nearestExperiment } from "../registry.js";
import { addPaperAll } from "./paper_all.js";
import { addPaperOptions, type PaperChoice } from "./paper_options.js";
import { PaperProgressLine } from "./paper_progress.js";

const kHelp = `
An experiment is one figure or table of a paper. It runs the paper's setup on each clock that is asked for, and says for each
statement that the paper makes about it whether it holds there: wire (real frames on this host), sim (discrete events), model
(equations). Default: sim and model where it has them, and wire if it has nothing else.

Examples:
  weir paper list
  weir paper qcn-shu-fig5                             in virtual time, and the paper's model
  weir paper qcn-netfpga-fig8 --on all --out fig8     on the wire as well
  weir paper qcn-netfpga-fig8 --on wire --scale 1     at the paper's own rates
  weir paper all                                      every experiment, in one report
  weir paper qcn-shu-fig5 --json --quiet | jq '.statements[].verdicts'

References are drawn and compared with each clock, never judged: CSV files with a header line, then x and y in the units of the trace.
Traces have their names in paper.json.

It leaves report.html, report.md, figure.svg, paper.json, and each run's own result and report. Ctrl-C ends the run under way;
what is done by then is reported, and said to be partial.

Exit status: 0 all was run, also where a statement falls short; 2 bad usage; 3 a run is invalid, or was not made to its end;
130 and 143 after SIGINT and SIGTERM.
`;

export const addPaper: AddVerb = (parent, context, done) => {
  const paper = parent
    .command("paper")
    .description("run a figure or table of a paper again, and judge what the paper says of it")
    .argument("[id]", "experiment, from `weir paper list`");
  addPaperOptions(paper, "weir-results/<id>-<time>")
    .addHelpText("after", kHelp)
    .action(async (id: string | undefined, choice: PaperChoice) => {
      if (id !== undefined) return done(await run(context, id, choice));
      paper.outputHelp({ error: true });
      done(kExit.usage);
    });
  paper
    .command("list")
    .description("list all experiments: paper, figure, clocks, how long they take")
    .option("--json", "one JSON document instead of a table")
    .action(({ json }: { json?: boolean }) => {
      const list = asUsage(listExperiments);
      print(context, json, list, (color) => listing(list, color));
    });
  addPaperAll(paper, context, done);
};

async function run(context: CliContext, id: string, choice: PaperChoice): Promise<number> {
  const experiment = findExperiment(id);
  if (experiment === undefined) {
    const meant = nearestExperiment(id);
    throw new UsageError(`no experiment ${id}`, {
      hint: meant === undefined ? "weir paper list shows all" : `did you mean ${meant}?`,
    });
  }
  const chosen = chosenClocks(experiment, choice.on);
  const overrides = { seed: choice.seed, scale: choice.scale };
  // A bad scenario is told before rights are asked for.
  for (const trial of experiment.network?.trials ?? []) asUsage(() => loadTrial(trial, overrides));
  const references = choice.reference === undefined ? undefined : referencesOf(context, choice.reference, experiment);
  const elevated = chosen.includes("wire") ? await context.elevate() : undefined;
  if (elevated !== undefined) return elevated;
  const directory = choice.out ?? runFolder(id, new Date());
  makeFolder(directory);
  const code = versionFor(chosen);
  const plan = planRuns([{ experiment, clocks: chosen }], { ...overrides, code, folders: false });
  const store = ResultStore.create(directory);
  if (choice.fresh) for (const point of plan.points) store.removeResult(point);
  // The old paper.json says what was made before; runs are about to be replaced.
  rmSync(join(directory, "paper.json"), { force: true });
  const began = performance.now();
  const quiet = choice.quiet === true;
  const beside = plan.points.filter((point) => point.clock === "sim" && !store.isDone(point));
  const jobs = workers(choice.jobs);
  // One run goes as well in this process.
  const ran =
    jobs !== undefined && beside.length > 1
      ? await runPoints(kPointTools, context, plan, beside, { out: directory, jobs, quiet })
      : undefined;
  const stop = new StopSignals(context, quiet);
  const line = quiet ? undefined : new PaperProgressLine(context.stderr, id);
  const options: PaperOptions = {
    ...overrides,
    references,
    clocks: chosen,
    code,
    directory,
    signal: ran?.stopped ? AbortSignal.abort() : stop.signal,
    onProgress: line && ((progress) => line.update(progress)),
  };
  const key = keyOf(experiment, plan, { clocks: chosen, references, weir: code });
  try {
    const outcome = await runExperiment(experiment, await context.clocks(), options);
    line?.finish();
    const document = documentOf(outcome, paperMade({ key, weir: code }, began));
    const report = await writePaper(directory, outcome, document);
    print(context, choice.json, document, (color) => `${renderText(document, color)}\nreport: ${report}`);
    return stop.status ?? (ran?.stopped ? ran.status : undefined) ?? (outcome.complete ? kExit.ok : kExit.invalid);
  } finally {
    line?.finish();
    stop.release();
  }
}

/** Reads references of one experiment; a folder that has none for it may be meant for another one. */
function referencesOf({ stderr }: CliContext, directory: string, experiment: Experiment): References | undefined {
  const found = asUsage(() => readReferences(directory, EXPERIMENTS, [experiment])).get(experiment.id);
  if (found === undefined) warn({ stderr }, `${directory} has nothing for ${experiment.id}`);
  return found;
}

/** Which code makes the runs. Equations run without the native core, which tells versions of Weir apart. */
function versionFor(clocks: readonly Clock[]): string {
  if (clocks.some((clock) => clock !== "model")) return codeVersion();
  return madeNow().weir;
}

/** Returns them in the order of CLOCKS. @throws UsageError for one that the experiment does not have. */
function chosenClocks(experiment: Experiment, wanted: readonly Clock[] | undefined): Clock[] {
  const all = clocksOf(experiment);
  if (wanted === undefined) return all.length === 1 ? all : all.filter((clock) => clock !== "wire");
  // All clocks that there are mean all that this one has.
  if (wanted.length === CLOCKS.length) return all;
  const missing = wanted.find((clock) => !all.includes(clock));
  if (missing !== undefined) {
    throw new UsageError(`${experiment.id} does not run on ${missing}`, { hint: `it has ${all.join(", ")}` });
  }
  return all.filter((clock) => wanted.includes(clock));
}

const kWidth = 80;

/** Lists by paper how long each experiment takes where, and what it is, in lines that fit any terminal. */
function listing(list: readonly Listing[], color: boolean): string {
  const colors = pc.createColors(color);
  const column = Math.max(...list.map(({ id }) => id.length)) + 2;
  const papers = [...new Set(list.map(({ paper }) => paper))];
  return papers
    .map((name) => {
      const own = list.filter(({ paper }) => paper === name);
      const lines = own.flatMap(({ id, place, title, clocks, seconds }) => [
        `${id.padEnd(column)}${clocks.map((clock) => `${clock} ${about(seconds[clock] ?? 0)}`).join(", ")}`,
        ...wrap(`${place}: ${title}`, kWidth - 4).map((line) => `    ${line}`),
      ]);
      return `${[colors.bold(name), ...lines].join("\n")}\n`;
    })
    .join("\n");
}

function about(seconds: number): string {
  return seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`;
}
