import { existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { WeirError } from "../../src/base/error.js";
import type { SimOptions, SimOutcome } from "../../src/clocks/sim/types.js";
import type { Scenario } from "../../src/scenario/types.js";
import { sampleSeries, simulatedResult } from "../result/report/sample.js";
import { unmade } from "../result/unmade.js";
import { type FakeSim, weir as run } from "./harness.js";

const kIncast = fileURLToPath(new URL("./fixtures/incast.yaml", import.meta.url));
const folder = () => join(mkdtempSync(join(tmpdir(), "weir-")), "out");
const json = (...path: string[]) => JSON.parse(readFileSync(join(...path), "utf8"));

const outcome = (changes: Partial<SimOutcome> = {}): SimOutcome => ({
  result: simulatedResult(),
  series: sampleSeries(2, 50),
  flowTable: [
    {
      flow: 3,
      id: "a,b",
      from: "h1",
      to: "r",
      message: 0,
      bytes: 1e6,
      start_ns: 10,
      end_ns: 400_010,
      ideal_ns: 200_000,
      slowdown: 2,
    },
  ],
  performance: {
    cpu_s: 2,
    wall_s: 2.5,
    hops_per_cpu_s: 6e6,
    events: 5e6,
    hops: 12e6,
    threads: 1,
    round_ns: 1001,
    rounds: 5e3,
    rss_bytes: 150e6,
  },
  complete: true,
  ...changes,
});
const finished: FakeSim = async () => outcome();
const weir = (argv: readonly string[], sim: FakeSim = finished) =>
  run(["sim", "run", ...argv], undefined, undefined, sim);

describe("weir sim run", () => {
  it("exits with 4 where the result is not as expected, unless it is invalid, and tells CI", async () => {
    const out = folder();
    const junit = join(mkdtempSync(join(tmpdir(), "weir-")), "junit.xml");
    const args = [kIncast, "--out", out, "--quiet", "--junit", junit];
    const met = "totals.goodput_bps > 0";
    expect((await weir([...args, "--set", `expect=["${met}"]`])).status).toBe(0);
    expect(readFileSync(junit, "utf8")).toContain('tests="2" failures="0" errors="0"');
    const { status, stderr } = await weir([...args, "--set", `expect=["${met}", "totals.nothing < 1"]`]);
    expect({ status, stderr }).toEqual({
      status: 4,
      stderr: "not as expected: totals.nothing < 1: totals.nothing is not there\n",
    });
    expect(readFileSync(junit, "utf8")).toContain('tests="3" failures="1" errors="0"');
    const result = simulatedResult();
    const fidelity = { ...result.fidelity, valid: false, reasons: ["too little memory"] };
    const invalid: FakeSim = async () => outcome({ result: { ...result, fidelity } });
    expect((await weir([...args, "--set", 'expect=["totals.nothing < 1"]'], invalid)).status).toBe(3);
    expect(readFileSync(junit, "utf8")).toContain('<error message="too little memory"/>');
  });

  it("prints tables and what it cost, and leaves all files", async () => {
    const out = folder();
    const { status, stdout } = await weir([kIncast, "--out", out, "--quiet", "--seed", "9"]);
    expect(status).toBe(0);
    expect(stdout).toContain("Flow completion times");
    expect(stdout).toContain("fidelity: valid, virtual time\n");
    expect(stdout).toContain("performance: 2.00 s CPU, 2.50 s wall, 12.00M hops, 6.00M hops per CPU second, 150 MB\n");
    expect(stdout.endsWith(`\nreport: ${join(out, "report.html")}\n`)).toBe(true);
    expect(readdirSync(out).sort()).toEqual([
      "fct.csv",
      "performance.json",
      "report.html",
      "result.json",
      "scenario.json",
      "series.json",
    ]);
    expect(unmade(readFileSync(join(out, "result.json"), "utf8"))).toEqual(simulatedResult());
    expect(json(out, "performance.json")).toEqual(outcome().performance);
    expect(json(out, "scenario.json")).toMatchObject({ set: ["seed=9"], scenario: { seed: 9 } });
    expect(readFileSync(join(out, "fct.csv"), "utf8")).toBe(
      "flow,id,from,to,message,bytes,start_ns,end_ns,ideal_ns,slowdown\n" +
        '3,"a,b",h1,r,0,1000000,10,400010,200000,2\n',
    );
  });

  it("leaves no fct.csv when no flow has an end, and series as asked", async () => {
    const { fct, ...result } = simulatedResult();
    const out = folder();
    await weir([kIncast, "--out", out, "--quiet", "--series-format", "csv"], async () => outcome({ result }));
    expect(readdirSync(out)).toContain("flows.csv");
    expect(readdirSync(out)).not.toContain("fct.csv");
  });

  it("prints exactly one JSON document with --json, the series only on request", async () => {
    expect(unmade((await weir([kIncast, "--out", folder(), "--json"])).stdout)).toEqual(simulatedResult());
    const full = JSON.parse((await weir([kIncast, "--out", folder(), "--json", "--series"])).stdout);
    expect(full.series.time_s).toHaveLength(50);
  });

  it("hands on the scenario, the end and the traces, which land in the folder", async () => {
    const seen: [SimOptions, Scenario][] = [];
    const out = folder();
    const traces = ["--trace", "sw:a.pcapng", "--trace", "h1--sw:/tmp/b:c.pcapng"];
    await weir([kIncast, "--out", out, "--until", "60us", "--duration", "100us", ...traces], async (options, _, s) => {
      seen.push([options, s]);
      return outcome();
    });
    expect(seen[0]?.[1].duration).toBe(100_000);
    expect(seen[0]?.[0]).toMatchObject({
      until: 60_000,
      folder: out,
      trace: [
        { target: "sw", file: "a.pcapng" },
        { target: "h1--sw", file: "/tmp/b:c.pcapng" },
      ],
    });
  });

  it("names the range of --threads, hands on what it is, and else decides by the network", async () => {
    const { stderr } = await weir([kIncast, "--threads", "10000"]);
    expect(stderr).toContain("--threads 10000: not a number from 1 to 128");
    const seen: SimOptions[] = [];
    const remember: FakeSim = async (options) => {
      seen.push(options);
      return outcome();
    };
    await weir([kIncast, "--out", folder(), "--threads", "7"], remember);
    await weir([kIncast, "--out", folder()], remember);
    expect(seen.map(({ threads }) => threads)).toEqual([7, "auto"]);
  });

  it("hands on the bound of --fast-forward, and skips nothing by default", async () => {
    const seen: SimOptions[] = [];
    const remember: FakeSim = async (options) => {
      seen.push(options);
      return outcome();
    };
    for (const value of ["auto", "off", "1%", "0.2"]) {
      await weir([kIncast, "--out", folder(), "--fast-forward", value], remember);
    }
    await weir([kIncast, "--out", folder()], remember);
    expect(seen.map(({ fastForward }) => fastForward)).toEqual([0.03, undefined, 0.01, 0.2, undefined]);
    const { stderr } = await weir([kIncast, "--fast-forward", "60%"]);
    expect(stderr).toContain("--fast-forward 60%: out of range");
    expect(stderr).toContain("auto (3.0%), off, or a part from 0.1% to 50.0%");
  });

  it("hands on the share of --verify, which is one of what --fast-forward skips", async () => {
    const seen: SimOptions[] = [];
    const remember: FakeSim = async (options) => {
      seen.push(options);
      return outcome();
    };
    const forward = ["--fast-forward", "auto"];
    for (const value of ["0.1%", "5%", "1/2"]) {
      await weir([kIncast, "--out", folder(), ...forward, "--verify", value], remember);
    }
    await weir([kIncast, "--out", folder(), ...forward], remember);
    expect(seen.map(({ verify }) => verify)).toEqual([0.001, expect.closeTo(0.05), 0.5, undefined]);
    for (const value of ["0", "0.09%", "51%", "two", "1ms"]) {
      const { status, stderr } = await weir([kIncast, ...forward, "--verify", value]);
      expect([status, stderr]).toEqual([2, expect.stringMatching(/--verify [\s\S]*0\.1% to 50\.0%/)]);
    }
    for (const skips of [[], ["--fast-forward", "off"]]) {
      const { status, stderr } = await weir([kIncast, ...skips, "--verify", "1%"]);
      expect([status, stderr]).toEqual([2, expect.stringContaining("--verify: not without --fast-forward")]);
    }
  });

  it("says how long threads waited where there are several", async () => {
    const several = { threads: 2, sharing: { partitions: 16, together: 1, crossing: 0.4, waiting: 0.0421 } };
    const { stdout } = await weir([kIncast, "--out", folder(), "--quiet"], async () =>
      outcome({ performance: { ...outcome().performance, ...several } }),
    );
    expect(stdout).toContain("2.50 s wall, 2 threads (4.2% waiting), 12.00M hops");
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ])("stops on %s with status %d and still leaves the results so far", async (name, status) => {
    const out = folder();
    const partial: FakeSim = async ({ signal }, signals) => {
      signals.emit(name, name);
      expect(signal.aborted).toBe(true);
      const result = simulatedResult();
      result.fidelity = { ...result.fidelity, valid: false, reasons: ["stopped at 1 ms of 2 ms"] };
      return outcome({ complete: false, result });
    };
    const ran = await weir([kIncast, "--out", out], partial);
    expect(ran).toMatchObject({ status, exits: [] });
    expect(ran.stderr).toContain(`${name}: stopping; once more to quit at once`);
    expect(ran.stdout).toContain("  - stopped at 1 ms of 2 ms");
    expect(json(out, "result.json").fidelity.valid).toBe(false);
  });

  it("ends at once on a second signal", async () => {
    const twice: FakeSim = async (_, signals) => {
      for (const name of ["SIGINT", "SIGINT"]) signals.emit(name, name);
      return outcome({ complete: false });
    };
    expect((await weir([kIncast, "--out", folder()], twice)).exits).toEqual([130]);
  });

  it("tells how far it is, every ten seconds where there is no terminal", async () => {
    const progress = { done: 0.5, until_ns: 2e6, events: 1, flows_started: 7, flows_ended: 3 };
    const slow: FakeSim = async ({ onProgress }) => {
      onProgress?.({ ...progress, now_ns: 1e5, hops: 1e6, wall_s: 1, eta_s: 19 });
      onProgress?.({ ...progress, now_ns: 1e6, hops: 20e6, wall_s: 10, eta_s: 4000 });
      onProgress?.({ ...progress, now_ns: 1.1e6, hops: 30e6, wall_s: 11, eta_s: 9 });
      return outcome();
    };
    const { stderr } = await weir([kIncast, "--out", folder()], slow);
    expect(stderr).toBe("incast: 50.0% 1 ms of 2 ms, 2.00M hops/s, 3 of 7 flows done, 67 min left\n");
    expect((await weir([kIncast, "--out", folder(), "--quiet"], slow)).stderr).toBe("");
  });

  it("gives status 1 when it fails, and leaves no empty folder", async () => {
    const out = folder();
    const ran = await weir([kIncast, "--out", out], async () => {
      throw new WeirError("the native core does not load", { hint: "build it" });
    });
    expect(ran).toMatchObject({ status: 1, stderr: "error: the native core does not load\n  hint: build it\n" });
    expect(existsSync(out)).toBe(false);
  });

  it.each([
    ["--until", "5 apples"],
    ["--until", "0ns"],
    ["--trace", "sw"],
    ["--trace", "h9:sw.pcapng"],
    ["--series-format", "xml"],
    ["--set", "duration=never"],
    ["--threads", "0"],
    ["--threads", "10000"],
    ["--threads", "two"],
    ["--fast-forward", "on"],
    ["--fast-forward", "0"],
  ])("gives status 2 for %s %s before anything runs", async (...argv) => {
    const out = folder();
    const never: FakeSim = async () => {
      throw new Error("must not run");
    };
    expect(await weir([kIncast, "--out", out, ...argv], never)).toMatchObject({ status: 2, stdout: "" });
    expect(existsSync(out)).toBe(false);
  });

  it("warns when all of what is asked for is warm-up", async () => {
    const { stderr } = await weir([kIncast, "--out", folder(), "--quiet", "--until", "1us"]);
    expect(stderr).toMatch(/^warning: --until 1 us is within the warm-up of .*: rates will be 0; use --set warmup=/);
  });
});
