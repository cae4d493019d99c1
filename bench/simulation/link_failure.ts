/**
 * Goodput over time while a link of a fat tree fails, for each load balancing: `npm run bench:failure -- [--svg FILE]`, see
 * docs/evidence/load-balancing.md. The same code prints the same figures.
 */
import { writeFileSync } from "node:fs";
import { Command } from "commander";
import { runSimulation } from "../../src/clocks/sim/run.js";
import { drawFigure } from "../../src/result/report/figure.js";
import { fixed } from "../../src/result/report/format.js";
import type { Grid } from "../../src/result/report/table.js";
import type { Result, Series } from "../../src/result/result.js";
import { loadScenario, type Scenario } from "../../src/scenario/scenario.js";
import { numberIn } from "../options.js";
import { markdown } from "../table.js";

const kFile = "examples/fat-tree-failure.yaml";
const kVariants = [
  { name: "ecmp", set: ["switch.load_balancing=ecmp"] },
  { name: "flowlet", set: ["switch.load_balancing=flowlet"] },
  { name: "spray", set: ["switch.load_balancing=spray"] },
  { name: "adaptive", set: ["switch.load_balancing=adaptive"] },
  { name: "spray, reordering 3", set: ["switch.load_balancing=spray", "transport.reordering=3"] },
  {
    name: "spray, go-back-n",
    set: ["switch.load_balancing=spray", "transport.recovery=go-back-n", "transport.window=256"],
  },
];
/** Of the variants those that are drawn. */
const kDrawn = 4;
/** Samples are averaged over this in the picture, and over a millisecond in the table, ns. */
const kSmooth = 200_000;
const kBin = 1e6;

const { svg, seeds } = new Command("npm run bench:failure --")
  .description("Goodput over time while a link of a fat tree fails, for each load balancing.")
  .option("--svg <file>", "picture of the first seed")
  .option("--seeds <n>", "how many seeds, from 1 on", numberIn(1, 1000, true), 5)
  .parse()
  .opts<{ svg?: string; seeds: number }>();

interface Run {
  result: Result;
  series: Series;
}

async function measure(set: readonly string[], seed: number): Promise<Run> {
  const { scenario } = loadScenario(kFile, { set: [...set, `seed=${seed}`] });
  const outcome = await runSimulation(scenario, { signal: new AbortController().signal });
  if (!outcome.result.fidelity.valid)
    throw new Error(`${set.join(" ")}: ${outcome.result.fidelity.reasons.join(", ")}`);
  return outcome;
}

/** Goodput of all flows in each interval of `width` ns, Gb/s. */
function total({ series }: Run, width: number): number[] {
  const step = Math.round(width / 1e9 / series.interval_s);
  const flows = Object.values(series.flows).map(({ goodput_bps = [] }) => goodput_bps);
  const sums = series.time_s.map((_, i) => flows.reduce((sum, samples) => sum + (samples[i] ?? 0), 0) / 1e9);
  // The sample at a time is of the interval before it; that at 0 is of nothing.
  const bins = Math.floor((sums.length - 1) / step);
  return Array.from({ length: bins }, (_, bin) => {
    const own = sums.slice(1 + bin * step, 1 + (bin + 1) * step);
    return own.reduce((sum, value) => sum + value, 0) / own.length;
  });
}

const runs = new Map<string, Run[]>();
for (const { name, set } of kVariants) {
  const own: Run[] = [];
  for (let seed = 1; seed <= seeds; seed++) {
    process.stderr.write(`${name}, seed ${seed} of ${seeds}\n`);
    own.push(await measure(set, seed));
  }
  runs.set(name, own);
}

/** "712 (698..731)" over the seeds. */
function spread(values: readonly number[]): string {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return `${fixed(mean)} (${fixed(Math.min(...values))}..${fixed(Math.max(...values))})`;
}

const { scenario } = loadScenario(kFile);
process.stdout.write(`${markdown(overTime(scenario))}\n\n${markdown(counts())}\n`);
if (svg !== undefined) writeFileSync(svg, await picture(scenario));

function overTime({ duration }: Scenario): Grid {
  const bins = Array.from({ length: Math.floor(duration / kBin) }, (_, i) => i);
  const totals = new Map([...runs].map(([name, own]) => [name, own.map((run) => total(run, kBin))]));
  return {
    title: "Goodput, Gb/s",
    head: ["ms", ...runs.keys()],
    names: 1,
    rows: bins.map((bin) => [
      `${bin} to ${bin + 1}`,
      ...[...totals.values()].map((own) => spread(own.map((values) => values[bin] ?? 0))),
    ]),
  };
}

function counts(): Grid {
  const columns: [string, (run: Run) => number][] = [
    [
      "data packets sent, thousands",
      ({ result }) => result.flows.reduce((sum, { packets }) => sum + packets, 0) / 1000,
    ],
    ["lost on the link", ({ result }) => result.frames?.link_down ?? 0],
    ["came out of order, thousands", ({ result }) => (result.transport?.out_of_sequence ?? 0) / 1000],
    ["sent again, thousands", ({ result }) => (result.transport?.retransmitted ?? 0) / 1000],
    ["timeouts", ({ result }) => result.transport?.local_ack_timeout_err ?? 0],
    ["least flow, Gb/s", ({ result }) => Math.min(...result.flows.map(({ goodput_bps }) => goodput_bps)) / 1e9],
  ];
  return {
    title: "Counts of whole runs",
    head: ["", ...columns.map(([name]) => name)],
    names: 1,
    rows: [...runs].map(([name, own]) => [name, ...columns.map(([, of]) => spread(own.map(of)))]),
  };
}

async function picture(of: Scenario): Promise<string> {
  const curves = [...runs].slice(0, kDrawn).map(([label, own]) => {
    const y = total(own[0] as Run, kSmooth);
    return { label, x: y.map((_, i) => ((i + 0.5) * kSmooth) / 1e6), y };
  });
  const marks = of.failures.flatMap(({ at, until = of.duration, reroute }) => [
    { label: "fails", x: at / 1e6 },
    { label: "routes follow", x: (at + reroute) / 1e6 },
    { label: "is there again", x: until / 1e6 },
    { label: "routes follow", x: (until + reroute) / 1e6 },
  ]);
  const plot = {
    title: "",
    x_label: "time, ms",
    y_label: "goodput of all flows, Gb/s",
    y_range: [0, 1600] as const,
    curves,
    marks,
  };
  return drawFigure("Goodput while a link of a fat tree fails", [
    { heading: "A link of a fat tree fails", plots: [plot] },
  ]);
}
