/** TCP with QCN, with made-up runs: what is measured in them, and what holds where it is so. */
import { describe, expect, it } from "vitest";
import type { Series } from "../../../src/result/result.js";
import { sampleSeries } from "../../../test/result/report/sample.js";
import { all, type Made, outcome, tcpFlow } from "../../test/made_runs.js";

describe("TCP with QCN", () => {
  const queue = (from: number, to: number): Series => {
    const time_s = Array.from({ length: 2000 }, (_, i) => i / 1000);
    // The first quarter of it is warm-up.
    const bytes = time_s.map((_, i) => (i < 500 ? 150e3 : i % 2 === 0 ? from : to));
    return { ...sampleSeries(1, 2), time_s, queues: { "sw:r:3": { bytes, max_bytes: bytes } } };
  };
  const run = (each: number, again: number, series: Series, cnms: number, drops: number, pauses: number): Made => ({
    rates: { "tcp/t1": each, "tcp/t2": each },
    flows: { "tcp/t1": tcpFlow(3, again), "tcp/t2": tcpFlow(3, again) },
    series,
    result: {
      duration_s: 2,
      totals: { goodput_bps: 0, jain: 0.97 },
      switches: {
        sw: {
          ...{ drops: { lossy_threshold: drops + 1 }, ecn_marked: 0, pfc_sent: { 3: pauses }, queues: {} },
          congestion_points: { r: { 3: { frames: 9000, sampled: 90, cnms, discarded: drops } } },
        },
      },
      nics: Object.fromEntries(
        ["t1", "t2", "t3", "t4"].map((name, i) => {
          const nic = { np_cnp_sent: 0, rp_cnp_handled: 0, pfc_received: {}, pfc_sent: {} };
          return [name, { ...nic, rp_cnm_handled: cnms === 0 ? 0 : cnms + i }];
        }),
      ),
    },
  });
  const made = (cnms: number): Readonly<Record<string, Made>> => ({
    qcn: run(0.48, 2, queue(23e3, 43e3), cnms, 9, 0),
    none: run(0.5, 40, queue(100e3, 150e3), 0, 400, 0),
    qcn_pfc: run(0.48, 0, queue(23e3, 43e3), cnms, 0, 20),
    pfc: run(0.5, 0, queue(100e3, 180e3), 0, 0, 4000),
  });

  it("is slowed by reaction points, and has less of its segments to send again", () => {
    const { values, rulings, experiment } = outcome("qcn-netfpga-tcp", "wire", ({ name }) => made(70)[name] as Made);
    expect(values).toMatchObject({
      told_qcn: 70,
      queue_mean_qcn: 33,
      queue_deviation_qcn: 10,
      drops_none: 401,
      rtt_pfc: 0.5,
    });
    expect(values.again_ratio).toBeCloseTo(0.05, 6);
    expect(values.pauses_ratio).toBeCloseTo(0.005, 6);
    expect(values.used_qcn).toBeCloseTo(96, 6);
    expect(rulings).toEqual(all("holds", experiment.statements.length));
    expect(Object.keys(values).sort()).toEqual(Object.keys(experiment.quantities).sort());
  });

  it("is not where no host was told, or the queue is what it is without", () => {
    const bad = (name: string) => (name.startsWith("qcn") ? made(0).pfc : made(0)[name]) as Made;
    const { rulings } = outcome("qcn-netfpga-tcp", "wire", ({ name }) => bad(name));
    // The link is used, and two connections are as fair as they were; nothing is dropped.
    expect(rulings).toEqual([...all("falls short", 3), "holds", "holds", "holds", "falls short"]);
    const lossy = made(70);
    const drops = outcome(
      "qcn-netfpga-tcp",
      "wire",
      ({ name }) => (name === "qcn_pfc" ? lossy.qcn : lossy[name]) as Made,
    );
    expect(drops.rulings[4]).toBe("falls short");
  });
});
