/**
 * Incasts in virtual time beside the same in two ns-3 simulators of DCQCN: docs/evidence/ns3.md has the whole comparison.
 *
 * Where hardly anything is random, rates must agree to the digits that were kept. Elsewhere a bound covers the range of 15 seeds
 * of ours and the other's seeds (three at most), and about half as much again. Where a named rule makes a difference,
 * its sign and size are bounded.
 */
import { readdirSync, readFileSync } from "node:fs";
import { parse } from "csv-parse/sync";
import { describe, expect, it } from "vitest";
import { type IncastFigures, runIncast, senders } from "../../../bench/simulation/ns3_figures.js";
import { loadScenario } from "../../../src/scenario/scenario.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";

const kFolder = "examples/ns3";
/** Packets are marked, and a link carries this many more of HPCC-ns3's (1048 bytes) than of ours. */
const kMorePackets = 1106 / 1048;

type Row = Record<string, string>;
const table = (name: string): Row[] => parse(readFileSync(`test/fixtures/ns3/${name}`), { columns: true });

/** Mean of a column over the seeds of a run of the other simulator. */
function theirs(sim: string, preset: string, count: number, column: string): number {
  const rows = table("incast.csv").filter(
    (row) => row.sim === sim && row.preset === preset && row.N === String(count) && row[column] !== undefined,
  );
  if (rows.length === 0) throw new Error(`no ${column} of ${sim} ${preset} ${count}`);
  return rows.reduce((sum, row) => sum + Number(row[column]), 0) / rows.length;
}

async function ours(name: string, count: number, set: string[] = []): Promise<IncastFigures> {
  const file = `${kFolder}/${name}.yaml`;
  return (await runIncast(file, [...senders(file, count), ...set], 1)).figures;
}

/** Both flows' current rates in Gb/s and the first's alpha, after each millisecond. */
async function staggered(name: string, seed: number) {
  const { series } = await runIncast(`${kFolder}/${name}.yaml`, ["duration=22ms", "warmup=10ms"], seed);
  const { first, second } = series.flows;
  return (ms: number) => ({
    rates: [(first?.rate_bps?.[ms] ?? 0) / 1e9, (second?.rate_bps?.[ms] ?? 0) / 1e9],
    alpha: first?.alpha?.[ms] ?? 0,
  });
}

function expectNear(value: number, reference: number, fraction: number): void {
  expect(value / reference).toBeGreaterThan(1 - fraction);
  expect(value / reference).toBeLessThan(1 + fraction);
}

describe("the scenarios", () => {
  it.each(readdirSync(kFolder))("%s is valid as it stands and with twenty senders", (name) => {
    const file = `${kFolder}/${name}`;
    expect(loadScenario(file).warnings).toEqual([]);
    if (!name.startsWith("staggered")) {
      expect(loadScenario(file, { set: senders(file, 20) }).scenario.flows).toHaveLength(20);
    }
  });
});

describe("two senders, the second 10 ms later", () => {
  skipWhere(nativeObstacle());

  /** Rows by time in ms, from 11 to 20: marking is not random, because the link is not full. */
  const reference = (sim: string, preset: string) =>
    table("staggered.csv")
      .filter((row) => row.sim === sim && row.preset === preset && Number(row.t_ms) > 10 && Number(row.t_ms) <= 20)
      .map((row) => ({
        ms: Number(row.t_ms),
        rates: [Number(row.rc_gbps_1), Number(row.rc_gbps_2)],
        alpha: Number(row.alpha_1),
      }));

  it("have HPCC-ns3's rates and alpha until marking is random", async () => {
    const rows = reference("HPCC-ns3", "match_hai40");
    expect(rows).toHaveLength(10);
    const equal: number[] = [];
    for (let seed = 1; seed <= 8; ++seed) {
      const at = await staggered("staggered-hpcc", seed);
      // When the last cut of the start comes is a matter of chance by some us, and it starts the timer: a step of 40 Mb/s may be
      // on the other side of a sample. All else is the same to the last digit.
      const same = (flow: number) =>
        rows.every(({ ms, rates }) => {
          const difference = Math.abs((at(ms).rates[flow] ?? 0) - (rates[flow] ?? 0));
          return Math.min(difference, Math.abs(difference - 0.04)) < 2e-4;
        });
      equal.push([0, 1].filter(same).length);
      // The same for a step of alpha, which takes 1/256 off.
      if (same(0)) for (const { ms, alpha } of rows) expectNear(at(ms).alpha, alpha, 1 / 250);
    }
    // Among 20 seeds, one sender is cut once more than in HPCC-ns3's run with 4, the other never.
    expect(Math.min(...equal)).toBeGreaterThanOrEqual(1);
    expect(equal.filter((count) => count === 2).length).toBeGreaterThanOrEqual(4);
  });

  it("gain as much rate as in ns3-rdma, where the first CNP comes at another time", async () => {
    const rows = reference("ns3-rdma", "match");
    const at = await staggered("staggered-ns3-rdma", 1);
    for (const flow of [0, 1]) {
      const gain = (rate: (ms: number) => number | undefined) => (rate(20) ?? 0) - (rate(12) ?? 0);
      const other = gain((ms) => rows.find((row) => row.ms === ms)?.rates[flow]);
      expect(other).toBeGreaterThan(5);
      // A sample may miss at most one step of R_AI = 40 Mb/s.
      expect(Math.abs(gain((ms) => at(ms).rates[flow]) - other)).toBeLessThan(0.041);
    }
  });
});

describe("an incast with HPCC-ns3's DCQCN", () => {
  skipWhere(nativeObstacle());

  it("of 4 senders has its goodput, fairness, queue and marks", async () => {
    const run = await ours("hpcc-match", 4);
    const other = (column: string) => theirs("HPCC-ns3", "match_hai40", 4, column);
    // Ours 0.991 to 0.998, theirs 0.993.
    expect(Math.abs(run.share - other("goodput_gbps_lasthalf") / (8000 / 209))).toBeLessThan(0.01);
    // Ours 0.990 to 1.000 and 0.979 to 0.994; theirs 0.994 and 0.985.
    expect(run.jain).toBeGreaterThan(0.98);
    expect(run.jain1ms).toBeGreaterThan(0.97);
    // Ours 42 to 49 and 103 to 137 KB, theirs 45 and 126.
    expectNear(run.queue.mean, other("q_mean"), 0.2);
    expectNear(run.queue.p95, other("q_p95"), 0.25);
    // The start-up is not random: 1.24 to 1.25 MB in both.
    expectNear(run.queueMaxWhole, other("q_max_whole"), 0.03);
    // Ours within 1% of their mean, theirs (of preset match) within 2%.
    expectNear(run.marks * kMorePackets, other("ecn_marks"), 0.05);
    expect(run).toMatchObject({ pauses: 0, drops: 0, cnps: run.marks });
  });

  it("of 20 senders uses as little of the link, with as long a queue", async () => {
    const run = await ours("hpcc-match", 20);
    const other = (column: string) => theirs("HPCC-ns3", "match_hai40", 20, column);
    // Ours 0.947 to 0.954, theirs 0.947.
    expect(Math.abs(run.share - other("goodput_gbps_lasthalf") / (8000 / 209))).toBeLessThan(0.012);
    expect(run.jain1ms).toBeGreaterThan(0.985);
    // Ours 62 to 65, 227 to 231 and 244 to 252 KB; theirs 62, 232 and 250.
    expectNear(run.queue.mean, other("q_mean"), 0.06);
    expectNear(run.queue.p95, other("q_p95"), 0.05);
    expectNear(run.queue.p99, other("q_p99"), 0.05);
    expectNear(run.queueMaxWhole, other("q_max_whole"), 0.02);
    // Ours within 2% of their mean.
    expectNear(run.marks * kMorePackets, other("ecn_marks"), 0.05);
    expect(run.drops).toBe(0);
  });

  it("loses as much of the link when it increases by 200 Mb/s, the step of their timer's hyper increase", async () => {
    const run = await ours("hpcc-match", 20, ["congestion.parameters.rpg_ai_rate=200Mbps"]);
    const other = (column: string) => theirs("HPCC-ns3", "match", 20, column);
    // Ours 0.870 to 0.877; theirs 0.854 to 0.857, because there the first step of each increase is 40 Mb/s.
    expect(Math.abs(run.share - other("goodput_gbps_lasthalf") / (8000 / 209))).toBeLessThan(0.03);
    // Ours 87 to 92 KB, theirs 91.
    expectNear(run.queue.mean, other("q_mean"), 0.08);
  });
});

describe("an incast with ns3-rdma's DCQCN", () => {
  skipWhere(nativeObstacle());

  it("of 4 senders has its goodput, queue and CNPs", async () => {
    const run = await ours("ns3-rdma-match", 4);
    const other = (column: string) => theirs("ns3-rdma", "match", 4, column);
    // Ours 0.993 to 0.999, theirs 0.993 to 0.998.
    expect(Math.abs(run.share - other("goodput_gbps_lasthalf") / (8000 / 203))).toBeLessThan(0.01);
    expect(run.jain).toBeGreaterThan(0.98);
    // Ours 44 to 50 KB, theirs 46 to 47.
    expectNear(run.queue.mean, other("q_mean"), 0.15);
    // Ours 804 to 855, theirs 794 to 801.
    expectNear(run.cnps, other("cnp"), 0.1);
  });

  it("of 20 senders hears of congestion sooner: more of the link, fewer marks", async () => {
    const run = await ours("ns3-rdma-match", 20);
    const other = (column: string) => theirs("ns3-rdma", "match", 20, column);
    // Ours 0.972 to 0.975, theirs 0.947 to 0.949: their notification point waits for its next tick.
    const more = run.share - other("goodput_gbps_lasthalf") / (8000 / 203);
    expect(more).toBeGreaterThan(0);
    expect(more).toBeLessThan(0.04);
    expect(run.marks).toBeLessThan(other("ecn_marks"));
    // Ours 68 to 70 KB, theirs 64 to 66; the start-up is limited by PFC in both.
    expectNear(run.queue.mean, other("q_mean"), 0.12);
    expectNear(run.queueMaxWhole, other("q_max_whole"), 0.03);
    // Ours 6652 to 6718, theirs 6575 to 6618.
    expectNear(run.cnps, other("cnp"), 0.04);
    expect(run.drops).toBe(0);
  });
});
