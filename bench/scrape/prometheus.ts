/** A Prometheus server (Debian's package) with the product's alerts, and what the dashboards ask it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { dashboardFiles } from "../../scripts/generate-dashboards.js";
import { freePort } from "../daemon.js";

const kRules = fileURLToPath(new URL("../../packaging/prometheus/weir.rules.yml", import.meta.url));
const kStartMs = 30_000;

export interface PanelQuery {
  /** "Weir fabric: Marks". */
  panel: string;
  expr: string;
}

/** Those of every panel of every dashboard. */
export function panelQueries(): PanelQuery[] {
  type Dashboard = { title: string; panels: { title: string; targets?: { expr: string }[] }[] };
  return [...dashboardFiles().values()]
    .map((text) => JSON.parse(text) as Dashboard)
    .flatMap(({ title, panels }) =>
      panels.flatMap((panel) => (panel.targets ?? []).map(({ expr }) => ({ panel: `${title}: ${panel.title}`, expr }))),
    );
}

export interface Rule {
  name: string;
  state: "inactive" | "pending" | "firing";
  health: string;
  lastError?: string;
}

/** One series of an answer. */
export interface Answer {
  metric: Record<string, string>;
  values: [time: number, value: string][];
}

export class Prometheus {
  private constructor(
    private readonly api: string,
    /** Idempotent. */
    readonly stop: () => Promise<void>,
  ) {}

  /** Until it is ready. Scrapes these addresses ("127.0.0.1:9464") as `job="weir"`, every so many seconds. */
  static async start(targets: readonly string[], interval: number): Promise<Prometheus> {
    const folder = mkdtempSync(join(tmpdir(), "weir-prometheus-"));
    const file = join(folder, "prometheus.yml");
    const address = `127.0.0.1:${await freePort()}`;
    writeFileSync(
      file,
      `global: { scrape_interval: ${interval}s, scrape_timeout: ${interval}s, evaluation_interval: ${interval}s }
rule_files: [ ${kRules} ]
scrape_configs:
  - job_name: weir
    static_configs: [ { targets: [ ${targets.join(", ")} ] } ]
`,
    );
    const options = ["--storage.tsdb.path", join(folder, "data"), "--web.listen-address", address];
    const child = spawn("prometheus", ["--config.file", file, "--log.level", "warn", ...options], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    let log = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      log += text;
    });
    const ended = once(child, "exit");
    const stop = async () => {
      child.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    };
    for (const start = performance.now(); ; await sleep(100)) {
      const ready = await fetch(`http://${address}/-/ready`).catch(() => undefined);
      if (ready?.ok) return new Prometheus(`http://${address}/api/v1`, stop);
      if (child.exitCode !== null || performance.now() - start > kStartMs) {
        await stop();
        throw new Error(`Prometheus did not start: ${log}`);
      }
    }
  }

  /** As Grafana asks: all of its variables match everything, rates are over `window`. Times in s since the epoch. */
  async range(
    expr: string,
    { start, step, window }: { start: number; step: number; window: string },
  ): Promise<Answer[]> {
    const query = expr.replaceAll("$__rate_interval", window).replaceAll(/\$\w+/g, ".*");
    const range = `query=${encodeURIComponent(query)}&start=${start}&end=${Date.now() / 1000}&step=${step}`;
    return (await this.#get<{ result: Answer[] }>(`query_range?${range}`)).result;
  }

  /** Values now, by their series. */
  async now(expr: string): Promise<{ metric: Record<string, string>; value: number }[]> {
    type Instant = { result: { metric: Record<string, string>; value: [number, string] }[] };
    const { result } = await this.#get<Instant>(`query?query=${encodeURIComponent(expr)}`);
    return result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
  }

  async rules(): Promise<Rule[]> {
    const { groups } = await this.#get<{ groups: { rules: Rule[] }[] }>("rules");
    return groups.flatMap(({ rules }) => rules);
  }

  async #get<Data>(path: string): Promise<Data> {
    type Body = { status: string; error?: string; data: Data };
    const { status, error, data } = (await (await fetch(`${this.api}/${path}`)).json()) as Body;
    if (status !== "success") throw new Error(`${path}: ${error}`);
    return data;
  }
}

/** Is there a value, and not only the lack of one? */
export const hasData = (answers: readonly Answer[]): boolean =>
  answers.some(({ values }) => values.some(([, value]) => value !== "NaN"));
