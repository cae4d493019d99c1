/** Experiments on the testbed of the DCQCN paper, with made-up runs: what is measured in them, and that the paper's own figures hold. */
import { expect, describe as group, it } from "vitest";
import type { Result, Series } from "../../../src/result/result.js";
import { sampleResult } from "../../../test/result/report/sample.js";
import type { Evidence, Trial } from "../../engine/experiment.js";
import { all, type Made, outcome } from "../../test/made_runs.js";
import { transferRates } from "../testbed.js";

/** Switches that received and sent so many PFC frames, and marked. */
function switches(names: readonly string[], frames: number, marked = 0): Result["switches"] {
  const pfc = { pfc_sent: { 3: frames }, pfc_received: { 3: frames } };
  return Object.fromEntries(names.map((name) => [name, { drops: {}, ecn_marked: marked, queues: {}, ...pfc }]));
}

group("unfairness (figures 3 and 8)", () => {
  /** Senders with these rates on the link all the time, of which payload is 1024 / 1106, for 190 ms. */
  const senders = (...rates: number[]): Made => {
    const time_s = Array.from({ length: 190 }, (_, i) => (i + 1) / 1000);
    const named = rates.map((rate, i) => [`senders/h${i + 1}-1`, rate] as const);
    const flows = named.map(
      ([id, rate]) => [id, { goodput_bps: time_s.map(() => (rate * 1e9 * 1024) / 1106) }] as const,
    );
    const series: Series = { interval_s: 1e-3, time_s, flows: Object.fromEntries(flows), queues: {} };
    return { rates: Object.fromEntries(named), series };
  };

  it("the paper's figure holds: the least of H4 above the most of the others", () => {
    const make = ({ name }: Trial, seed: number) =>
      name === "shared" ? senders(6.7, 6.7, 6.7, 20) : senders(4 + seed / 10, 5, 5, 10 + seed / 2);
    const { values, rulings, plots } = outcome("dcqcn-fig3", "sim", make);
    // Each seed counts as many transfers of 4 MB as it has time for in 170 ms, so faster ones weigh more in the median.
    expect(values).toMatchObject({ h1_least: expect.closeTo(4.1), h1_most: expect.closeTo(6), h4_shared: 20 });
    expect(values).toMatchObject({ h4_least: expect.closeTo(10.5), h4_most: expect.closeTo(20) });
    expect(values.h1_median).toBeCloseTo(5.1, 1);
    expect(values.extreme_ratio).toBeCloseTo(10.5 / 6, 6);
    expect(rulings).toEqual(all("holds", 4));
    expect(plots[0]?.curves.map(({ y }) => y.length)).toEqual([4, 4]);
  });

  it("a transfer is each 4 MB after the 4 MB before, after the warm-up", () => {
    const interval_s = 1e-3;
    const time_s = Array.from({ length: 30 }, (_, i) => (i + 1) * interval_s);
    // 20 ms that do not count, 3 MB in the 21st, 6 MB in the 22nd, nothing later.
    const bytes = time_s.map((_, i) => (i < 20 ? 9e6 : ([3e6, 6e6][i - 20] ?? 0)));
    const flows = { "senders/h1-1": { goodput_bps: bytes.map((one) => (8 * one) / interval_s) } };
    const [found] = sampleResult(1).flows;
    const result = {
      ...sampleResult(1),
      flows: [{ ...(found as Result["flows"][number]), id: "senders/h1-1", from: "h1-1" }],
    };
    const evidence = { result, series: { interval_s, time_s, flows, queues: {} }, scenario: {} } as unknown as Evidence;
    const rates = transferRates(evidence, "h1-1", 4e6, 0.02).map((gbps) => (gbps * 1024) / 1106);
    // 3 MB in 1 ms and 1 MB in 1/6 ms; then 4 MB in 4/6 ms.
    expect(rates).toEqual([expect.closeTo(32 / (7 / 6), 6), expect.closeTo(48, 6)]);
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
    rates: { "victim/h1-5": victim, "incast/h1-1": victim, "incast/h1-2": victim },
    result: {
      switches: switches(["t1", "t4", "l1", "l2", "l3", "l4", "s1", "s2"], 1000),
      links: [link("s1", "l3", 1 + added), link("h1-1", "t1", 1 + added), link("t1", "h1-1", 9)],
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

  it("a run counts with its first transfer of 250 MB, however many it has time for", () => {
    const time_s = Array.from({ length: 600 }, (_, i) => (i + 1) / 1000);
    // Twice as fast once the first 250 MB are through, 216 ms after the warm-up at 10 Gb/s of the link.
    const rate = (at: number, least: number) => ((at <= 0.24 ? least : 2 * least) * 1e9 * 1024) / 1106;
    const make = (trial: Trial, seed: number): Made => {
      const flow = { goodput_bps: time_s.map((at) => rate(at, trial.name.startsWith("ecmp") ? 10 + seed : 10)) };
      const series = { interval_s: 1e-3, time_s, flows: { "victim/h1-5": flow }, queues: {} };
      return { ...run(15, added(trial)), series };
    };
    const { values } = outcome("dcqcn-fig4", "sim", make);
    expect(values.pinned_0).toBeCloseTo(10, 1);
    expect(values.ecmp_0).toBeCloseTo(15, 1);
    // Too short for one: the mean of what there is.
    const short = outcome("dcqcn-fig4", "sim", (trial) => run(4, added(trial)));
    expect(short.values.pinned_0).toBe(4);
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

  it("a victim that gains has lost nothing", () => {
    const victims = (rates: readonly number[]) =>
      outcome("dcqcn-fig9", "sim", (trial) => run(rates[added(trial)] as number, 0));
    const gains = victims([20, 20, 24]);
    expect(gains.values.pinned_change).toBeCloseTo(20, 6);
    expect(gains.rulings).toEqual(["holds", "holds"]);
    expect(victims([27, 24, 20]).rulings).toEqual(["holds", "falls short"]);
  });
});

group("benchmark traffic (figures 15 to 18)", () => {
  /** Ten users, of whom one gets `tail`, and the incast. */
  const run = (users: number, tail: number, incast: readonly number[], result: Partial<Result> = {}): Made => ({
    rates: Object.fromEntries([
      ...Array.from({ length: 10 }, (_, i) => [`users#${i + 1}`, i === 0 ? tail : users]),
      ...incast.map((rate, i) => [`rebuild/h2-${i + 1}`, rate]),
    ]),
    result,
  });
  const isDcqcn = ({ name }: Trial) => name.startsWith("dcqcn");
  const at = ({ name }: Trial) => Number(/-(\d+)-seed/.exec(name)?.[1]);
  const lowest = (count: number, low: number, others: number) => [low, ...Array<number>(count - 1).fill(others)];
  const frames = (perSecond: number) => ({ duration_s: 0.1, switches: switches(["s1", "s2"], perSecond / 20) });
  const simulated = (perSecond: number) => ({ ...frames(perSecond), links: [] });

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
      const [share, result] = [40 / degree, simulated(10 ** (3 + degree / 2))];
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

  it("on the wire figures 15 to 17 have some of it, one seed each", () => {
    const make = (trial: Trial) => {
      const degree = trial.name.includes("-80-") || trial.name.includes("-5-") ? 10 : at(trial);
      if (isDcqcn(trial)) return run(8, 5, lowest(degree, 3, 4), frames(10));
      return run(10 / degree, 1 / degree, lowest(degree, 1, 4), frames(1000 * degree));
    };
    const degrees = outcome("dcqcn-fig16", "wire", make);
    expect(degrees.values).toMatchObject({ fall_p50: 0.2, "users_p50-dcqcn-2": 8, change_p50: 0, pause_growth: 5 });
    for (const name of ["even", "ideal_pfc", "few_p10-pfc", "paused-10", "users_p50-pfc-4"]) {
      expect(degrees.values).not.toHaveProperty([name]);
    }
    // A statement about every degree is not judged.
    expect(degrees.rulings.map((ruling) => ruling === "not judged")).toEqual([
      ...[false, false, false, false, false],
      ...[true, true, true, false, true, true],
    ]);
    expect(degrees.plots[0]?.curves[0]?.x).toEqual([2, 10]);
    const pairs = outcome("dcqcn-fig17", "wire", make);
    expect(pairs.values).toMatchObject({ match_p50: 8, fairer: 3 });
    expect(outcome("dcqcn-fig15", "wire", make).values).toMatchObject({
      dcqcn: expect.closeTo(10),
      pfc: expect.closeTo(10_000),
    });
  });

  it("figure 17: 80 pairs with DCQCN beside 5 without", () => {
    const make = (trial: Trial) =>
      isDcqcn(trial) ? run(at(trial) === 80 ? 4 : 9, 2, lowest(10, 3.4, 4)) : run(4, 2, lowest(10, 1.1, 4));
    const { values, rulings } = outcome("dcqcn-fig17", "sim", make);
    expect(values).toMatchObject({ match_p50: 1, match_p10: 1 });
    expect(values.fairer).toBeCloseTo(3.4 / 1.1, 6);
    expect(rulings).toEqual(all("holds", 2));
    // Users that starve without DCQCN are no match.
    const starved = outcome("dcqcn-fig17", "sim", (trial) => (isDcqcn(trial) ? make(trial) : run(0.1, 0.05, [1], {})));
    expect(starved.rulings[0]).toBe("falls short");
  });

  it.each(["sim", "wire"] as const)("figure 18: the order of the four configurations (%s)", (clock) => {
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
      clock,
      ({ name }) => configurations[name.split("-")[0] ?? ""] as Made,
    );
    expect(values.marked_ratio).toBeCloseTo(0.02, 6);
    expect(values.users_wrong_dcqcn).toBeCloseTo(0.5, 6);
    // 6 million of 18 flows with 280,000 packets each.
    expect(values.again_short).toBeCloseTo((100 * 6e6) / (18 * 280_000), 6);
    expect(rulings).toEqual(all("holds", 4));
  });
});

group("more than 800 hosts (section 7)", () => {
  const run = (users: number, low: number, incast: readonly number[], frames: number): Made => ({
    rates: Object.fromEntries([
      ...Array.from({ length: 10 }, (_, i) => [`users#${i + 1}`, i < 2 ? low : users]),
      ...incast.map((rate, i) => [`rebuild-${1 + (i % 2)}/h2-${i + 1}`, rate]),
    ]),
    result: { duration_s: 0.01, switches: { ...switches(["c1", "c2"], frames), ...switches(["e1_1", "a1_1"], 9999) } },
  });
  const pfc = run(2, 0.1, [1, 3, 3, 3], 2000);

  it("is qualitatively similar where users gain, incasts are fairer and pauses few", () => {
    const dcqcn = run(8, 4, [2, 2.5, 2.5, 2.5], 10);
    const { values, rulings, experiment } = outcome("dcqcn-800-hosts", "sim", ({ name }) =>
      name === "pfc" ? pfc : dcqcn,
    );
    expect(values).toMatchObject({
      users_p50_pfc: 2,
      users_p10_dcqcn: 4,
      gain_p50: 4,
      pauses_dcqcn: 2000,
      fewer: 0.005,
    });
    expect(rulings).toEqual(["holds"]);
    expect(Object.keys(values).sort()).toEqual(Object.keys(experiment.quantities).sort());
    expect(outcome("dcqcn-800-hosts", "sim", () => pfc).rulings).toEqual(["falls short"]);
  });
});

group("two bottlenecks (figure 20)", () => {
  const cnps = (f1: number, f2: number, f3: number) => ({
    f1: { cnp_handled: f1 },
    f2: { cnp_handled: f2 },
    f3: { cnp_handled: f3 },
  });
  const make = ({ name }: Trial): Made =>
    name.startsWith("cut")
      ? { rates: { f1: 30, f2: 10, f3: 28 }, flows: cnps(500, 1000, 500) }
      : { rates: { f1: 24, f2: 16, f3: 23 }, flows: cnps(900, 1000, 900) };

  it.each(["sim", "wire"] as const)("the paper's figure holds (%s)", (clock) => {
    const { values, rulings } = outcome("dcqcn-fig20", clock, make);
    expect(values).toMatchObject({ f2_cut: 10, f2_red: 16, gain: 1.6, cnps_cut: 0.5 });
    expect(values.lag_cut).toBeCloseTo(10 / 28, 6);
    expect(rulings).toEqual(all("holds", 3));
  });
});
