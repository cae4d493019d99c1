/** What a Prometheus server gets of eight NICs and a switch under incast: `npm run bench:scrape -- [options]`, see docs/reference/metrics.md. */
import { mkdirSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { drawGrid, type Grid } from "../../src/result/report/table.js";
import { describeHost, headline, load } from "../host.js";
import { numberIn } from "../options.js";
import { type ScrapedDaemon, withLab } from "./lab.js";
import { type Answer, hasData, Prometheus, panelQueries, type Rule } from "./prometheus.js";

const kOutput = fileURLToPath(new URL("../../weir-results/", import.meta.url));
/** Between scrapes, s. */
const kInterval = 5;
/** Of rates, as Grafana chooses it: four scrapes. */
const kWindow = `${4 * kInterval}s`;

interface PanelResult {
  panel: string;
  expr: string;
  data: boolean;
  series: number;
  /** Values that are none are not counted. */
  values: number;
  took_ms: number;
}

interface TargetResult {
  daemon: string;
  scrapes: number;
  failed: number;
  samples: number;
  mean_ms: number;
  max_ms: number;
}

const { seconds, json } = new Command("npm run bench:scrape --")
  .description("What a Prometheus server gets of eight NICs and a switch under incast.")
  .option("--seconds <n>", "how long it scrapes", numberIn(4 * kInterval, 3600), 120)
  .option("--json", "JSON instead of tables")
  .addHelpText(
    "after",
    `
Everything is written as JSON into weir-results/scrape.json too. Exit status 1: a panel's query has no data, a scrape failed, or an
alert cannot be evaluated.`,
  )
  .parse()
  .opts<{ seconds: number; json?: boolean }>();

const host = describeHost();
process.stderr.write("starting a switch and eight NICs\n");
const result = await withLab(async (daemons) => {
  const prometheus = await Prometheus.start(
    daemons.map(({ address }) => address),
    kInterval,
  );
  try {
    const start = Date.now() / 1000;
    process.stderr.write(`Prometheus scrapes them for ${seconds} s\n`);
    if (!(await waitOrStop(seconds))) return undefined;
    return {
      targets: await targets(prometheus, daemons),
      panels: await panels(prometheus, start),
      rules: await prometheus.rules(),
    };
  } finally {
    await prometheus.stop();
  }
});
host.load.push(load());
if (result === undefined) {
  process.exitCode = 130;
} else {
  mkdirSync(kOutput, { recursive: true });
  const text = `${JSON.stringify({ host, seconds, ...result }, undefined, 1)}\n`;
  writeFileSync(`${kOutput}scrape.json`, text);
  const grids = [targetGrid(result.targets), panelGrid(result.panels), ruleGrid(result.rules)];
  process.stdout.write(json ? text : `${[headline(host), ...grids.map((grid) => drawGrid(grid))].join("\n\n")}\n`);
  const bad =
    result.panels.some(({ data }) => !data) ||
    result.targets.some(({ failed, scrapes }) => failed > 0 || scrapes === 0) ||
    result.rules.some(({ health }) => health !== "ok");
  if (bad) process.exitCode = 1;
}

/** False: it was ended by Ctrl-C or SIGTERM. */
async function waitOrStop(duration: number): Promise<boolean> {
  const stopped = new AbortController();
  const stop = () => stopped.abort();
  process.once("SIGINT", stop).once("SIGTERM", stop);
  return await sleep(duration * 1000, true, { signal: stopped.signal })
    .catch(() => false)
    .finally(() => process.off("SIGINT", stop).off("SIGTERM", stop));
}

async function targets(prometheus: Prometheus, daemons: readonly ScrapedDaemon[]): Promise<TargetResult[]> {
  const over = `[${Math.ceil(seconds)}s]`;
  const figures = await Promise.all(
    [
      `count_over_time(up${over})`,
      `sum_over_time(up${over})`,
      `max_over_time(scrape_samples_scraped${over})`,
      `avg_over_time(scrape_duration_seconds${over})`,
      `max_over_time(scrape_duration_seconds${over})`,
    ].map((expr) => prometheus.now(expr)),
  );
  return daemons.map(({ name, address }) => {
    const [scrapes = 0, up = 0, samples = 0, mean = 0, most = 0] = figures.map(
      (series) => series.find(({ metric }) => metric.instance === address)?.value ?? 0,
    );
    return { daemon: name, scrapes, failed: scrapes - up, samples, mean_ms: 1000 * mean, max_ms: 1000 * most };
  });
}

async function panels(prometheus: Prometheus, start: number): Promise<PanelResult[]> {
  const results: PanelResult[] = [];
  for (const { panel, expr } of panelQueries()) {
    const began = performance.now();
    const answers: Answer[] = await prometheus.range(expr, { start, step: kInterval, window: kWindow });
    const took_ms = performance.now() - began;
    const counted = answers.flatMap((answer) => answer.values).filter(([, value]) => value !== "NaN").length;
    results.push({ panel, expr, data: hasData(answers), series: answers.length, values: counted, took_ms });
  }
  return results;
}

function targetGrid(rows: readonly TargetResult[]): Grid {
  return {
    title: `Scrapes, every ${kInterval} s`,
    head: ["daemon", "scrapes", "failed", "samples each", "mean ms", "max ms"],
    names: 1,
    rows: rows.map(({ daemon, scrapes, failed, samples, mean_ms, max_ms }) => [
      daemon,
      ...[scrapes, failed, samples].map(String),
      ...[mean_ms, max_ms].map((ms) => ms.toFixed(1)),
    ]),
  };
}

function panelGrid(rows: readonly PanelResult[]): Grid {
  const answered = rows.filter(({ data }) => data).length;
  return {
    title: `Queries of Grafana's panels: ${answered} of ${rows.length} return data`,
    head: ["panel", "data", "series", "values", "ms"],
    names: 1,
    rows: rows.map(({ panel, data, series, values: count, took_ms }) => [
      panel,
      data ? "yes" : "NO",
      ...[series, count].map(String),
      took_ms.toFixed(1),
    ]),
  };
}

function ruleGrid(rows: readonly Rule[]): Grid {
  return {
    title: "Alerts",
    head: ["alert", "state", "health"],
    names: 3,
    rows: rows.map(({ name, state, health, lastError }) => [name, state, lastError ?? health]),
  };
}
