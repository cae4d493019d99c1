/** Words of the paper on congestion control under collectives, on made-up runs, and one of its runs in virtual time. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import type { Result } from "../../../src/result/result.js";
import { nativeObstacle, skipWhere } from "../../../test/obstacles.js";
import { runExperiment } from "../../engine/run.js";
import { fakeRunners, paperOptions } from "../../engine/test/fakes.js";
import { findExperiment } from "../../registry.js";
import { outcome } from "../../test/made_runs.js";

const graph = (ms: number): NonNullable<Result["graphs"]>[number] => ({
  ...{ id: "job", source: "", ranks: 2, operations: 2, ended: 2, messages: 1, bytes: 1, phases: [] },
  ...{ time_s: ms / 1e3, ideal_s: 1e-3, calculation_s: 1e-3, exposed_s: 0 },
});
const links = (...shares: number[]) =>
  shares.map((utilisation, i) => ({
    from: "leaf1",
    to: `spine${i + 1}`,
    rate_bps: 200e9,
    utilisation,
    bytes: 0,
    packets: 0,
    lost: 0,
    pause_time_s: {},
  }));

describe("training-iterations", () => {
  const rulings = (slow: string, ms: number) =>
    outcome("training-iterations", "sim", ({ name }) => ({
      rates: {},
      result: { graphs: [graph(name.startsWith(slow) ? ms : 10)] },
    }));

  it("has little impact where no iteration differs by more than 10%, up or down", () => {
    expect(rulings("dlrm-timely", 10.9).rulings).toEqual(["holds"]);
    expect(rulings("dlrm-timely", 11.1)).toMatchObject({ rulings: ["falls short"] });
    expect(rulings("resnet-hpcc", 8.9)).toMatchObject({ rulings: ["falls short"] });
    expect(rulings("resnet-hpcc", 8.9).values.hpcc_resnet).toBeCloseTo(11, 6);
  });

  it("judges the median of the seeds", () => {
    expect(rulings("dlrm-timely-3", 90).rulings).toEqual(["holds"]);
  });
});

describe("training-collectives", () => {
  const seen = (result: (name: string) => Partial<Result>) =>
    outcome("training-collectives", "sim", ({ name }) => ({
      rates: {},
      result: { graphs: [graph(10)], links: links(0.5, 0.5, 0.01), ...result(name) },
    }));

  it("judges queues to hosts, and the busiest uplink of those that carry data", () => {
    expect(seen(() => ({})).rulings).toEqual(["holds", "holds"]);
    const uneven = seen((name) => (name.startsWith("rails-none") ? { links: links(0.9, 0.3) } : {}));
    expect(uneven.rulings).toEqual(["holds", "falls short"]);
    expect(uneven.values.uneven_rails).toBeCloseTo(1.5, 9);
    const incast = seen(() => {
      const lengths = { mean: 0, p50: 0, p95: 0, p99: 0, max: 900_000 };
      return {
        switches: { leaf1: { ecn_marked: 0, pfc_sent: {}, drops: {}, queues: { "h1-1": { 3: lengths } } } },
      } as never;
    });
    expect(incast.rulings[0]).toBe("falls short");
    expect(incast.values.queue_ring).toBe(900);
  });

  it("counts an all-reduce of rails from its start to the end of the last", () => {
    const { values } = seen((name) => (name.startsWith("rails-dctcp") ? { graphs: [graph(5), graph(12)] } : {}));
    expect(values.dctcp_rails).toBeCloseTo(20, 9);
    expect(values.dctcp_ring).toBe(0);
  });
});

describe("in virtual time", () => {
  skipWhere(nativeObstacle());
  const directory = mkdtempSync(join(tmpdir(), "weir-paper-training-"));
  afterAll(() => rmSync(directory, { recursive: true }));

  it("a ring of neighbours is as fast under any control, and all-to-alls have no queue to a host", async () => {
    const experiment = findExperiment("training-collectives");
    if (experiment?.network === undefined) throw new Error("no training-collectives");
    const trials = experiment.network.trials
      .filter(({ name }) => /^ring|^small-none/.test(name))
      .map(({ set, ...trial }) => ({ ...trial, set: [...set, "traffic.0.size=2MB"] }));
    const { runs, observations } = await runExperiment(
      { ...experiment, network: { ...experiment.network, trials } },
      { ...fakeRunners, sim: { run: runSimulation } },
      paperOptions(directory),
    );
    expect(runs.map(({ valid }) => valid)).toEqual(trials.map(() => true));
    const values = observations.sim?.values ?? {};
    for (const control of ["dcqcn", "dctcp", "timely", "hpcc"])
      expect(Math.abs(values[`${control}_ring`] ?? Number.NaN), control).toBeLessThan(10);
    expect(values.uneven_ring).toBeCloseTo(1, 2);
    expect(values.queue_small).toBeLessThan(100);
    expect(values.pauses_ring).toBe(0);
  });
});
