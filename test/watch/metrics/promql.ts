/** Reads the queries of the dashboards and alerts. */
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { dashboardFiles } from "../../../scripts/generate-dashboards.js";

export const kRules = "packaging/prometheus/weir.rules.yml";

export interface GrafanaPanel {
  id: number;
  type: string;
  title: string;
  description?: string;
  datasource?: { uid: string };
  gridPos: { x: number; y: number; w: number; h: number };
  fieldConfig?: { defaults: { unit: string } };
  targets?: { expr: string; legendFormat: string }[];
}

export interface GrafanaDashboard {
  uid: string;
  title: string;
  schemaVersion: number;
  templating: { list: { name: string; type: string; definition?: string }[] };
  panels: GrafanaPanel[];
}

export const dashboards = (): GrafanaDashboard[] =>
  [...dashboardFiles().values()].map((text) => JSON.parse(text) as GrafanaDashboard);

export interface Rule {
  alert: string;
  expr: string;
  for?: string;
  labels: { severity: string };
  annotations: { summary: string; description: string };
}

export function rules(): Rule[] {
  const { groups } = parse(readFileSync(kRules, "utf8")) as { groups: { rules: Rule[] }[] };
  return groups.flatMap((group) => group.rules);
}

const kWords = new Set(["and", "or", "unless", "offset", "bool", "on", "by", "without", "ignoring", "inf", "nan"]);

/** Names of the series that an expression asks for. */
export function seriesIn(expr: string): string[] {
  const bare = expr
    .replace(/"(?:[^"\\]|\\.)*"/g, "")
    .replace(/\{[^}]*\}|\[[^\]]*\]/g, "")
    .replace(/\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, "");
  const names = [...bare.matchAll(/(?<![\w:.$])[a-zA-Z_:][\w:]*(?![\w:]*\s*\()/g)].map(([name]) => name);
  return names.filter((name) => !kWords.has(name.toLowerCase()));
}

/** Series with the labels that they are chosen by. */
export function selectorsIn(expr: string): [string, string[]][] {
  return [...expr.matchAll(/([a-zA-Z_:][\w:]*)\{([^}]*)\}/g)].map(([, name = "", labels = ""]) => [
    name,
    [...labels.replace(/"(?:[^"\\]|\\.)*"/g, '""').matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = ""]) => label),
  ]);
}
