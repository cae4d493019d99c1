/** Experiments on the testbed of the DCQCN paper, with made-up runs: what is measured in them, and that the paper's own figures hold. */
import { expect, describe as group, it } from "vitest";
import { DCQCN_EXPERIMENTS } from "../../src/experiments/dcqcn/experiments.js";
import {
  type Evidence,
  type Experiment,
  type NetworkClock,
  type Trial,
  trialsOn,
} from "../../src/experiments/experiment.js";
import { judge } from "../../src/experiments/verdict.js";
import type { Result } from "../../src/result/result.js";
import { sampleResult, sampleSeries } from "../report/sample.js";

/** What a made-up run differs in: rates on the link by id of the flow, Gb/s, and fields of the result. */
interface Made {
  rates: Readonly<Record<string, number>>;
  cnps?: Readonly<Record<string, number>>;
  result?: Partial<Result>;
}

function outcome(id: string, clock: NetworkClock, make: (trial: Trial, seed: number) => Made) {
  const experiment = DCQCN_EXPERIMENTS.find((one) => one.id === id) as Experiment;
  const runs = Object.fromEntries(
    trialsOn(experiment, clock).map((trial) => {
      const seed = Number(/-seed(\d+)$/.exec(trial.name)?.[1] ?? 1);
      return [trial.name, evidence(make(trial, seed))];
    }),
  );
  const observation = experiment.network?.observe(runs, clock);
  if (observation === undefined) throw new Error(`${id} has no runs`);
  const judged = judge(experiment, [{ clock, observation }]);
  return { ...observation, rulings: judged.map(({ verdicts }) => verdicts[0]?.ruling), experiment };
}

function evidence({ rates, cnps = {}, result = {} }: Made): Evidence {
  const [pattern] = sampleResult(1).flows;
  const flows = Object.entries(rates).map(([id, gbps]) => ({
    ...(pattern as Result["flows"][number]),
    id,
    from: id.split("/")[1] ?? "h1_1",
    wire_bps: gbps * 1e9,
    cnp_handled: cnps[id] ?? 0,
  }));
  // Nothing is read from the scenario.
  const scenario = {} as Evidence["scenario"];
  return { scenario, result: { ...sampleResult(1), flows, ...result }, series: sampleSeries(1, 2) };
}

/** Switches that received and sent so many PFC frames, and marked. */
function switches(names: readonly string[], frames: number, marked = 0): Result["switches"] {
  const pfc = { pfc_sent: { 3: frames }, pfc_received: { 3: frames } };
  return Object.fromEntries(names.map((name) => [name, { drops: {}, ecn_marked: marked, queues: {}, ...pfc }]));
}

const all = (ruling: string, count: number) => Array.from({ length: count }, () => ruling);

group("unfairness (figures 3 and 8)", () => {
  const senders = (...rates: number[]) => ({
    rates: Object.fromEntries(rates.map((rate, i) => [`senders/h${i + 1}_1`, rate])),
  });

  it("the paper's figure holds: the least of H4 above the most of the others", () => {
    const make = ({ name }: Trial, seed: number) =>
      name === "shared" ? senders(6.7, 6.7, 6.7, 20) : senders(4 + seed / 10, 5, 5, 10 + seed / 2);
    const { values, rulings, plots } = outcome("dcqcn-fig3", "sim", make);
    expect(values).toMatchObject({
      h1_least: 4.1,
      h1_median: 5,
      h1_most: 6,
      h4_least: 10.5,
      h4_most: 20,
      h4_shared: 20,
    });
    expect(values.h1_spread).toBeCloseTo(20, 6);
    expect(values.extreme_ratio).toBeCloseTo(10.5 / 6, 6);
    expect(rulings).toEqual(all("holds", 4));
    expect(plots[0]?.curves.map(({ y }) => y.length)).toEqual([4, 4]);
  });

  it("on the wire, only what one choice of paths can show is judged", () => {
    const { rulings } = outcome("dcqcn-fig3", "wire", () => senders(6.7, 6.7, 6.7, 20));
    expect(rulings).toEqual(["holds", "not judged", "holds", "not judged"]);
  });

  it("with DCQCN, one flow that strays in one draw is too much variance, and no unfairness", () => {
    const fair = outcome("dcqcn-fig8", "sim", () => senders(10, 10.2, 9.8, 10));
    expect(fair.rulings).toEqual(all("holds", 3));
    const stray = outcome("dcqcn-fig8", "sim", (_, seed) => senders(10, seed === 7 ? 11.5 : 10, 10, 10));
    expect(stray.rulings).toEqual(["holds", "holds", "falls short"]);
  });
});

group("the victim flow (figures 4 and 9)", () => {
  const link = (from: string, to: string, pause: number) => {
    const rest = { rate_bps: 40e9, utilisation: 1, bytes: 1, packets: 1, lost: 0 };
    return { from, to, ...rest, pause_time_s: { 3: pause } };
  };
  const run = (victim: number, added: number): Made => ({
    rates: { "victim/h1_5": victim, "incast/h1_1": victim, "incast/h1_2": victim },
    result: {
      switches: switches(["t1", "t4", "l1", "l2", "l3", "l4", "s1", "s2"], 1000),
      links: [link("s1", "l3", 1 + added), link("h1_1", "t1", 1 + added), link("t1", "h1_1", 9)],
    },
  });
  const added = ({ name }: Trial) => Number(/-(\d)-/.exec(name)?.[1]);

  it("the paper's figures hold", () => {
    const hurt = outcome("dcqcn-fig4", "sim", (trial) => run([10, 7, 4.5][added(trial)] as number, added(trial)));
    expect(hurt.values).toMatchObject({ pinned_0: 10, pinned_2: 4.5, ecmp_1: 7, ratio_ecmp: 0.45, spines_paused: 3 });
    expect(hurt.values.pauses_l34).toBeCloseTo(2000 / 0.25, 6);
    expect(hurt.rulings).toEqual(all("holds", 6));
    const saved = outcome("dcqcn-fig9", "sim", () => run(20, 0));
    expect(saved.rulings).toEqual(all("holds", 2));
  });

  it("a lab has no draws of paths and no times of pauses", () => {
    const make = (trial: Trial): Made => {
      const { rates, result } = run([10, 7, 4.5][added(trial)] as number, 0);
      return { rates, result: { switches: result?.switches ?? {} } };
    };
    const { rulings, values } = outcome("dcqcn-fig4", "wire", make);
    expect(rulings).toEqual([...all("holds", 4), "not judged", "not judged"]);
    expect(values).not.toHaveProperty("pinned_1");
  });

  it("a victim that rises has changed too", () => {
    const { values, rulings } = outcome("dcqcn-fig9", "sim", (trial) => run([20, 20, 24][added(trial)] as number, 0));
    expect(values.pinned_change).toBeCloseTo(20, 6);
    expect(rulings).toEqual(["holds", "falls short"]);
  });
});

group("benchmark traffic (figures 15 to 18)", () => {
  /** Ten users, of whom one gets `tail`, and the incast. */
  const run = (users: number, tail: number, incast: readonly number[], result: Partial<Result> = {}): Made => ({
    rates: Object.fromEntries([
      ...Array.from({ length: 10 }, (_, i) => [`users#${i + 1}`, i === 0 ? tail : users]),
      ...incast.map((rate, i) => [`rebuild/h2_${i + 1}`, rate]),
    ]),
    result,
  });
  const isDcqcn = ({ name }: Trial) => name.startsWith("dcqcn");
  const at = ({ name }: Trial) => Number(/-(\d+)-seed/.exec(name)?.[1]);
  const lowest = (count: number, low: number, others: number) => [low, ...Array<number>(count - 1).fill(others)];
  const frames = (perSecond: number) => ({ duration_s: 0.1, switches: switches(["s1", "s2"], perSecond / 20) });

  it("figure 15: frames of both spines, per second", () => {
    const make = (trial: Trial, seed: number) => run(1, 1, [1], frames(isDcqcn(trial) ? 20 : 45_000 + 5000 * seed));
    const { values, rulings } = outcome("dcqcn-fig15", "sim", make);
    expect(values.pfc).toBeCloseTo(60_000, 3);
    expect(values.dcqcn).toBeCloseTo(20, 6);
    expect(rulings).toEqual(all("holds", 2));
  });

  it("figure 16: what the paper says of it holds where it is so", () => {
    const make = (trial: Trial) => {
      if (trial.name.startsWith("few")) return run(1, 1, lowest(10, 3.4, 3.6));
      const degree = at(trial);
      const [share, result] = [40 / degree, frames(10 ** (3 + degree / 2))];
      if (isDcqcn(trial)) return run(8, 5, lowest(degree, 0.95 * share, share), frames(0));
      return run(10 / degree, 1 / degree, lowest(degree, 0.25 * share, 1.2 * share), result);
    };
    const { values, rulings, experiment } = outcome("dcqcn-fig16", "sim", make);
    // All of it is measured.
    expect(Object.keys(values).sort()).toEqual(Object.keys(experiment.quantities).sort());
    expect(values["users_p50-pfc-10"]).toBeCloseTo(1, 6);
    expect(values["users_p10-dcqcn-4"]).toBeCloseTo(5, 6);
    expect(values["incast_p10-dcqcn-8"]).toBeCloseTo(0.95 * 5, 6);
    expect(values.fall_p50).toBeCloseTo(0.2, 6);
    expect(values.even).toBeCloseTo(0.95, 6);
    expect(values["few_p10-pfc"]).toBeCloseTo(3.4, 6);
    const short = rulings.flatMap((ruling, i) => (ruling === "holds" ? [] : [i]));
    // Two senders have no median above the lowest, so with them PFC's is lower; and senders together get 0.72 to 1.1 of the link.
    expect(short.map((i) => experiment.statements[i]?.quote.slice(0, 30))).toEqual([
      "even though the degree of inca",
      "Note that the median throughpu",
    ]);
  });

  it("figure 17: 80 pairs with DCQCN beside 5 without", () => {
    const make = (trial: Trial) =>
      isDcqcn(trial) ? run(at(trial) === 80 ? 4 : 9, 2, lowest(10, 3.4, 4)) : run(4, 2, lowest(10, 1.1, 4));
    const { values, rulings } = outcome("dcqcn-fig17", "sim", make);
    expect(values).toMatchObject({ match_p50: 1, match_p10: 1 });
    expect(values.fairer).toBeCloseTo(3.4 / 1.1, 6);
    expect(rulings).toEqual(all("holds", 3));
  });

  it("figure 18: the order of the four configurations", () => {
    const configurations: Record<string, Made> = {
      pfc: run(1, 0.5, lowest(8, 1, 5), { switches: switches(["s1", "s2"], 1000) }),
      long: run(1, 0.1, lowest(8, 0, 5), { transport: { retransmitted: 6e6 } }),
      short: run(1, 0.1, lowest(8, 0, 5), { transport: { retransmitted: 6e6 } }),
      wrong: run(4, 2, lowest(8, 2, 5), { switches: switches(["s1", "s2"], 1000, 100) }),
      wrong_pfc: run(4, 2, lowest(8, 2, 5)),
      dcqcn: run(8, 4, lowest(8, 4, 5), { switches: switches(["s1", "s2"], 0, 5000) }),
    };
    const { values, rulings } = outcome(
      "dcqcn-fig18",
      "sim",
      ({ name }) => configurations[name.split("-")[0] ?? ""] as Made,
    );
    expect(values.marked_ratio).toBeCloseTo(0.02, 6);
    expect(values.users_wrong_dcqcn).toBeCloseTo(0.5, 6);
    // 6 million of 18 flows with 280,000 packets each.
    expect(values.again_short).toBeCloseTo((100 * 6e6) / (18 * 280_000), 6);
    expect(rulings).toEqual(all("holds", 4));
  });
});

group("two bottlenecks (figure 20)", () => {
  const make = ({ name }: Trial): Made =>
    name.startsWith("cut")
      ? { rates: { f1: 30, f2: 10, f3: 28 }, cnps: { f1: 500, f2: 1000, f3: 500 } }
      : { rates: { f1: 24, f2: 16, f3: 23 }, cnps: { f1: 900, f2: 1000, f3: 900 } };

  it.each(["sim", "wire"] as const)("the paper's figure holds (%s)", (clock) => {
    const { values, rulings } = outcome("dcqcn-fig20", clock, make);
    expect(values).toMatchObject({ f2_cut: 10, f2_red: 16, gain: 1.6, cnps_cut: 0.5 });
    expect(values.lag_cut).toBeCloseTo(10 / 28, 6);
    expect(rulings).toEqual(all("holds", 3));
  });
});
