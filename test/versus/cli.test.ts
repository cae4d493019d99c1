import { EventEmitter } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Writable } from "node:stream";
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { type CliContext, describeError, exitStatusOf } from "../../src/cli/context.js";
import type { PointTools } from "../../src/cli/points.js";
import { addVersusOn } from "../../src/cli/versus.js";
import type { Simulate } from "../../src/sweep/point.js";
import { sampleSeries, simulatedResult } from "../report/sample.js";
import { kCode, startFakeWorker } from "../sweep/fake_tools.js";
import { folder, kScenario } from "../sweep/fixture.js";

/** Goodput is the seed in Gb/s, and the queue that of the algorithm. */
const simulate: Simulate = async (scenario) => {
  const result = simulatedResult();
  const { algorithm, profile } = scenario.congestion;
  Object.assign(result, { scenario: scenario.name, congestion_control: algorithm, profile, seed: scenario.seed });
  result.totals.goodput_bps = scenario.seed * 1e9;
  result.fidelity.valid = !scenario.description.includes("invalid");
  const performance = { cpu_s: 1, wall_s: 1, events: 1, hops: 1, threads: 1, round_ns: 1, rounds: 1, rss_bytes: 1 };
  return { result, series: sampleSeries(2, 50), performance, complete: true };
};

/** Runs every point in this process. */
async function versus(argv: readonly string[], text = kScenario) {
  const directory = folder();
  const file = join(directory, "incast.yaml");
  writeFileSync(file, text);
  const told = { stdout: "", stderr: "" };
  const stream = (name: keyof typeof told) =>
    new Writable({
      write(chunk, _encoding, done) {
        told[name] += String(chunk);
        done();
      },
    });
  const context = { stdout: stream("stdout"), stderr: stream("stderr"), signals: new EventEmitter() };
  const tools: PointTools = {
    codeVersion: () => kCode,
    simulate: async () => simulate,
    startWorker: startFakeWorker,
    environment: {},
  };
  let status = 0;
  const program = new Command("weir").exitOverride().configureOutput({ writeErr: () => {} });
  addVersusOn(tools, program, context as unknown as CliContext, (value) => {
    status = value;
  });
  const all = ["versus", file, "--jobs", "1", "--out", join(directory, "out"), ...argv];
  try {
    await program.parseAsync(all, { from: "user" });
  } catch (error) {
    status = exitStatusOf(error);
    told.stderr += describeError(error);
  }
  const page = join(directory, "out", "versus.html");
  return { status, ...told, page: existsSync(page) ? readFileSync(page, "utf8") : "" };
}

describe("weir versus", () => {
  it("shows figures of each with their spread over the seeds", async () => {
    const { status, stdout, page } = await versus(["--algorithms", "dcqcn,none", "--seeds", "3"]);
    expect(status).toBe(0);
    expect(page).toContain("<title>incast - Weir</title>");
    expect(page).toContain("Slowdown by size, p99");
    expect(page).toContain('id="charts"');
    expect(stdout).toContain("incast, mean +- standard deviation over 3 seeds\n");
    expect(stdout).toMatch(/^goodput Gb\/s +2\.000 \+-1\.000 +2\.000 \+-1\.000$/m);
    expect(stdout).toMatch(/^paused us, all senders +25\.00 +25\.00$/m);
    expect(stdout).toMatch(/^up to 10 KB +p99 +3\.75 +3\.75$/m);
    expect(stdout).not.toContain("packets sent again");
  });

  it("has all as JSON, and each run as CSV", async () => {
    const { stdout } = await versus(["--algorithms", "dcqcn:hpcc-ns3,none", "--seeds", "2", "--json"]);
    const document = JSON.parse(stdout);
    expect(document).toMatchObject({ scenario: "incast", seeds: [1, 2] });
    const [first] = document.contenders;
    expect(first).toMatchObject({ label: "dcqcn:hpcc-ns3", algorithm: "dcqcn", profile: "hpcc-ns3" });
    expect(first.figures.goodput_bps).toMatchObject({ mean: 1.5e9, min: 1e9, max: 2e9, seeds: 2 });
    expect(first.sizes.map(({ size }: { size: string }) => size)).toEqual(["all", "up to 10 KB", "over 10 MB"]);
    const csv = await versus(["--algorithms", "dcqcn,none", "--seeds", "1", "--csv"]);
    expect(csv.stdout.split("\n").slice(0, 2)).toEqual([
      expect.stringMatching(/^contender,seed,valid,goodput_bps,jain,/),
      expect.stringMatching(/^dcqcn,1,true,1000000000,0\.9987,/),
    ]);
  });

  it("refuses with status 2, and says with 3 that runs are not valid", async () => {
    const refused = await versus(["--algorithms", "dcqcn,swift"]);
    expect(refused).toMatchObject({ status: 2, stdout: "", stderr: expect.stringContaining("with swift: ") });
    const invalid = await versus(["--algorithms", "dcqcn"], `${kScenario}description: invalid\n`);
    expect(invalid).toMatchObject({ status: 3, stdout: expect.stringContaining("INVALID: dcqcn, seed 1: ") });
  });
});
