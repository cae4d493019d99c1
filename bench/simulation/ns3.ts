/**
 * Incasts in virtual time beside those of two ns-3 simulators of DCQCN: the tables of docs/evidence/ns3.md.
 *
 *   npx tsx bench/simulation/ns3.ts [native core, such as /tmp/changed/weir.node]
 *
 * Runs the files of examples/ns3 with seeds 1 to 3, and variants that test what an explanation says; with a native core of
 * its own, which has some rule changed, only the files. About a minute. The figures of the others are in test/fixtures/ns3.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { parse } from "csv-parse/sync";
import { max, min } from "simple-statistics";
import type { SimulationAddon } from "../../src/native/simulation_types.js";
import { type IncastFigures, refillMs, runIncast, senders } from "./ns3_figures.js";

const kSeeds = [1, 2, 3];
const core = process.argv[2];
const addon: SimulationAddon | undefined =
  core === undefined ? undefined : createRequire(import.meta.url)(resolve(core));
const kFixtures = new URL("../../test/fixtures/ns3/", import.meta.url);

interface Case {
  simulator: string;
  preset: string;
  file: string;
  /** Sampling interval: short enough to see each cut. */
  interval: string;
  variants: Record<string, string[]>;
}

const dcqcn = (name: string, value: string) => `congestion.parameters.${name}=${value}`;

/** Without effect on Weir as it is: there is no hyper increase without a byte counter. */
const kHai40 = dcqcn("rpg_hai_rate", "40Mbps");

const kCases: Case[] = [
  {
    simulator: "HPCC-ns3",
    preset: "match_hai40",
    file: "hpcc-match",
    interval: "10us",
    variants: { "": [kHai40] },
  },
  {
    simulator: "HPCC-ns3",
    preset: "match",
    file: "hpcc-match",
    interval: "10us",
    variants: { "": [], "R_AI 200": [dcqcn("rpg_ai_rate", "200Mbps")] },
  },
  {
    simulator: "HPCC-ns3",
    preset: "match_noclamp",
    file: "hpcc-match",
    interval: "10us",
    variants: {
      "": [dcqcn("clamp_tgt_rate", "false")],
      "R_AI 200": [dcqcn("clamp_tgt_rate", "false"), dcqcn("rpg_ai_rate", "200Mbps")],
    },
  },
  {
    simulator: "HPCC-ns3",
    preset: "repo",
    file: "hpcc-repo",
    interval: "2us",
    variants: { "": [], "R_AI 80": [dcqcn("rpg_ai_rate", "80Mbps")] },
  },
  {
    simulator: "ns3-rdma",
    preset: "match",
    file: "ns3-rdma-match",
    interval: "10us",
    variants: { "": [], "F 5": [dcqcn("rpg_threshold", "5")] },
  },
  {
    simulator: "ns3-rdma",
    preset: "repo",
    file: "ns3-rdma-repo",
    interval: "10us",
    variants: { "": [], "F 5": [dcqcn("rpg_threshold", "5")] },
  },
];

function table(name: string): Record<string, string>[] {
  return parse(readFileSync(new URL(name, kFixtures)), { columns: true });
}

const kRates = "goodput,% used,flows,Jain,Jain 1 ms,queue mean,p50,p95,p99,max".split(",");
const kCounts = "queue max,pauses,resumes,marks,CNPs,cuts,drops".split(",");

/** The range over the seeds. */
function over(runs: readonly IncastFigures[], pick: (run: IncastFigures) => number, digits = 0, scale = 1): string {
  const values = runs.map((run) => pick(run) * scale);
  const [low, high] = [min(values).toFixed(digits), max(values).toFixed(digits)];
  return low === high ? low : `${low}-${high}`;
}

function rates(runs: readonly IncastFigures[]): string[] {
  return [
    over(runs, (run) => run.goodput, 2),
    over(runs, (run) => run.share, 1, 100),
    `${over(runs.slice(0, 1), (run) => run.flowMin, 2)}-${over(runs.slice(0, 1), (run) => run.flowMax, 2)}`,
    over(runs, (run) => run.jain, 4),
    over(runs, (run) => run.jain1ms, 4),
    over(runs, ({ queue }) => queue.mean, 1, 1e-3),
    over(runs, ({ queue }) => queue.p50, 0, 1e-3),
    over(runs, ({ queue }) => queue.p95, 0, 1e-3),
    over(runs, ({ queue }) => queue.p99, 0, 1e-3),
    over(runs, ({ queue }) => queue.max, 0, 1e-3),
  ];
}

function counts(runs: readonly IncastFigures[]): string[] {
  return [
    over(runs, (run) => run.queueMaxWhole, 0, 1e-3),
    over(runs, (run) => run.pauses),
    over(runs, (run) => run.resumes),
    over(runs, (run) => run.marks),
    over(runs, (run) => run.cnps),
    over(runs, (run) => run.cuts),
    over(runs, (run) => run.drops),
  ];
}

/** Most that each simulator's link carries: its time step of 1 ns makes a packet a fraction shorter than it is. */
const kGoodputLimit: Record<string, number> = { "HPCC-ns3": 8000 / 209, "ns3-rdma": 8000 / 203 };

function reference(): (IncastFigures & { simulator: string; preset: string; senders: number })[] {
  return table("incast.csv").map((one) => {
    const number = (name: string) => Number(one[name]);
    const simulator = one.sim as string;
    return {
      simulator,
      preset: one.preset as string,
      senders: number("N"),
      goodput: number("goodput_gbps_lasthalf"),
      share: number("goodput_gbps_lasthalf") / (kGoodputLimit[simulator] as number),
      flowMin: number("flow_min"),
      flowMax: number("flow_max"),
      jain: number("jain_lasthalf"),
      jain1ms: number("jain_1ms_mean"),
      queue: {
        mean: number("q_mean"),
        p50: number("q_p50"),
        p95: number("q_p95"),
        p99: number("q_p99"),
        max: number("q_max_lasthalf"),
      },
      queueMaxWhole: number("q_max_whole"),
      pauses: number("pfc_pause"),
      resumes: number("pfc_resume"),
      marks: number("ecn_marks"),
      cnps: number("cnp"),
      cuts: number("rate_cuts"),
      drops: number("drops"),
    };
  });
}

const others = reference();

function print(title: string, head: readonly string[], rows: readonly (readonly string[])[]): void {
  const lines = [["", ...head], ["---", ...head.map(() => "--:")], ...rows];
  console.log(`\n${title}\n\n${lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n")}`);
}

for (const count of [4, 20]) {
  const groups: [name: string, runs: IncastFigures[]][] = [];
  for (const { simulator, preset, file, interval, variants } of kCases) {
    const theirs = others.filter(
      (one) => one.simulator === simulator && one.preset === preset && one.senders === count,
    );
    groups.push([`${simulator} ${preset}`, theirs]);
    for (const [name, set] of Object.entries(variants)) {
      if (addon !== undefined && name !== "") continue;
      const path = `examples/ns3/${file}.yaml`;
      const all = [...senders(path, count), ...set, `probes.interval=${interval}`];
      const runs: IncastFigures[] = [];
      for (const seed of kSeeds) runs.push((await runIncast(path, all, seed, addon)).figures);
      groups.push([name === "" ? "Weir" : `Weir, ${name}`, runs]);
    }
  }
  const grid = (figures: typeof rates) => groups.map(([name, runs]) => [name, ...figures(runs)]);
  print(`${count}:1, last 50 of 100 ms; Gb/s, KB`, kRates, grid(rates));
  print(`${count}:1, whole run; KB`, kCounts, grid(counts));
}

const staggered: string[][] = [];
for (const { sim, preset, ...figures } of table("staggered_summary.csv")) {
  const queue = ["q_mean", "q_p50", "q_p95", "q_p99", "q_max_lasthalf", "q_max_whole"];
  const kb = queue.map((name, i) => (Number(figures[name]) / 1000).toFixed(i === 0 ? 1 : 0));
  const share = (100 * Number(figures.goodput_gbps_lasthalf)) / (kGoodputLimit[sim as string] as number);
  staggered.push([
    `${sim} ${preset}`,
    Number(figures.goodput_gbps_lasthalf).toFixed(2),
    share.toFixed(1),
    Number(figures.jain_lasthalf).toFixed(4),
    figures.jain_1ms_mean as string,
    ...kb,
    figures.refill_ms as string,
  ]);
  const hpcc = sim === "HPCC-ns3";
  const path = `examples/ns3/staggered-${hpcc ? "hpcc" : "ns3-rdma"}.yaml`;
  const ai200 = hpcc && preset === "match" && addon === undefined;
  const set = ai200 ? [dcqcn("rpg_ai_rate", "200Mbps")] : preset === "match_hai40" ? [kHai40] : [];
  const runs: Awaited<ReturnType<typeof runIncast>>[] = [];
  for (const seed of kSeeds) runs.push(await runIncast(path, set, seed, addon));
  const [goodput, used, , jain, jain1ms, ...lengths] = rates(runs.map((run) => run.figures));
  const refills = runs.map(({ series, figures }) => refillMs(series, (0.95e9 * figures.goodput) / figures.share, 10));
  const most = over(
    runs.map((run) => run.figures),
    (run) => run.queueMaxWhole,
    0,
    1e-3,
  );
  staggered.push([
    ai200 ? "Weir, R_AI 200" : "Weir",
    ...([goodput, used, jain, jain1ms, ...lengths] as string[]),
    most,
    `${min(refills)}${min(refills) < max(refills) ? `-${max(refills)}` : ""}`,
  ]);
}
print(
  "2:1, the second sender 10 ms later, last 150 of 300 ms; Gb/s, KB, ms",
  [...kRates.filter((name) => name !== "flows"), "max of all", "95% again after"],
  staggered,
);
