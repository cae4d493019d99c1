import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { addTuneOn } from "../../../src/cli/tune.js";
import type { Clock } from "../../../src/clocks/clock.js";
import { loadScenario } from "../../../src/scenario/scenario.js";
import { parseObjective } from "../../../src/study/tune/objective.js";
import { type Comparison, verdict } from "../../../src/study/tune/tune.js";
import { sampleSeries, simulatedResult } from "../../result/report/sample.js";
import { unmadeText } from "../../result/unmade.js";
import { clocksWith } from "../fake_tools.js";
import { folder, kScenario } from "../fixture.js";
import { runVerb } from "../verb.js";

/** The queue is the longer the farther R_AI is from 100 Mb/s; with "overfit" only with the seeds 1 to 4, otherwise the other way. */
const simulate: Clock["run"] = async ({ congestion, description, seed }) => {
  const result = simulatedResult();
  if (description === "nothing") Object.assign(result, kNothing);
  const { rpg_ai_rate = 0 } = congestion.parameters as { rpg_ai_rate?: number };
  const off = Math.abs(Math.log(rpg_ai_rate / 100e6));
  const told = description === "overfit" && seed > 4 ? 10 - off : off;
  if (result.switches.sw)
    result.switches.sw.queues = { r: { 3: { mean: 0, p50: 0, p95: 0, p99: 1e5 + told, max: 0 } } };
  const performance = { cpu_s: 1, wall_s: 1, events: 1, hops: 1, threads: 1, round_ns: 1, rounds: 1, rss_bytes: 1 };
  return { result, series: sampleSeries(2, 50), flowTable: [], performance, complete: true };
};

/** A run in which no transfer was complete. */
const kNone = { count: 0, slowdown: { mean: 0, p50: 0, p95: 0, p99: 0, max: 0 } };
const kNothing = { fct: { ...kNone, fct_us: kNone.slowdown, incomplete: 8, bins: [] } };

async function tune(argv: readonly string[], text = kScenario) {
  const directory = folder();
  const file = join(directory, "incast.yaml");
  const out = join(directory, "out");
  writeFileSync(file, text);
  const all = ["tune", file, "--jobs", "1", "--quiet", "--out", out, ...argv];
  const ran = await runVerb(addTuneOn, all, {}, undefined, { clocks: async () => clocksWith(simulate) });
  const found = join(out, "tuned.yaml");
  return { ...ran, file, found: existsSync(found) ? readFileSync(found, "utf8") : "" };
}

const kQueue = ["--objective", "switches.*.queues.*.*.p99", "--parameters", "rpg_ai_rate", "--runs", "40"];

describe("weir tune", () => {
  it("finds better parameters, which the scenario takes, the same each time", async () => {
    const first = await tune([...kQueue, "--json"]);
    expect(first).toMatchObject({ status: 0, stderr: "" });
    const document = JSON.parse(first.stdout);
    expect(document).toMatchObject({ scenario: "incast", algorithm: "dcqcn", verdict: "holds", runs: 40 });
    expect(document.tuned_on.seeds).toEqual([1, 2, 3, 4]);
    expect(document.verified_on.seeds).toEqual([5, 6, 7, 8]);
    const { scenario } = loadScenario(first.file, { set: document.set });
    const rate = (scenario.congestion.parameters as { rpg_ai_rate: number }).rpg_ai_rate;
    expect(Math.abs(Math.log(rate / 100e6))).toBeLessThan(Math.log(2.5));
    expect(first.found).toContain("congestion:\n  parameters:\n    rpg_ai_rate: ");
    expect(unmadeText((await tune([...kQueue, "--json"])).stdout)).toBe(unmadeText(first.stdout));
  });

  it("asks equations, and runs only what they are of", async () => {
    const model = [
      "--on",
      "model",
      "--objective",
      "switches.*.queues.*.*.p99",
      "--parameters",
      "rpg_ai_rate",
      "--runs",
      "12",
    ];
    const short = `${kScenario}duration: 10ms\nwarmup: 5ms\n`;
    const ran = await tune([...model, "--json"], short);
    expect(ran).toMatchObject({ status: 0, stderr: "" });
    expect(JSON.parse(ran.stdout)).toMatchObject({ clock: "model", candidates: 8 });
    const other = await tune(model, `${short}congestion: { algorithm: timely }\ntransport: { type: rc }\n`);
    expect(other).toMatchObject({ status: 2, stderr: expect.stringContaining("congestion.algorithm") });
  });

  it("says plainly that a gain is none with other seeds", async () => {
    const { status, stdout, found } = await tune(kQueue, `${kScenario}description: overfit\n`);
    expect(status).toBe(0);
    expect(stdout).toContain("the gain DOES NOT HOLD with seeds that it was not tuned on");
    expect(found).toContain("# the gain DOES NOT HOLD");
    expect(stdout).toMatch(/^weir sim run .* --set congestion.parameters.rpg_ai_rate=/m);
  });

  it("keeps what the scenario has where nothing is better", async () => {
    const { stdout, found } = await tune([...kQueue, "--set", "congestion.parameters.rpg_ai_rate=100Mbps"]);
    expect(stdout).toContain("nothing better than what the scenario has was found");
    expect(stdout).not.toContain("weir sim run");
    expect(found).not.toContain("congestion:");
  });

  it("says that there is nothing to judge where no run says anything", async () => {
    const argv = ["--objective", "min fct.slowdown.p99", "--parameters", "rpg_ai_rate", "--runs", "40"];
    const { status, stdout, found } = await tune(argv, `${kScenario}description: nothing\n`);
    expect(status).toBe(1);
    expect(stdout).toContain("NOTHING TO JUDGE: no run is valid and has the objective's figure");
    expect(stdout).not.toContain("nothing better than");
    expect(found).not.toContain("congestion:");
  });

  it.each([
    [["--runs", "10"], 2, "10 runs are too few for two candidates"],
    [["--parameters", "speed"], 2, '"speed" is no parameter of DCQCN'],
    [["--set", "congestion.algorithm=none"], 2, "has no parameters to tune"],
    [["--objective", "totals.speed"], 1, "the result has no number at totals.speed"],
  ])("refuses %j", async (argv, status, message) => {
    expect(await tune(argv)).toMatchObject({ status, stdout: "", stderr: expect.stringContaining(message) });
  });
});

describe("a verdict", () => {
  const objective = parseObjective("min fct.slowdown.p99");
  const compared = (before: number[], after: number[], unmet = { before: 0, after: 0 }): Comparison => ({
    ...{ seeds: before.map((_, i) => i), before, after, unmet },
    gain: 0,
  });
  it.each([
    ["holds", compared([10, 12, 11], [9, 11, 10])],
    ["unclear", compared([10, 12, 11], [9, 12.5, 9])],
    ["fails", compared([10, 12], [10, 12])],
    ["fails", compared([10, 12], [1, 1], { before: 0, after: 1 })],
    ["holds", compared([10, 12], [20, 20], { before: 2, after: 0 })],
  ] as const)("%s", (expected, one) => {
    expect(verdict(one, objective)).toBe(expected);
  });
});
