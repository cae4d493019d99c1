/**
 * A Prometheus server scrapes a switch and two NICs under congestion: every query of the dashboards gets data, every alert can be
 * evaluated, and its own tools have nothing against what is exposed. Debian's package `prometheus` has both programs.
 */
import { spawnSync } from "node:child_process";
import { expect, it, onTestFinished } from "vitest";
import { hasData, Prometheus, panelQueries } from "../../bench/scrape/prometheus.js";
import { kRoot } from "../command.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { kRules } from "../watch/metrics/promql.js";
import { liveObstacle } from "./capability.js";
import { network, portOf, startNic, startSwitch } from "./daemons.js";

/** Window of rates. */
const kWindow = "4s";

const obstacle = lacking("prometheus");

function promtool(args: string[], input = "") {
  const { status, stdout, stderr } = spawnSync("promtool", args, { cwd: kRoot, encoding: "utf8", input });
  return { status, text: `${stdout}${stderr}` };
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
    const targets = [bridge, receiver, sender].map(({ url }) => new URL(url).host);
    const prometheus = await Prometheus.start(targets, 1);
    onTestFinished(() => prometheus.stop());
    let unanswered = panelQueries();
    await eventually(async () => {
      const ask = async ({ expr }: { expr: string }) =>
        hasData(await prometheus.range(expr, { start, step: 1, window: kWindow }));
      const answers = await Promise.all(unanswered.map(ask));
      unanswered = unanswered.filter((_, i) => !answers[i]);
      expect(unanswered).toEqual([]);
    });

    const evaluated = await prometheus.rules();
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
    const { status, text } = promtool(["test", "rules", "test/watch/metrics/alerts.test.yml"]);
    expect(status, text).toBe(0);
  });
});
