/** `weir model sweep`: the surfaces of figures 11 and 12, on all cores. */
import { availableParallelism } from "node:os";
import type { Command } from "commander";
import { formatSize, formatTime } from "../base/units.js";
import { writeWhole } from "../base/write_file.js";
import {
  kSurfaces,
  SURFACES,
  type SurfaceName,
  type SweepOutcome,
  sweepOn,
  sweepPoints,
} from "../models/dcqcn/index.js";
import { gbps, kilobytes } from "../report/format.js";
import { drawGrid, type Grid } from "../report/table.js";
import { wantsColor } from "../report/terminal.js";
import { csvLine } from "../sim/series_files.js";
import { SweepProgress } from "../sweep/progress.js";
import { type CliContext, kExit, UsageError } from "./context.js";
import { integer } from "./device_options.js";
import type { ModelTools } from "./model.js";
import { delayOption, listOf, partOption, thresholdOption } from "./model_options.js";
import { StopSignals } from "./stop_signals.js";

interface SweepChoice {
  values?: string;
  jobs?: number;
  out?: string;
  json?: boolean;
  quiet?: boolean;
}

const kFigure11: readonly SurfaceName[] = ["byte-counter", "timer", "kmax", "pmax"];

const kHelp = `
Surfaces of figure 11 (two flows, one from 40 Gb/s, one from 0; difference of their throughputs over 200 ms):
  byte-counter  B, all else the strawman (B 150 KB, T 1.5 ms, Kmin = Kmax = 40 KB, Pmax 1, g 1/16)
  timer         T, with B = 10 MB
  kmax          Kmax, all else the strawman
  pmax          Pmax, with Kmax = 200 KB
Of figure 12 (2 and 16 flows from line rate, all else table 14; length of the queue over 100 ms):
  g

Without names: the four of figure 11. The table has mean, deviation, least and most: of differences after 10 ms, of queues in the second half.

Examples:
  weir model sweep
  weir model sweep timer --values 55us,300us,1.5ms --out timer.csv
  weir model sweep g --json | jq '.points[] | {value, flows, mean}'

Ctrl-C prints what is done so far (exit status 130).
`;

export function addModelSweep(
  tools: ModelTools,
  parent: Command,
  context: CliContext,
  done: (status: number) => void,
): void {
  parent
    .command("sweep")
    .description("the parameter sweeps of the paper's figures 11 and 12")
    .argument("[surface...]", `of ${SURFACES.join(", ")}`)
    .option("--values <a,b,...>", "other values for the one surface that is named, such as 55us,1.5ms or 1/16,1/256")
    .option("--jobs <n>", "worker processes (default: as many as CPUs)", integer("--jobs", 1, 1024))
    .option(
      "--out <file.csv>",
      "write what is drawn as CSV: surface, flows, value, time_s, difference_bps or queue_bytes",
    )
    .option("--json", "one JSON document on stdout instead of tables, with all that is drawn")
    .option("--quiet", "no progress")
    .addHelpText("after", kHelp)
    .action(async (names: string[], choice: SweepChoice) => done(await sweep(tools, context, names, choice)));
}

async function sweep(
  tools: ModelTools,
  context: CliContext,
  names: readonly string[],
  choice: SweepChoice,
): Promise<number> {
  const surfaces = names.length === 0 ? kFigure11 : [...new Set(names)].map(surfaceOf);
  const points = sweepPoints(surfaces, choice.values === undefined ? undefined : valuesOf(surfaces, choice.values));
  const { stdout, stderr } = context;
  const stop = new StopSignals(context, choice.quiet === true);
  const progress = choice.quiet ? undefined : new SweepProgress(stderr, points.length);
  let outcomes: SweepOutcome[];
  try {
    outcomes = await sweepOn(points, {
      jobs: choice.jobs ?? availableParallelism(),
      startWorker: tools.startWorker,
      signal: stop.signal,
      onStart: (index) => progress?.update(index, 0),
      onDone: (index) => progress?.end(index, false),
    });
  } finally {
    progress?.close();
    stop.release();
  }
  if (choice.out !== undefined) writeWhole(choice.out, csv(outcomes));
  if (choice.json) stdout.write(`${JSON.stringify({ points: outcomes })}\n`);
  else {
    const grids = surfaces.map((name) =>
      gridOf(
        name,
        outcomes.filter(({ surface }) => surface === name),
      ),
    );
    stdout.write(`${grids.map((grid) => drawGrid(grid, wantsColor(stdout))).join("\n\n")}\n`);
    if (choice.out !== undefined) stdout.write(`\nseries: ${choice.out}\n`);
  }
  return outcomes.length < points.length && stop.status !== undefined ? stop.status : kExit.ok;
}

function surfaceOf(name: string): SurfaceName {
  const found = SURFACES.find((one) => one === name);
  if (found !== undefined) return found;
  throw new UsageError(`${name}: unknown surface`, { hint: `use one of ${SURFACES.join(", ")}` });
}

function valuesOf(surfaces: readonly SurfaceName[], text: string): number[] {
  const [surface, ...others] = surfaces;
  if (surface === undefined || others.length > 0) {
    throw new UsageError(`--values ${text}: for ${surfaces.length} surfaces`, { hint: "name one surface" });
  }
  const { parameter, base } = kSurfaces[surface];
  const values = listOf(parserOf(parameter))(text);
  const low = values.find((value) => parameter === "kmax" && value < base.kmin);
  if (low !== undefined) {
    throw new UsageError(`--values ${text}: out of range`, {
      hint: `Kmax must be at least ${formatSize(base.kmin)}, Kmin`,
    });
  }
  return values;
}

function parserOf(parameter: (typeof kSurfaces)[SurfaceName]["parameter"]): (text: string) => number {
  if (parameter === "rpg_time_reset") return delayOption("--values");
  return parameter === "pmax" || parameter === "g" ? partOption("--values") : thresholdOption("--values");
}

function show(surface: SurfaceName, value: number): string {
  const { parameter } = kSurfaces[surface];
  if (parameter === "rpg_time_reset") return formatTime(value);
  if (parameter === "g") return `1/${Number((1 / value).toPrecision(6))}`;
  return parameter === "pmax" ? `${Number((value * 100).toPrecision(6))}%` : formatSize(value);
}

function gridOf(name: SurfaceName, outcomes: readonly SweepOutcome[]): Grid {
  const { figure, draws } = kSurfaces[name];
  const number = draws === "queue" ? kilobytes : gbps;
  return {
    title: `Figure ${figure}: ${name}, ${draws === "queue" ? "queue in KB" : "difference of throughputs in Gb/s"}`,
    head: [name, "flows", "mean", "deviation", "least", "most", "at the end"],
    names: 1,
    rows: outcomes.map(({ value, flows, mean, deviation, least, most, end }) => [
      show(name, value),
      String(flows),
      ...[mean, deviation, least, most, end].map(number),
    ]),
  };
}

function csv(outcomes: readonly SweepOutcome[]): string {
  const head = csvLine(["surface", "flows", "value", "time_s", "difference_bps", "queue_bytes"]);
  const lines = outcomes.flatMap(({ surface, flows, value, time_s, drawn }) =>
    time_s.map((time, k) => {
      const queue = kSurfaces[surface].draws === "queue";
      return csvLine([surface, flows, value, time, queue ? undefined : drawn[k], queue ? drawn[k] : undefined]);
    }),
  );
  return head + lines.join("");
}
