import { describe, expect, it } from "vitest";
import { type BenchResult, compare, comparisonGrid, merge, missing } from "../../bench/compare.js";
import { describeHost, headline } from "../../bench/host.js";
import type { Metric, Row } from "../../bench/row.js";
import { markdown, rowGrid } from "../../bench/table.js";

const host = { ...describeHost(), load: [0, 0] };
const ns = (value: number, tolerance?: number): Metric => ({
  value,
  unit: "ns",
  better: "less",
  ...(tolerance !== undefined && { tolerance }),
});
const kpps = (value: number): Metric => ({ value, unit: "kpps", better: "more" });
const result = (rows: Row[], name = "core"): BenchResult => ({
  host,
  quick: false,
  benchmarks: [{ name, title: name, rows }],
});
const one = (metric: Metric) => result([{ name: "a", metrics: { m: metric } }]);

describe("a comparison with a baseline", () => {
  it("says how many times as good a figure is, whether more or less is wanted", () => {
    expect(compare(one(ns(20)), one(ns(30)))[0]).toMatchObject({ before: 30, ratio: 1.5, regression: false });
    expect(compare(one(kpps(900)), one(kpps(1000)))[0]).toMatchObject({ before: 1000, ratio: 0.9 });
  });

  it("finds a regression beyond the metric's tolerance, or the one given instead, and not below", () => {
    const worse = (now: Metric, before: Metric, tolerance?: number) =>
      compare(one(now), one(before), tolerance)[0]?.regression;
    expect(worse(ns(109), ns(100))).toBe(false);
    expect(worse(ns(111), ns(100))).toBe(true);
    expect(worse(ns(102, 0.01), ns(100))).toBe(true);
    expect(worse(ns(102, 0.01), ns(100), 0.03)).toBe(false);
    expect(worse(kpps(95), kpps(100))).toBe(false);
    expect(worse(kpps(80), kpps(100))).toBe(true);
    expect(worse(ns(10), ns(100))).toBe(false);
  });

  it("takes what ought to be nothing and is something for a regression, and nothing for nothing", () => {
    expect(compare(one(ns(1)), one(ns(0)))[0]?.regression).toBe(true);
    expect(compare(one(ns(0)), one(ns(0)))[0]).toMatchObject({ ratio: 1, regression: false });
    expect(compare(one(ns(0)), one(ns(1)))[0]?.regression).toBe(false);
    expect(compare(one(kpps(0)), one(kpps(1)))[0]?.regression).toBe(true);
  });

  it("leaves out what is not judged and what only one of the two has; what is no longer measured is named", () => {
    const now = result([{ name: "a", metrics: { shown: { value: 1, unit: "%" }, fresh: ns(1) } }]);
    const before = result([
      { name: "a", metrics: { shown: { value: 9, unit: "%" } } },
      { name: "gone", metrics: { m: ns(1), shown: { value: 1, unit: "%" } } },
    ]);
    expect(compare(now, before)).toEqual([]);
    expect(missing(now, before)).toEqual(["core: gone, m"]);
    expect(missing(result([], "other"), before)).toEqual([]);
  });

  it("keeps in a new baseline what was not measured now", () => {
    const before = result([
      { name: "a", metrics: { m: ns(1) } },
      { name: "b", metrics: { m: ns(2) } },
    ]);
    const other = result([{ name: "c", metrics: { m: ns(4) } }], "other").benchmarks;
    const merged = merge(one(ns(3)), { ...before, benchmarks: [...before.benchmarks, ...other] });
    expect(
      merged.benchmarks.map(({ name, rows }) => [name, rows.map((row) => [row.name, row.metrics.m?.value])]),
    ).toEqual([
      [
        "core",
        [
          ["a", 3],
          ["b", 2],
        ],
      ],
      ["other", [["c", 4]]],
    ]);
  });

  it("is drawn with the regressions marked", () => {
    const { rows } = comparisonGrid(compare(one(ns(200)), one(ns(100))), "title");
    expect(rows).toEqual([["core", "a", "m", "100.0", "200.0", "0.500", "WORSE"]]);
  });
});

describe("a table of rows", () => {
  it("has a column for each metric with its unit, the range of repetitions, and notes where there are any", () => {
    const grid = rowGrid("Forwarding", [
      { name: "weir", metrics: { rate: { ...kpps(1088), min: 1077, max: 1102 } } },
      { name: "bridge", metrics: { "least ns": ns(3) }, note: "one core" },
    ]);
    expect(grid.head).toEqual(["", "rate kpps", "least ns", "note"]);
    expect(grid.rows).toEqual([
      ["weir", "1088 (1077..1102)", "", ""],
      ["bridge", "", "3.00", "one core"],
    ]);
    expect(markdown(grid).split("\n")[3]).toBe("| --- | ---: | ---: | ---: |");
  });
});

describe("the facts of the host", () => {
  it("say what a figure depends on", () => {
    expect(host.cpus).toBeGreaterThan(0);
    expect(Date.parse(host.date)).toBeGreaterThan(0);
    expect(headline(host)).toContain(`kernel ${host.kernel}`);
  });
});
