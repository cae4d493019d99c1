/** The benchmark's figures as tables. */
import { readFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { parse } from "csv-parse/sync";
import { linearRegression, median } from "simple-statistics";
import { sizeClass } from "../../src/result/report/completion_classes.js";
import { fixed } from "../../src/result/report/format.js";
import type { Grid } from "../../src/result/report/table.js";
import { type Summary, summarize } from "../../src/result/statistics.js";
import { CASES, type Case, type Sample } from "./cases.js";
import type { PeerSample } from "./peer.js";

/** All samples of one case, and of what ran beside each. */
export interface Outcome {
  name: string;
  samples: Sample[];
  peers: PeerSample[];
}

type Measured = Case & Outcome;

/** "AMD EPYC, 2 CPUs, load average 0.31". */
export function machine(): string {
  const all = cpus();
  return `${all[0]?.model.trim()}, ${all.length} CPUs, Node ${process.versions.node}, load average ${loadavg()[0]?.toFixed(2)}`;
}

export function tables(outcomes: readonly Outcome[], fct?: string): Grid[] {
  const measured = outcomes.flatMap((outcome) =>
    CASES.filter(({ name }) => name === outcome.name).map((one): Measured => ({ ...one, ...outcome })),
  );
  const of = (...groups: Case["group"][]) => measured.filter(({ group }) => groups.includes(group));
  return [
    speedGrid(of("incast", "fabric", "permutation")),
    recordedGrid(of("incast", "fabric", "permutation")),
    peerGrid(measured.filter(({ peers }) => peers.length > 0)),
    scalingGrid(of("scaling")),
    memoryGrid(of("hosts", "flows")),
    ...of("fabric").map((one) => completionGrid(one, one.name === "hpcc-320-10ms" ? fct : undefined)),
  ].filter(({ rows }) => rows.length > 0);
}

function speedGrid(measured: readonly Measured[]): Grid {
  return {
    title: "Speed",
    head: [
      "case",
      "hosts",
      "flows",
      "simulated us",
      "hops",
      "CPU s in run()",
      "CPU s in all",
      "M hops per CPU s",
      "peak MB",
    ],
    names: 1,
    rows: measured.map(({ name, samples }) => [
      name,
      String(first(samples).hosts),
      String(first(samples).flows),
      fixed(first(samples).simulated_s * 1e6),
      String(first(samples).hops),
      fixed(middle(samples, ({ run_cpu_s }) => run_cpu_s)),
      fixed(middle(samples, ({ whole_cpu_s }) => whole_cpu_s)),
      fixed(middle(samples, hopRate) / 1e6),
      megabytes(middle(samples, ({ memory }) => memory.peak)),
    ]),
  };
}

/** Ratios to what others needed on another day. */
function recordedGrid(measured: readonly Measured[]): Grid {
  return {
    title: "Beside recorded figures (one vCPU of a 2.5 GHz Xeon, not this run): how many times faster",
    head: [
      "case",
      "simulator",
      "its hops",
      "its k hops per CPU s",
      "by hops per CPU s",
      "by virtual time per CPU s, in all",
    ],
    names: 2,
    rows: measured.flatMap(({ name, recorded, samples }) => {
      if (recorded === undefined) return [];
      const { simulator, cpu_s, hops, simulated_s } = recorded;
      const pace = middle(samples, (one) => one.simulated_s / one.whole_cpu_s);
      return [
        [
          name,
          simulator,
          String(hops),
          fixed(hops / cpu_s / 1e3),
          fixed(middle(samples, hopRate) / (hops / cpu_s)),
          fixed(pace / (simulated_s / cpu_s)),
        ],
      ];
    }),
  };
}

/** Ratios of neighbours in time, so that what else the machine does hits both alike. */
function peerGrid(measured: readonly Measured[]): Grid {
  return {
    title: "Beside others, in turns in this run: how many times faster",
    head: [
      "case",
      "its CPU s",
      "its hops",
      "its k hops per CPU s",
      "by hops per CPU s in run()",
      "by hops per CPU s in all",
      "by CPU s in run()",
      "by CPU s in all",
    ],
    names: 1,
    rows: measured.map(({ name, samples, peers }) => {
      const pairs = peers.map((peer, i) => ({ peer, ours: samples[i] as Sample }));
      const rate = ({ cpu_s, hops = Number.NaN }: PeerSample) => hops / cpu_s;
      const known = peers.every(({ hops }) => hops !== undefined);
      const ifKnown = (value: () => string) => (known ? value() : "");
      return [
        name,
        fixed(median(peers.map(({ cpu_s }) => cpu_s))),
        ifKnown(() => String(peers[0]?.hops)),
        ifKnown(() => fixed(median(peers.map(rate)) / 1e3)),
        ifKnown(() => fixed(median(pairs.map(({ peer, ours }) => hopRate(ours) / rate(peer))))),
        ifKnown(() => fixed(median(pairs.map(({ peer, ours }) => ours.hops / ours.whole_cpu_s / rate(peer))))),
        fixed(median(pairs.map(({ peer, ours }) => peer.cpu_s / ours.run_cpu_s))),
        fixed(median(pairs.map(({ peer, ours }) => peer.cpu_s / ours.whole_cpu_s))),
      ];
    }),
  };
}

function scalingGrid(measured: readonly Measured[]): Grid {
  const cost = ({ samples }: Measured) => middle(samples, ({ run_cpu_s, hops }) => (run_cpu_s / hops) * 1e9);
  const least = measured[0];
  return {
    title: "Cost of a hop at equal load per host (half the line rate)",
    head: ["network", "hosts", "hops", "CPU ns per hop", `to ${least?.name}`, "events per hop"],
    names: 1,
    rows: measured.map((one) => [
      one.name,
      String(first(one.samples).hosts),
      String(first(one.samples).hops),
      fixed(cost(one)),
      fixed(cost(one) / cost(least as Measured)),
      fixed(first(one.samples).events / first(one.samples).hops),
    ]),
  };
}

function memoryGrid(measured: readonly Measured[]): Grid {
  const built = ({ memory }: Sample) => memory.built - memory.before;
  const used = ({ memory }: Sample) => memory.after - memory.before;
  const peak = ({ memory }: Sample) => memory.peak;
  const kinds = [
    ["hosts", "each host, with its share of the fat tree"],
    ["flows", "each flow"],
  ] as const;
  const slopes = kinds.flatMap(([group, name]) => {
    const samples = measured.filter((one) => one.group === group).flatMap((one) => one.samples);
    if (new Set(samples.map((sample) => sample[group])).size < 2) return [];
    const slope = (value: (sample: Sample) => number) =>
      `${(linearRegression(samples.map((sample) => [sample[group], value(sample)])).m / 1e3).toFixed(2)} KB`;
    return [[name, "", "", slope(built), slope(used), slope(peak)]];
  });
  return {
    title: "Memory: resident MB above what was there before, and the most of the whole process",
    head: ["case", "hosts", "flows", "simulation made", "after the run", "peak of the process"],
    names: 1,
    rows: [
      ...measured.map(({ name, samples }) => [
        name,
        String(first(samples).hosts),
        String(first(samples).flows),
        ...[built, used, peak].map((value) => megabytes(middle(samples, value))),
      ]),
      ...slopes,
    ],
  };
}

/** Slowdowns by size; beside those of `file`, a CSV with size_bytes, fct_ns and standalone_fct_ns. */
function completionGrid({ name, samples }: Measured, file?: string): Grid {
  const { fct } = first(samples);
  const theirs = file === undefined ? [] : readCompletions(file);
  const cells = ({ count, slowdown }: { count: number; slowdown: Summary }) => [
    String(count),
    ...[slowdown.mean, slowdown.p50, slowdown.p95, slowdown.p99].map(fixed),
  ];
  const other = (above: number, most: number) => {
    const ratios = theirs.filter(({ bytes }) => bytes > above && bytes <= most).map(({ slowdown }) => slowdown);
    return theirs.length === 0 ? [] : cells({ count: ratios.length, slowdown: summarize(ratios) });
  };
  const rows =
    fct === undefined
      ? []
      : [
          ["all", ...cells(fct), ...other(0, Number.POSITIVE_INFINITY)],
          ...fct.bins.map((bin) => [
            sizeClass(bin),
            ...cells(bin),
            ...other(bin.above_bytes, bin.up_to_bytes ?? Number.POSITIVE_INFINITY),
          ]),
        ];
  const columns = ["flows", "slowdown mean", "p50", "p95", "p99"];
  return {
    title: `Completion times of ${name}, ${fct?.incomplete} of ${first(samples).flows} flows not complete`,
    head: ["size", ...columns, ...(theirs.length === 0 ? [] : columns.map((column) => `file: ${column}`))],
    names: 1,
    rows,
  };
}

function readCompletions(file: string): { bytes: number; slowdown: number }[] {
  const rows = parse(readFileSync(file, "utf8"), { columns: true }) as Record<string, string>[];
  return rows.map(({ size_bytes, fct_ns, standalone_fct_ns }) => ({
    bytes: Number(size_bytes),
    slowdown: Number(fct_ns) / Number(standalone_fct_ns),
  }));
}

function hopRate({ hops, run_cpu_s }: Sample): number {
  return hops / run_cpu_s;
}

function first(samples: readonly Sample[]): Sample {
  return samples[0] as Sample;
}

function middle(samples: readonly Sample[], value: (sample: Sample) => number): number {
  return median(samples.map(value));
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}
