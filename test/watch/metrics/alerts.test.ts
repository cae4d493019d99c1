/** Each alert has promtool tests of both kinds: it fires, and it is silent before, to the evaluation. They are run by live/prometheus.test.ts. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { metricLabels } from "../../../scripts/generate-metrics.js";
import { rules, selectorsIn, seriesIn } from "./promql.js";

interface Case {
  alertname: string;
  eval_time: string;
  exp_alerts: unknown[];
}

interface RuleTests {
  evaluation_interval: string;
  tests: { input_series: { series: string }[]; alert_rule_test: Case[] }[];
}

const { evaluation_interval, tests } = parse(
  readFileSync(new URL("alerts.test.yml", import.meta.url), "utf8"),
) as RuleTests;

/** "2m15s", in s. */
function seconds(text: string): number {
  const units: Record<string, number> = { h: 3600, m: 60, s: 1 };
  return [...text.matchAll(/(\d+)([hms])/g)].reduce(
    (sum, [, count, unit = ""]) => sum + Number(count) * (units[unit] ?? 0),
    0,
  );
}

describe.each(rules())("$alert", ({ alert, expr }) => {
  const own = tests.flatMap(({ input_series, alert_rule_test }) =>
    alert_rule_test.filter(({ alertname }) => alertname === alert).map((one) => ({ ...one, input_series })),
  );

  it("is seen firing, and silent one evaluation before or at the very start", () => {
    const [first] = own.filter(({ exp_alerts }) => exp_alerts.length > 0);
    expect(first).toBeDefined();
    const silent = own.filter(({ exp_alerts }) => exp_alerts.length === 0).map(({ eval_time }) => seconds(eval_time));
    const before = seconds(first?.eval_time ?? "") - seconds(evaluation_interval);
    expect(silent.some((time) => time === before || time === 0)).toBe(true);
  });

  it("has a series beside it that must not fire it", () => {
    const asked = new Set(seriesIn(expr));
    for (const { input_series, exp_alerts } of own) {
      const given = input_series.filter(({ series }) => asked.has(seriesIn(series)[0] ?? ""));
      expect(given.length).toBeGreaterThan(exp_alerts.length);
    }
  });
});

it("asks of metrics that there are, by all of their labels", () => {
  const known = metricLabels().set("up", new Set());
  for (const { series } of tests.flatMap(({ input_series }) => input_series)) {
    const [[name, labels] = ["", []]] = selectorsIn(series);
    const own = labels.filter((label) => !["job", "instance"].includes(label));
    expect(own.sort(), series).toEqual([...(known.get(name) ?? [])].sort());
  }
});
