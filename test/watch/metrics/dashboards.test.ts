/** Dashboards and alerts ask only for metrics that there are, by labels that these have. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { dashboardFiles } from "../../../scripts/generate-dashboards.js";
import { metricLabels } from "../../../scripts/generate-metrics.js";
import { dashboards, type GrafanaPanel, kRules, rules, selectorsIn, seriesIn } from "./promql.js";

const known = metricLabels();
/** This metric is Prometheus' own. */
known.set("up", new Set(["job", "instance"]));
const queries = dashboards().flatMap(({ title, panels }) =>
  panels.flatMap((panel) => (panel.targets ?? []).map(({ expr }) => [`${title}: ${panel.title}`, expr] as const)),
);
const all = [...queries, ...rules().map(({ alert, expr }) => [alert, expr] as const)];

describe("what is asked of Prometheus", () => {
  it("is found in an expression", () => {
    const expr =
      'sum by (a, b) (rate(x_total{c=~"d(e)",f!="g"}[5m])) / on (h) group_left () y * 1e6 > bool 0 or vector(z:w)';
    expect(seriesIn(expr)).toEqual(["x_total", "y", "z:w"]);
    expect(selectorsIn(expr)).toEqual([["x_total", ["c", "f"]]]);
  });

  it.each(all)("%s: metrics and labels that there are", (_, expr) => {
    const names = seriesIn(expr);
    expect(names).not.toEqual([]);
    expect(names.filter((name) => !known.has(name))).toEqual([]);
    for (const [name, labels] of selectorsIn(expr)) {
      expect(
        labels.filter((label) => !known.get(name)?.has(label) && label !== "job"),
        name,
      ).toEqual([]);
    }
  });
});

describe.each(dashboards())("$title", ({ schemaVersion, templating, panels }) => {
  it("has panels with a title, a description, a unit and legends, on the chosen data source", () => {
    const shown = panels.filter(({ type }) => type !== "row");
    expect(shown.length).toBeGreaterThan(8);
    for (const panel of shown) {
      expect(panel.title).toMatch(/^[A-Z]/);
      expect(panel.description, panel.title).toMatch(/^\S.*\.$/);
      expect(panel.fieldConfig?.defaults.unit, panel.title).toBeTruthy();
      expect(panel.datasource?.uid).toBe("$datasource");
      for (const { legendFormat } of panel.targets ?? []) expect(legendFormat, panel.title).not.toBe("");
    }
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  });

  it("has no panel over another, or beyond the grid", () => {
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }: GrafanaPanel) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)} ${y + Math.floor(i / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBeLessThanOrEqual(24);
  });

  it("chooses by variables that queries use, of metrics that have such a label", () => {
    expect(schemaVersion).toBeGreaterThanOrEqual(41);
    const [source, ...variables] = templating.list;
    expect(source).toMatchObject({ name: "datasource", type: "datasource" });
    const asked = panels.flatMap(({ targets }) => (targets ?? []).map(({ expr }) => expr)).join("\n");
    for (const { name, definition } of variables) {
      const [, metric = "", label = ""] = /^label_values\((\w+), (\w+)\)$/.exec(definition ?? "") ?? [];
      expect(known.get(metric)?.has(label), definition).toBe(true);
      expect(asked).toContain(`$${name}`);
    }
    const used = [...asked.matchAll(/\$(\w+)/g)].map(([, name]) => name).filter((name) => name !== "__rate_interval");
    expect(used.filter((used) => !variables.some(({ name }) => name === used))).toEqual([]);
  });
});

it("every alert says how bad it is, what has happened and what to do", () => {
  expect(rules().length).toBeGreaterThan(4);
  for (const { alert, labels, annotations } of rules()) {
    expect(alert).toMatch(/^Weir[A-Z]\w+$/);
    expect(["critical", "warning"]).toContain(labels.severity);
    expect(annotations.summary).toBeTruthy();
    expect(annotations.description, alert).toMatch(/\.$/);
  }
  expect(readFileSync(kRules, "utf8")).toContain("rule_files");
});

it.each([...dashboardFiles()])("%s is up to date (npm run generate)", (file, text) => {
  expect(readFileSync(file, "utf8")).toBe(text);
});
