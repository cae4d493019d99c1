/** Mellanox's overview with made-up runs: what is seen of phases and cuts in samples, and that another rule would be seen. */
import { describe, expect, it } from "vitest";
import { isDcqcn } from "../../../src/congestion/algorithms.js";
import { sampleResult } from "../../../test/result/report/sample.js";
import type { Evidence } from "../../engine/experiment.js";
import { loadTrial } from "../../engine/trial.js";
import { judge } from "../../engine/verdict.js";
import { OVERVIEW_PHASES } from "../overview.js";
import { OVERVIEW_RULES } from "../overview_rules.js";

/** Rates and target rates one sample after another, Mb/s. */
type Path = readonly (readonly [rate: number, target: number])[];

/** States that a flow goes through again and again from 125 ms on; each lasts 10 us. */
interface Rules {
  halves?: boolean;
  stores?: boolean;
  hai?: number;
}
const kStart = 30_000;
const kHypers = 3;
function path(threshold: number, ai: number, { halves = true, stores = true, hai = 50 }: Rules): Path {
  const beyond = stores ? 0 : 100;
  const left = halves ? 0.5 : 0.75;
  // A cut by so much that the last step ends where the next cut begins.
  const loss = (beyond + threshold * ai + kHypers * hai) / left ** threshold - beyond;
  const target = kStart + beyond;
  let rate = kStart - loss;
  const found: [number, number][] = [[rate, target]];
  const to = (next: number) => {
    rate = next;
    found.push([rate, Math.max(target, rate)]);
  };
  for (let k = 0; k < threshold; k++) to(target - (target - rate) * left);
  for (let k = 0; k < threshold; k++) to(rate + ai);
  for (let k = 0; k < kHypers; k++) to(rate + hai);
  return found;
}

const kLasts = 10;
const kTotal = 185_000;

function evidence(name: string, rules: Rules, { alpha = 0.25, freed = 40 } = {}): Evidence {
  const trial = OVERVIEW_PHASES.network?.trials.find((one) => one.name === name);
  if (trial === undefined) throw new Error(`no trial ${name}`);
  const { scenario } = loadTrial(trial);
  const own = name === "firmware" ? path(1, 5, rules) : path(5, 40, { hai: 200, ...rules });
  const time_s = Array.from({ length: kTotal }, (_, i) => i / 1e6);
  const at = (i: number) => own[Math.floor(i / kLasts) % own.length] as readonly [number, number];
  const flow = {
    rate_bps: time_s.map((_, i) => at(i)[0] * 1e6),
    target_rate_bps: time_s.map((_, i) => at(i)[1] * 1e6),
    alpha: time_s.map(() => alpha),
    goodput_bps: time_s.map((time) => (time < 0.165 ? 10e9 : freed * 1e9)),
  };
  // Two flows: a CNP of one of them in every other slot is one in a quarter of both flows' slots.
  const every = name === "firmware" ? 2 : 110;
  const cnps = { h3: time_s.map((_, i) => (i % every === 0 ? 1 : 0)) };
  const flows = { first: flow, second: flow };
  return { scenario, result: sampleResult(2), series: { interval_s: 1e-6, time_s, flows, queues: {}, cnps } };
}

function rulings(rules: Rules, other: Parameters<typeof evidence>[2] = {}) {
  const runs = { firmware: evidence("firmware", rules, other), sigcomm: evidence("sigcomm", rules, other) };
  const observation = OVERVIEW_PHASES.network?.observe(runs, "sim");
  if (observation === undefined) throw new Error("no runs");
  const judged = judge(OVERVIEW_PHASES, [{ clock: "sim", observation }]);
  return { values: observation.values, rulings: judged.map(({ verdicts }) => verdicts[0]?.ruling) };
}

const kHolds = Array.from({ length: 6 }, () => "holds");
const but = (position: number) => kHolds.map((ruling, i) => (i === position ? "falls short" : ruling));

describe("phases of the overview", () => {
  it("are seen in samples of rate and target rate", () => {
    const { values, rulings: found } = rulings({});
    expect(found).toEqual(kHolds);
    expect(values).toMatchObject({ halved_firmware: 100, by_hai_sigcomm: 100 });
    expect(values.slots_firmware).toBeCloseTo(0.25, 9);
    expect(values.careful_sigcomm).toBeCloseTo(1 / 16, 9);
    expect(values.gained_firmware).toBeCloseTo(4, 6);
    // F of them, and as many of active increase, in each round.
    expect((values.recoveries_sigcomm as number) / (values.cuts_sigcomm as number)).toBeCloseTo(5, 1);
    expect((values.additives_sigcomm as number) / (values.cuts_sigcomm as number)).toBeCloseTo(5, 1);
  });

  it.each([
    ["alpha is not the ratio", {}, { alpha: 0.3 }, 0],
    ["a cut stores another rate", { stores: false }, {}, 1],
    ["fast recovery takes a quarter of the distance", { halves: false }, {}, 2],
    ["the step of hyper increase is another", { hai: 49 }, {}, 4],
    ["nothing is gained of what frees up", {}, { freed: 10 }, 5],
  ] as const)("are missed where %s", (_, rules, other, position) => {
    expect(rulings(rules, other).rulings).toEqual(but(position));
  });
});

describe("rules of the overview", () => {
  it("are compared one by one, with both numbers of senders, and nothing is judged", () => {
    const trials = OVERVIEW_RULES.network?.trials ?? [];
    expect(trials).toHaveLength(14);
    const rules = trials.map((trial) => {
      const { congestion, flows } = loadTrial(trial).scenario;
      if (!isDcqcn(congestion)) throw new Error(`${trial.name} is not of DCQCN`);
      const { increase_restarts_counters, stage_by_increases, increase_raises_rate } = congestion.parameters;
      return [flows.length, increase_restarts_counters, stage_by_increases, increase_raises_rate].map(Number);
    });
    const kAlone = [
      [0, 0, 0],
      [1, 0, 0],
      [0, 1, 0],
      [0, 0, 1],
      [1, 1, 1],
      [0, 0, 0],
      [1, 1, 1],
    ];
    expect(rules).toEqual([2, 8].flatMap((senders) => kAlone.map((own) => [senders, ...own])));
    expect(OVERVIEW_RULES.statements.every(({ checks, remark }) => checks.length === 0 && remark)).toBe(true);
  });
});
