/** Microbenchmarks of the DCQCN paper (figures 10, 13 and 21, section 6.1) with made-up runs: what is measured in them. */

import { describe, expect, it } from "vitest";
import type { Result, Series } from "../../../src/result/result.js";
import { sampleResult } from "../../../test/result/report/sample.js";
import {
  type Evidence,
  type Experiment,
  type NetworkClock,
  type Observation,
  type Trial,
  trialsOn,
} from "../../engine/experiment.js";
import { loadTrial } from "../../engine/trial.js";
import { DCQCN_EXPERIMENTS } from "../experiments.js";
import { barsOf } from "../marking.js";

type Made = Partial<Pick<Series, "flows" | "queues">> & { wire?: readonly number[]; goodput?: number };

/** `make` says what comes of a trial; `time` has its samples. */
function observed(id: string, clock: NetworkClock, make: (trial: Trial, time: readonly number[]) => Made): Observation {
  const experiment = DCQCN_EXPERIMENTS.find((one) => one.id === id) as Experiment;
  const runs = trialsOn(experiment, clock).map((trial) => [trial.name, evidence(trial, make)] as const);
  const observation = experiment.network?.observe(Object.fromEntries(runs), clock);
  if (observation === undefined) throw new Error(`${id} has no runs`);
  return observation;
}

function evidence(trial: Trial, make: (trial: Trial, time: readonly number[]) => Made): Evidence {
  const { scenario } = loadTrial(trial);
  const interval = scenario.probes.interval / 1e9;
  const time_s = Array.from(
    { length: Math.round(scenario.duration / scenario.probes.interval) },
    (_, i) => i * interval,
  );
  const { flows = {}, queues = {}, wire = [], goodput = 0 } = make(trial, time_s);
  const {
    flows: [pattern],
    ...sample
  } = sampleResult(1);
  const result: Result = {
    ...sample,
    flows: wire.map((gbps) => ({ ...(pattern as Result["flows"][number]), wire_bps: gbps * 1e9 })),
    totals: { goodput_bps: goodput * 1e9, jain: 1 },
  };
  return { scenario, result, series: { interval_s: interval, time_s, flows, queues } };
}

describe("figure 10", () => {
  it("looks at R_C from the second sender's start on", () => {
    // The rate falls from line rate to 4 Gb/s at once, and rises by 0.4 Gb/s each ms: 18 Gb/s after 35 ms, 20 from 40 ms on.
    const rising = (ms: number) => (ms < 0 ? 0 : ms < 0.2 ? 40 : Math.min(20, 4 + 0.4 * ms));
    const { values, traces, plots } = observed("dcqcn-fig10", "sim", ({ name }, time) => ({
      flows: {
        first: { rate_bps: time.map((at) => (at < 0.01 ? 40e9 : 21e9)) },
        second: { rate_bps: time.map((at) => (name === "low" ? 10e9 : rising(1000 * at - 10) * 1e9)) },
      },
    }));
    expect(values.reached_line).toBeCloseTo(35, 0);
    expect(values.reached_low).toBe(Number.POSITIVE_INFINITY);
    expect(values).toMatchObject({ second_low: 10, second_deviation_low: 0, first_deviation_line: 0 });
    expect(values.second_line).toBeCloseTo(20, 1);
    const { second, first } = traces ?? {};
    expect(second?.x[0]).toBeCloseTo(0);
    expect(second?.x.at(-1)).toBeCloseTo(99.95);
    // The first sender's 40 Gb/s before are no part of it.
    expect(Math.max(...(first?.y ?? []))).toBeCloseTo(21);
    expect(plots).toHaveLength(2);
  });
});

describe("figure 13", () => {
  const frame = 1106 / 1024;
  /** Two flows, Gb/s on the link; before 350 ms they are something else. */
  const two = (first: (ms: number) => number, second: number) => (time: readonly number[]) => ({
    flows: {
      first: { goodput_bps: time.map((at) => ((at > 0.35 ? first(1000 * at) : 40) * 1e9) / frame) },
      second: { goodput_bps: time.map((at) => ((at > 0.35 ? second : 0) * 1e9) / frame) },
    },
  });
  const square = (ms: number) => (Math.floor(ms / 10) % 2 === 0 ? 15 : 25);

  it("has fairness and oscillation of what comes after the transient", () => {
    const { values, traces } = observed("dcqcn-fig13", "sim", ({ name }, time) =>
      name.startsWith("a") ? two(() => 30, 10)(time) : two(square, 20)(time),
    );
    expect(values.difference_a_line).toBeCloseTo(20);
    expect(values.ratio_a_low).toBeCloseTo(1 / 3);
    expect(values.jain_a_line).toBeCloseTo(1600 / 2000);
    expect(values.oscillation_a_line).toBeCloseTo(0);
    expect(values.difference_a_half).toBeCloseTo(20);
    // 25% in the first sender's rate, none in the second's.
    expect(values.oscillation_c_line).toBeCloseTo(12.5, 0);
    expect(values.random_c).toBe(values.oscillation_c_line);
    expect(values.oscillation_c_long).toBeCloseTo(12.5, 0);
    expect(values.relief_b).toBeLessThan(0.05);
    expect(values).not.toHaveProperty("fluid_c");
    expect(traces?.second_a?.x[0]).toBeCloseTo(0);
  });

  it("does without the runs that only virtual time has", () => {
    const { values } = observed("dcqcn-fig13", "wire", (_, time) => two(() => 20, 20)(time));
    expect(values).toMatchObject({ ratio_c_line: 1 });
    expect(values).not.toHaveProperty("ratio_c_long");
    expect(values).not.toHaveProperty("difference_a_half");
  });
});

describe("section 6.1", () => {
  const made = ({ name }: Trial, time: readonly number[]): Made => {
    const senders = Number(/^k(\d+)/.exec(name)?.[1]);
    const bytes = time.map((at) => (at < 0.02 ? 1e6 : 1000 * senders));
    return {
      wire: Array.from({ length: senders }, () => (40 - senders / 10) / senders),
      queues: { [`sw:h${senders + 1}:3`]: { bytes, max_bytes: bytes.map((one) => 2 * one) } },
    };
  };

  it("has the least total and the longest queue of all K", () => {
    const { values, traces } = observed("dcqcn-section6.1", "sim", made);
    expect(values.least_total).toBeCloseTo(38.1);
    expect(values).toMatchObject({ longest_queue: 38, queue_mean_8: 8, queue_max_8: 16, queue_start_8: 2000 });
    expect(values.longest_queue_pmax).toBe(38);
    expect(traces?.total?.x).toEqual([1, 2, 4, 8, 12, 16, 19]);
  });

  it("is about those K that the wire has", () => {
    const { values, traces } = observed("dcqcn-section6.1", "wire", made);
    expect(values.least_total).toBeCloseTo(39.2);
    expect(values).toMatchObject({ longest_queue: 16 });
    expect(values).not.toHaveProperty("longest_queue_pmax");
    expect(traces?.total?.x).toEqual([2, 8]);
  });
});

describe("figure 21", () => {
  it("compares with the same messages without loss", () => {
    const { values } = observed("dcqcn-fig21", "sim", ({ name }) => {
      const loss = Number(name.split("-").at(-1));
      const full = name.startsWith("gbn-16kb") ? 30 : 37;
      return { goodput: loss < 0.1 ? full : loss < 1 ? full / 2 : 1 };
    });
    expect(values).toMatchObject({ low: 100, limit: 50, sizes: 0, "gbn_16kb_0.1%": 15, selective_4mb_0: 37 });
    expect(values.high).toBeCloseTo(100 / 37);
  });

  it("has on the wire what was run there", () => {
    const { values, plots } = observed("dcqcn-fig21", "wire", ({ name }) => {
      const loss = Number(name.split("-").at(-1));
      return { goodput: loss < 0.1 ? 36 : loss < 1 ? 27 : 9 };
    });
    expect(values).toMatchObject({ low: 100, limit: 75, high: 25, sizes: 0, "gbn_4mb_0.01%": 36 });
    for (const name of ["gbn_4mb_0.3%", "gbn_256kb_0", "selective_4mb_1%"]) expect(values).not.toHaveProperty([name]);
    expect(plots[0]?.curves.map(({ x }) => x)).toEqual([
      [0, 2, 4, 6],
      [0, 4],
    ]);
  });

  it("sends READs to their end in vain", async () => {
    const { model } = DCQCN_EXPERIMENTS.find(({ id }) => id === "dcqcn-fig21") as Experiment;
    const { values } = await (model as () => Promise<Observation>)();
    // Transmissions that n packets take, from the first of them that is lost: the k-th is with p (1 - p)^(k - 1).
    const p = 0.01;
    const takes = [0];
    for (let n = 1; n <= 16; n++) {
      let again = 0;
      for (let k = 2; k <= n; k++) again += (1 - p) ** (k - 1) * p * (takes[n - k + 1] as number);
      takes.push((n + again) / (1 - p));
    }
    const share = 16 / (takes[16] as number);
    expect((values["gbn_16kb_1%"] as number) / (values.gbn_16kb_0 as number)).toBeCloseTo(share, 10);
  });
});

describe("marks by the length of the queue (figure 5)", () => {
  const every5 = (packets: (middle: number) => number, marks: (middle: number) => number) =>
    Array.from({ length: 50 }, (_, i) => 5 * i + 2.5).map((middle) => {
      return { middle, packets: packets(middle), marks: marks(middle) };
    });

  it("draws what few packets saw, too, but nothing across a threshold", () => {
    // Many up to 35 KB, none about the threshold, 100 in each class from 60 to 90 KB, which is less than are drawn by themselves.
    const found = every5(
      (middle) => (middle < 35 ? 1000 : middle > 60 && middle < 90 ? 100 : 0),
      (middle) => (middle > 60 && middle < 90 ? 101 : 0),
    );
    const bars = barsOf(found, { kmin: 40, kmax: 40 });
    expect(bars.filter(({ from }) => from < 40).every(({ to, marks }) => to <= 40 && marks === 0)).toBe(true);
    const beyond = bars.filter(({ from }) => from >= 40);
    expect(beyond).toEqual([{ from: 40, to: 90, packets: 600, marks: 606 }]);
  });

  it("draws nothing of hardly any packets", () => {
    expect(
      barsOf(
        every5(
          (middle) => (middle > 240 ? 10 : 0),
          () => 0,
        ),
        { kmin: 5, kmax: 200 },
      ),
    ).toEqual([]);
  });
});
