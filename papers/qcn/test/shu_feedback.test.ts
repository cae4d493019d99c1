/** Additions to the figures of Shu et al., with made-up runs: the round trip, hyper-active increase, T_AI, slow feedback. */
import { describe, expect, it } from "vitest";
import type { Series } from "../../../src/result/result.js";
import { sampleResult } from "../../../test/result/report/sample.js";
import type { Evidence, Experiment, Trial } from "../../engine/experiment.js";
import { loadTrial } from "../../engine/trial.js";
import { judge } from "../../engine/verdict.js";
import { QCN_EXPERIMENTS } from "../experiments.js";
import { SHU_ROUND_TRIP } from "../shu_delay.js";
import { SHU_HYPER } from "../shu_hyper.js";
import { SLOW_FEEDBACK } from "../two_flows.js";

/** Runs have as many seeds as in virtual time, all alike, so that medians are judged. */
function rulings(experiment: Experiment, make: (trial: Trial, time: readonly number[]) => Partial<Series>) {
  const { network } = experiment;
  if (network === undefined) throw new Error(`${experiment.id} has no runs`);
  const runs = Object.fromEntries(
    network.trials.map((trial): [string, Evidence] => {
      const { scenario } = loadTrial(trial);
      const interval_s = scenario.probes.interval / 1e9;
      const time_s = Array.from({ length: Math.round(scenario.duration / 1e9 / interval_s) }, (_, i) => i * interval_s);
      const series = { interval_s, time_s, flows: {}, queues: {}, ...make(trial, time_s) };
      return [trial.name, { scenario, result: sampleResult(2), series }];
    }),
  );
  const seeds = [network.observe(runs, "sim"), network.observe(runs, "sim")];
  const observation = { ...seeds[0], ...network.summarize?.(seeds), seeds } as ReturnType<typeof network.observe>;
  return {
    values: observation.values,
    found: judge(experiment, [{ clock: "sim", observation }]).map(({ verdicts }) => verdicts[0]?.ruling),
  };
}

describe("a longer round trip", () => {
  /** Fair from `fair` s on, and a queue of 64 KB that goes `swing` KB up and down. */
  const trip = (fair: number, swing: number) => (time: readonly number[]) => {
    const bytes = time.map((_, i) => (64 + (i % 2 === 0 ? swing : -swing)) * 1000);
    return {
      flows: {
        rp1: { rate_bps: time.map((at) => (at < fair ? 900e6 : 500e6)) },
        rp2: { rate_bps: time.map((at) => (at < fair ? 100e6 : 500e6)) },
      },
      queues: { "left:right:3": { bytes, max_bytes: bytes } },
    };
  };
  const judged = (far: ReturnType<typeof trip>) =>
    rulings(SHU_ROUND_TRIP, ({ name }, time) => (name === "far" ? far : trip(10, 5))(time));

  it("makes the queue swing by more, and flows slightly sooner fair", () => {
    const { values, found } = judged(trip(7, 10));
    expect(found).toEqual(["holds", "holds", "holds"]);
    expect(values.oscillation).toBeCloseTo(2, 6);
    expect(values.time).toBeCloseTo(0.7, 1);
  });

  it("is missed where nothing changes, and where they are sooner fair by much", () => {
    expect(judged(trip(10, 5)).found).toEqual(["falls short", "falls short", "falls short"]);
    expect(judged(trip(3, 10)).found).toEqual(["holds", "falls short", "holds"]);
  });

  it("says nothing of the time where the queue runs empty", () => {
    expect(judged(trip(7, 64)).found).toEqual(["holds", "not judged", "not judged"]);
  });
});

describe("hyper-active increase", () => {
  interface Climb {
    /** s */
    enters: number;
    takes: number;
  }
  const flow = (time: readonly number[], start: number, { enters, takes }: Climb, most = 1000) => ({
    rate_bps: time.map((at) => 1e6 * (at < enters ? start : at < enters + takes ? start + 1 : most)),
    target_rate_bps: time.map((at) => 1e6 * (at < enters ? start : most)),
  });
  function judged(entry: (mbps: number) => number, takes: number, taken: number) {
    return rulings(SHU_HYPER, ({ name }, time) => {
      if (name !== "together") {
        const start = Number(name.slice(1));
        return { flows: { rp1: flow(time, start, { enters: entry(start), takes }) } };
      }
      return {
        flows: {
          rp1: flow(time, 60, { enters: entry(60), takes }, 60 + 9.21 * taken),
          rp2: flow(time, 20, { enters: 3 * entry(60), takes: takes - 2 * entry(60) }, 20 + 9.21 * (100 - taken)),
        },
      };
    }).found;
  }
  const byBytes = (mbps: number) => Math.max(0.075, 6 / mbps);

  it("is entered by the byte counter below 80 Mb/s, and takes the link", () => {
    expect(judged(byBytes, 0.0025, 95)).toEqual(["holds", "holds", "holds"]);
  });

  it("is missed where it takes longer, is entered at the same time by all, or leaves the smaller flow its part", () => {
    expect(judged(byBytes, 0.006, 95)[0]).toBe("falls short");
    expect(judged(() => 0.075, 0.0025, 95)[1]).toBe("falls short");
    expect(judged(byBytes, 0.0025, 80)[2]).toBe("falls short");
  });
});

describe("slow feedback", () => {
  const own = QCN_EXPERIMENTS.filter(({ alternative }) => alternative === SLOW_FEEDBACK);

  it("is beside those figures of Shu et al. whose setup it may explain", () => {
    expect(own.map(({ id }) => id)).toEqual([
      "qcn-shu-fig1",
      "qcn-shu-table1",
      "qcn-shu-fig5",
      "qcn-shu-fig6",
      "qcn-shu-fig12",
    ]);
  });

  it("delays each link of a trial by 500 us", () => {
    for (const { network } of own) {
      for (const trial of network?.trials ?? []) {
        const { links } = loadTrial({ ...trial, set: [...trial.set, ...SLOW_FEEDBACK.set] }).scenario;
        expect(new Set(links.map(({ delay }) => delay))).toEqual(new Set([500_000]));
      }
    }
  });
});

describe("T_AI", () => {
  it("is 37.5, 75 and 150 KB as packets, too", () => {
    const trials = QCN_EXPERIMENTS.find(({ id }) => id === "qcn-shu-fig9")?.network?.trials ?? [];
    const cycles = trials.map((trial) => {
      const { rpgByteReset = 0, rpgAiCycle = 0 } = loadTrial(trial).scenario.congestion.parameters as {
        rpgByteReset?: number;
        rpgAiCycle?: number;
      };
      return rpgByteReset * rpgAiCycle;
    });
    expect(cycles).toEqual([37_500, 75_000, 150_000]);
  });
});
