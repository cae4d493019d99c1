/** Purposes of QCN as Liss states them, and the CNPs of a NIC, with made-up runs: what is measured in them, and when it holds. */
import { describe, expect, it } from "vitest";
import type { Result } from "../../../src/result/result.js";
import type { Trial } from "../../engine/experiment.js";
import { all, type Made, outcome } from "../../test/made_runs.js";

const pfc = (frames: number) => ({ drops: {}, ecn_marked: 0, queues: {}, pfc_sent: { 3: frames } });

describe("a victim with QCN", () => {
  const run = (victim: number, frames: number): Made => ({
    rates: { victim, "incast/h1-1": 30 },
    result: { switches: { t1: pfc(frames), t4: pfc(2 * frames) } },
  });
  const judged = (victim: number, frames: number) =>
    outcome("qcn-ofa-victim", "sim", ({ name }) => (name === "pfc" ? run(5, 1000) : run(victim, frames)));

  it("is helped where it gains and pauses become fewer, and by how much is said", () => {
    const { rulings, values } = judged(30, 10);
    expect(values).toMatchObject({ gain: 6, pauses_pfc: 3000, pauses_qcn: 30, others_pfc: 30 });
    expect(values.pauses_part).toBeCloseTo(0.01, 9);
    expect(rulings).toEqual(["holds"]);
    expect(judged(5, 10).rulings).toEqual(["falls short"]);
    expect(judged(30, 1000).rulings).toEqual(["falls short"]);
  });

  it("is not judged where nothing was paused", () => {
    const { rulings } = outcome("qcn-ofa-victim", "sim", () => run(5, 0));
    expect(rulings).toEqual(["not judged"]);
  });
});

describe("lossless and lossy traffic with QCN", () => {
  interface Figures {
    queue: number;
    incast: number;
    ipc: number;
    bursts: number;
    lost: readonly [lossless: number, lossy: number];
    used: number;
    frames: number;
  }
  const kPfc: Figures = { queue: 3e6, incast: 1500, ipc: 700, bursts: 200, lost: [0, 900], used: 1, frames: 1000 };
  const kQcn: Figures = { queue: 3e4, incast: 150, ipc: 7, bursts: 160, lost: [0, 0], used: 1, frames: 0 };

  const transfers = (bytes: number, us: number) => {
    const bps = (8e6 * bytes) / us;
    const spread = { mean: bps, min: bps, p10: bps, p50: bps, max: bps };
    return { flows: 1, goodput_bps: spread, transfers: { count: 9, throughput_bps: spread } };
  };
  function run({ queue, incast, ipc, bursts, lost, used, frames }: Figures): Made {
    const lengths = { mean: queue, p50: queue, p95: queue, p99: queue, max: queue };
    const link = { from: "sw", to: "r", rate_bps: 40e9, utilisation: used, bytes: 1, packets: 1, lost: 0 };
    return {
      rates: { "long/long1": 20, "bursts/b1": 1 },
      flows: { "long/long1": { priority: 3, lost: lost[0] }, "bursts/b1": { priority: 0, lost: lost[1] } },
      result: {
        switches: { sw: { ...pfc(frames), queues: { r: { 3: lengths } } } },
        links: [{ ...link, pause_time_s: {} }],
        groups: { incast: transfers(64e3, incast), ipc: transfers(2e3, ipc), bursts: transfers(200e3, bursts) },
      } as Partial<Result>,
    };
  }
  const judged = (qcn: Partial<Figures>, before = kPfc) =>
    outcome("qcn-ofa-dcb", "sim", ({ name }: Trial) => run(name === "pfc" ? before : { ...kQcn, ...qcn }));

  it("holds where all becomes less, and the link is used", () => {
    const { rulings, values, experiment } = judged({});
    expect(Object.keys(values).sort()).toEqual(Object.keys(experiment.quantities).sort());
    expect(values.queue_mean_pfc).toBe(3000);
    expect(values.ipc_p90_part).toBeCloseTo(0.01, 9);
    expect(rulings).toEqual(all("holds", 6));
  });

  it.each<[string, Partial<Figures>, number]>([
    ["the queue", { queue: 3e6 }, 0],
    ["the incast", { incast: 1500 }, 1],
    ["pauses", { frames: 1000 }, 1],
    ["latency", { ipc: 700 }, 2],
    ["losses of bursts", { lost: [0, 900] }, 3],
    ["a lossless packet that is lost", { lost: [1, 0] }, 4],
    ["a link that stands idle", { used: 0.15 }, 5],
  ])("falls short by %s alone", (_name, change, statement) => {
    expect(judged(change).rulings).toEqual(
      all("holds", 6).map((ruling, i) => (i === statement ? "falls short" : ruling)),
    );
  });

  it("judges no part of nothing", () => {
    const { rulings } = judged({}, { ...kPfc, lost: [0, 0], frames: 0, bursts: Number.POSITIVE_INFINITY });
    expect([rulings[1], rulings[3]]).toEqual(["not judged", "not judged"]);
  });
});

describe("the CNPs of a NIC (section 3.3)", () => {
  /** CNPs of 20 ms, of each of so many flows. */
  const run = (flows: number, each: number): Made => {
    const counts = { np_cnp_sent: flows * each * 400, rp_cnp_handled: 0, pfc_received: {} };
    return { rates: {}, result: { duration_s: 0.02, nics: { h65: counts } } as Partial<Result> };
  };
  const judged = (part: (flows: number, interval: number) => number) =>
    outcome("dcqcn-section3.3", "sim", ({ name }) => {
      const [flows = "", limit = ""] = name.split("-flows-");
      const interval = { us1: 1, us2_5: 2.5, us5: 5 }[limit];
      return run(Number(flows), interval === undefined ? 1 : part(Number(flows), interval));
    });

  it("are enough for as many flows as there are of them in 50 us", () => {
    const { values, rulings } = judged((flows, interval) => Math.min(1, 50 / interval / flows));
    expect(values).toMatchObject({ owed_10: 1, us5_10: 1, us5_20: 0.5, us2_5_20: 1, us1_50: 1 });
    expect(rulings).toEqual(["holds", "not judged"]);
    // A NIC with half of the CNPs.
    expect(judged((flows, interval) => Math.min(1, 25 / interval / flows)).rulings[0]).toBe("falls short");
    // No CNP was owed.
    expect(outcome("dcqcn-section3.3", "sim", () => run(10, 0)).rulings).toEqual(["not judged", "not judged"]);
  });
});
