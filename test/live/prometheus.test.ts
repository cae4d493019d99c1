/**
 * A Prometheus server scrapes a switch and two NICs under congestion: every query of the dashboards gets data, every alert can be
 * evaluated, and its own tools have nothing against what is exposed. Debian's package `prometheus` has both programs.
 */
import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { dashboards, kRules } from "../metrics/promql.js";
import { describeUnless, liveObstacle } from "./capability.js";
import { freePort, network, portOf, startNic, startSwitch } from "./daemons.js";
import { folder, kRoot } from "./weir.js";

const kScrape = "1s";
/** Of rates. */
const kWindow = "4s";

const missing = ["prometheus", "promtool"].find((tool) => spawnSync(tool, ["--version"]).error);
const obstacle = missing && `${missing} is not installed (apt install prometheus)`;

function promtool(args: string[], input = "") {
  const { status, stdout, stderr } = spawnSync("promtool", args, { cwd: kRoot, encoding: "utf8", input });
  return { status, text: `${stdout}${stderr}` };
}

/** Prometheus with our rules, scraping these as `job="weir"`. Answers when it is ready. */
async function prometheus(targets: readonly string[]): Promise<string> {
  const path = folder();
  const file = join(path, "prometheus.yml");
  const url = `127.0.0.1:${await freePort()}`;
  writeFileSync(
    file,
    `global: { scrape_interval: ${kScrape}, scrape_timeout: ${kScrape}, evaluation_interval: 1s }
rule_files: [ ${join(kRoot, kRules)} ]
scrape_configs:
  - job_name: weir
    static_configs: [ { targets: [ ${targets.map((target) => new URL(target).host).join(", ")} ] } ]
`,
  );
  const options = ["--storage.tsdb.path", join(path, "data"), "--web.listen-address", url, "--log.level", "warn"];
  const child = spawn("prometheus", ["--config.file", file, ...options], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  await vi.waitFor(async () => expect((await fetch(`http://${url}/-/ready`)).ok).toBe(true), { timeout: 15_000 });
  return `http://${url}/api/v1`;
}

async function get<T>(url: string): Promise<T> {
  const { status, error, data } = (await (await fetch(url)).json()) as { status: string; error?: string; data: T };
  expect(status, `${url}: ${error}`).toBe("success");
  return data;
}

describeUnless(obstacle ?? liveObstacle(), "Prometheus", () => {
  it("gets data for every query of the dashboards, and can evaluate every alert", async () => {
    const net = await network();
    // The link to b is the bottleneck; its queue is marked, and what comes in from a is stopped.
    const [bridge, receiver, sender] = await Promise.all([
      startSwitch(net, {
        ports: [portOf(net, "a", "rate: 500Mbps"), portOf(net, "b", "rate: 50Mbps")],
        more: `ecn: { kmin: 10KB, kmax: 200KB, pmax: 10%, priorities: [3] }
pfc: { priorities: [3] }
buffer: { mode: static, threshold: 40KB }`,
      }),
      startNic(net, "b", { pairs: ["remote_qpn: 0x11", "remote_qpn: 0x12"] }),
      startNic(net, "a", { pairs: ["send: { message: 100KB }", "send: { message: 100KB }"] }),
    ]);
    const start = Date.now() / 1000;
    const api = await prometheus([bridge.url, receiver.url, sender.url]);
    let unanswered = dashboards().flatMap(({ title, panels }) =>
      panels.flatMap((panel) => (panel.targets ?? []).map(({ expr }) => ({ panel: `${title}: ${panel.title}`, expr }))),
    );
    const answered = async (expr: string) => {
      const query = expr.replaceAll("$__rate_interval", kWindow).replaceAll(/\$\w+/g, ".*");
      const range = `query=${encodeURIComponent(query)}&start=${start}&end=${Date.now() / 1000}&step=1`;
      const { result } = await get<{ result: { values: [number, string][] }[] }>(`${api}/query_range?${range}`);
      return result.some(({ values }) => values.some(([, value]) => value !== "NaN"));
    };
    await vi.waitFor(
      async () => {
        const answers = await Promise.all(unanswered.map(({ expr }) => answered(expr)));
        unanswered = unanswered.filter((_, i) => !answers[i]);
        expect(unanswered).toEqual([]);
      },
      { timeout: 30_000, interval: 500 },
    );

    const { groups } = await get<{ groups: { rules: { name: string; health: string; lastError?: string }[] }[] }>(
      `${api}/rules`,
    );
    const evaluated = groups.flatMap(({ rules }) => rules);
    expect(evaluated.length).toBeGreaterThan(4);
    expect(evaluated.filter(({ health }) => health !== "ok")).toEqual([]);

    for (const { url } of [bridge, receiver, sender]) {
      const text = await (await fetch(`${url}/metrics`)).text();
      expect(promtool(["check", "metrics"], text)).toEqual({ status: 0, text: "" });
    }
  });
});

describeUnless(obstacle, "the alerts", () => {
  it("are rules that promtool has nothing against", () => {
    const { status, text } = promtool(["check", "rules", "--lint=all", "--lint-fatal", kRules]);
    expect(status, text).toBe(0);
  });

  it("fire when they should, and not otherwise", () => {
    const { status, text } = promtool(["test", "rules", "test/metrics/alerts.test.yml"]);
    expect(status, text).toBe(0);
  });
});
