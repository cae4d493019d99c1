import { EventEmitter } from "node:events";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import type { CliContext } from "../../../src/cli/context.js";
import type { PointTools } from "../../../src/cli/points.js";
import { addSweepOn } from "../../../src/cli/sweep.js";
import type { RunOptions } from "../../../src/clocks/clock.js";
import { weir } from "../../cli/harness.js";
import { unmadeText } from "../../result/unmade.js";
import { fakeSimulate } from "../fake_simulate.js";
import { clocksWith } from "../fake_tools.js";
import { folder, kScenario, writeSweep } from "../fixture.js";
import { runVerb } from "../verb.js";

/** One command line of `weir sweep` with the tests' simulation. */
const sweep = (
  argv: readonly string[],
  tools: Partial<PointTools> = {},
  signals = new EventEmitter(),
  more: Partial<CliContext> = {},
) => runVerb(addSweepOn, ["sweep", ...argv], tools, signals, more);

/** Plans a sweep; returns the arguments of `run` and `merge`. */
async function planned(spec: object) {
  const directory = folder();
  const points = join(directory, "plan.jsonl");
  expect(await sweep(["plan", writeSweep(directory, spec), "--out", points])).toMatchObject({ status: 0, stderr: "" });
  const out = join(directory, "results");
  return { points, out, run: ["run", "--points", points, "--out", out], merge: ["merge", out] };
}

const kTwoBySeeds = { vary: { "switch.ecn.kmax": ["100KB", "200KB"] }, seeds: [1, 3] };

describe("weir sweep", () => {
  it("plans to stdout, and tells of bad values with status 2", async () => {
    const directory = folder();
    const { stdout } = await sweep(["plan", writeSweep(directory, kTwoBySeeds)]);
    expect(stdout.trimEnd().split("\n")).toHaveLength(5);
    const bad = await sweep(["plan", writeSweep(directory, { vary: { duration: ["1ms", "soon"] } })]);
    expect(bad).toMatchObject({
      status: 2,
      stdout: "",
      stderr: expect.stringContaining("at duration=soon: duration: "),
    });
  });

  it("streams a row for each point, and merges them in the order of the plan", async () => {
    const { run, merge } = await planned(kTwoBySeeds);
    const ran = await sweep([...run, "--index", "0", "--chunk", "4"]);
    const table = [
      "index,switch.ecn.kmax,seed,totals.goodput_bps",
      "0,100KB,1,101000",
      "1,100KB,3,103000",
      "2,200KB,1,201000",
      "3,200KB,3,203000",
    ];
    expect(ran).toEqual({
      status: 0,
      stdout: `${table.join("\n")}\n`,
      stderr: expect.stringMatching(/^4 points: 4 done; /),
    });
    expect(await sweep(merge)).toEqual({ status: 0, stdout: ran.stdout, stderr: "" });
  });

  it("merges by seeds, with other columns, and as JSON", async () => {
    const { run, merge } = await planned(kTwoBySeeds);
    await sweep([...run, "--index", "0", "--chunk", "4", "--quiet"]);
    const grouped = await sweep([...merge, "--group", "--collect", "totals.goodput_bps,scenario"]);
    const deviation = Math.sqrt(2) * 1000;
    const statistics = ["mean", "min", "max", "stddev"];
    const columns = ["totals.goodput_bps", "scenario"].flatMap((path) => statistics.map((name) => `${path}.${name}`));
    const [head, first = "", ...rest] = grouped.stdout.trimEnd().split("\n");
    expect(head).toBe(`switch.ecn.kmax,seeds,${columns.join(",")}`);
    expect(first).toMatch(/^100KB,2,102000,101000,103000,1414\.2135\d+,,,,$/);
    expect(Number(first.split(",")[5])).toBeCloseTo(deviation, 6);
    expect(rest).toHaveLength(1);
    expect(grouped.stderr).toBe("");
    const partly = await sweep([...merge, "--group", "--collect", "totals.first,totals.goodput_bps,no.such"]);
    expect(partly.stderr).toContain(
      "warning: totals.first: absent from 2 of 4 results, which its statistics leave out\n",
    );
    const { stdout } = await sweep([
      ...merge,
      "--json",
      "--collect",
      "switches.sw.queues.r.3.p95,totals,no.such,flows.1.id",
    ]);
    expect(JSON.parse(stdout)[1]).toEqual({
      index: 1,
      "switch.ecn.kmax": "100KB",
      seed: 3,
      "switches.sw.queues.r.3.p95": 96_000,
      "flows.1.id": "incast.2",
    });
  });

  it("warns of a column that no result has", async () => {
    const { run, merge } = await planned({});
    await sweep([...run, "--index", "0"]);
    expect((await sweep([...merge, "--collect", "totals.jain,totals.jane"])).stderr).toBe(
      "warning: no result has a value at totals.jane\n",
    );
  });

  it("gives figures of nothing no value, and says which results are not valid", async () => {
    const { run, merge } = await planned({ set: { description: "nothing" }, seeds: [1, 3] });
    await sweep([...run, "--index", "0", "--chunk", "2", "--quiet"]);
    const { status, stdout, stderr } = await sweep([...merge, "--collect", "fct.slowdown.p99,fct.count"]);
    expect(stdout).toBe("index,seed,fct.slowdown.p99,fct.count\n0,1,,0\n1,3,,0\n");
    expect(stderr).toContain("no result has a value at fct.slowdown.p99");
    expect(stderr).toContain("point 1 is not valid: nothing to judge: no frame was sent\n");
    expect(status).toBe(3);
  });

  it("makes no table of no results", async () => {
    const { run, merge } = await planned({ set: { description: "refuse" }, seeds: [1, 3] });
    await sweep([...run, "--index", "0", "--chunk", "2", "--quiet"]);
    const none = await sweep([...merge, "--partial"]);
    expect(none.status).toBe(1);
    expect(none.stderr).toContain("no point has a result: there is nothing to make a table of\n");
  });

  it("misses points that have no result, unless the table may be partial", async () => {
    const { run, merge, points } = await planned(kTwoBySeeds);
    await sweep([...run, "--index", "1"]);
    const missing = "3 of 4 points are missing: 0, 2, 3\n";
    const row = "index,switch.ecn.kmax,seed,totals.goodput_bps\n1,100KB,3,103000\n";
    expect(await sweep(merge)).toEqual({ status: 1, stdout: row, stderr: missing });
    expect(await sweep([...merge, "--partial", "--points", points])).toEqual({
      status: 0,
      stdout: row,
      stderr: missing,
    });
  });

  it.each([
    [{ SLURM_ARRAY_TASK_ID: "1", JOB_COMPLETION_INDEX: "0" }, [], "100KB,3"],
    [{ JOB_COMPLETION_INDEX: "2" }, [], "200KB,1"],
    [{ SLURM_ARRAY_TASK_ID: "1" }, ["--index", "3"], "200KB,3"],
    [{ SLURM_ARRAY_TASK_ID: "1" }, ["--chunk", "3"], "200KB,3"],
  ])("with %j and %j runs one chunk only", async (environment, more, expected) => {
    const { run } = await planned(kTwoBySeeds);
    const { stdout } = await sweep([...run, ...more], { environment });
    expect(stdout.trimEnd().split("\n").slice(1)).toEqual([expect.stringContaining(`,${expected},`)]);
  });

  it("ends with 42 for a point that fails for good, at the first time and ever after", async () => {
    const { run, merge } = await planned({ vary: { description: ["", "refuse"] } });
    const index = ["--index", "0", "--chunk", "2"];
    for (const _ of [1, 2]) {
      const { status, stderr } = await sweep([...run, ...index]);
      expect(status).toBe(42);
      expect(stderr).toContain("error: point 1 fails: no such thing\n");
    }
    const { status, stderr } = await sweep(merge);
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: "point 1 fails: no such thing\n0 of 2 points are missing\n",
    });
  });

  it("ends with another status where another try may help", async () => {
    const { run } = await planned({ set: { description: "break" } });
    expect(await sweep([...run, "--index", "0"])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("broken"),
    });
    const nowhere = ["run", "--points", "nosuch.jsonl", "--out", "x"];
    expect(await sweep([...nowhere, "--index", "0"])).toMatchObject({ status: 1 });
    // A user's command line has a slip then, as everywhere.
    expect(await sweep(nowhere)).toMatchObject({ status: 2 });
    expect(existsSync("x")).toBe(false);
  });

  it("ends with 42 for a plan of other code, a broken plan and an index beyond the end", async () => {
    const { run, points, out } = await planned(kTwoBySeeds);
    const other = await sweep(run, { codeVersion: () => "9.9.9+other" });
    expect(other).toMatchObject({
      status: 42,
      stderr: expect.stringContaining("the plan was made by weir 0.0.0+test, and this is 9.9.9+other\n  hint: "),
    });
    const beyond = await sweep([...run, "--index", "2", "--chunk", "2"]);
    expect(beyond).toMatchObject({ status: 42, stderr: expect.stringContaining("the index must be 0 to 1") });
    writeFileSync(points, readFileSync(points, "utf8").slice(0, -20));
    expect(await sweep(run)).toMatchObject({ status: 42 });
    expect(existsSync(out)).toBe(false);
  });

  it("runs each combination on every clock that is asked for, real frames one after another, and again where they did not count", async () => {
    const ran: string[] = [];
    const clocks = clocksWith(fakeSimulate);
    clocks.wire = {
      ...clocks.wire,
      run: async (scenario, options) => {
        const outcome = await fakeSimulate(scenario, options as RunOptions);
        ran.push(`${scenario.switches[0]?.ecn.kmax}`);
        outcome.result.fidelity.valid = ran.length !== 1;
        return outcome;
      },
    };
    const directory = folder();
    const points = join(directory, "plan.jsonl");
    const spec = { vary: { "switch.ecn.kmax": ["100KB", "200KB"] }, on: ["sim", "wire"] };
    await sweep(["plan", writeSweep(directory, spec), "--out", points]);
    const run = ["run", "--points", points, "--out", join(directory, "results"), "--jobs", "2"];
    const more = { clocks: async () => clocks, elevate: async () => undefined };
    const first = await sweep(run, {}, undefined, more);
    expect(first).toMatchObject({ status: 0, stderr: expect.stringMatching(/4 points: 4 done/) });
    expect(first.stdout.split("\n")[0]).toBe("index,switch.ecn.kmax,clock,seed,totals.goodput_bps");
    expect(ran).toEqual(["100000", "200000"]);
    const merged = await sweep(["merge", join(directory, "results")]);
    expect(merged).toMatchObject({ status: 3, stderr: expect.stringContaining("point 1 is not valid") });
    expect(merged.stdout.split("\n").slice(1, 3)).toEqual(["0,100KB,sim,1,101000", "1,100KB,wire,1,101000"]);
    expect((await sweep(run, {}, undefined, more)).stderr).toMatch(/4 points: 1 done, 3 done before/);
    expect(ran).toEqual(["100000", "200000", "100000"]);
    expect((await sweep(["merge", join(directory, "results")])).status).toBe(0);
  });

  it("solves equations, too, and says before anything runs which combination they are not of", async () => {
    const directory = folder();
    const file = writeSweep(directory, { vary: { "congestion.algorithm": ["dcqcn", "none"] } });
    const bad = await sweep(["plan", file, "--on", "sim,model"]);
    expect(bad).toMatchObject({ status: 2, stderr: expect.stringContaining("at congestion.algorithm=none: ") });
    const points = join(directory, "points.jsonl");
    const good = writeSweep(directory, { set: { duration: "10ms" }, vary: { "switch.ecn.kmax": ["100KB", "200KB"] } });
    await sweep(["plan", good, "--on", "model", "--out", points]);
    const ran = await sweep(["run", "--points", points, "--out", join(directory, "out"), "--json"]);
    const rows = ran.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(rows.map(({ clock }) => clock)).toEqual(["model", "model"]);
    expect(rows[0]["totals.goodput_bps"]).toBeGreaterThan(1e9);
  });

  it("does not run commands of a plan that is another's on real frames without being told so", async () => {
    const directory = folder();
    const points = join(directory, "points.jsonl");
    const scenario = `${kScenario}  - { run: "touch ${join(directory, "ran")}", on: h1 }\nscale: 1\n`;
    const file = writeSweep(directory, { on: ["wire"] }, scenario);
    expect(await sweep(["plan", file, "--out", points])).toMatchObject({ status: 0 });
    chmodSync(points, 0o666);
    const clocks = clocksWith(fakeSimulate);
    clocks.wire = { ...clocks.wire, run: () => Promise.reject(new Error("ran")) };
    const more = { clocks: async () => clocks, stdin: process.stdin, elevate: async () => undefined };
    const ran = await sweep(["run", "--points", points, "--out", join(directory, "out")], {}, undefined, more);
    expect(ran).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/can be written by everybody.*\n.*on h1: touch/),
    });
  });

  it("stops at a signal and leaves no half a point", async () => {
    const { run, out } = await planned({ vary: { description: ["", "sleep"] } });
    const signals = new EventEmitter();
    const clocks = clocksWith((scenario, options) => {
      if (scenario.description === "sleep") setImmediate(() => signals.emit("SIGTERM"));
      return fakeSimulate(scenario, options);
    });
    const { status, stderr } = await sweep([...run, "--index", "0", "--chunk", "2"], {}, signals, {
      clocks: async () => clocks,
    });
    expect(status).toBe(143);
    expect(stderr).toContain("2 points: 1 done, 1 left; results in");
    expect(readdirSync(out).filter((name) => !name.endsWith(".perf.json"))).toHaveLength(2);
  });

  it("makes what was deleted anew, the same", async () => {
    const { run, out } = await planned(kTwoBySeeds);
    const all = [...run, "--index", "0", "--chunk", "4"];
    await sweep(all);
    const name = readdirSync(out).find((file) => /^[0-9a-f]{32}\.json$/.test(file)) as string;
    const before = unmadeText(readFileSync(join(out, name), "utf8"));
    rmSync(join(out, name));
    expect((await sweep([...all, "--json"])).stdout.split("\n")).toHaveLength(2);
    expect(unmadeText(readFileSync(join(out, name), "utf8"))).toBe(before);
  });

  it("writes jobs of at most a thousand tasks, for one scheduler", async () => {
    const { points } = await planned({ seeds: 2001 });
    const submit = (...more: string[]) => sweep(["submit", "--points", points, ...more]);
    const { status, stdout } = await submit("--slurm");
    expect(status).toBe(0);
    expect(stdout).toMatch(/^#SBATCH --array=0-666%50$/m);
    expect(stdout).toContain(`sweep run --points ${points} --chunk 3 --out ${join(dirname(points), "results")}\n`);
    expect((await submit("--k8s", "--image", "weir", "--claim", "c", "--chunk", "100")).stdout).toMatch(
      /completions: 21$/m,
    );
    for (const wrong of [[], ["--slurm", "--k8s"], ["--k8s", "--image", "weir"], ["--slurm", "--claim", "c"]]) {
      expect(await submit(...wrong)).toMatchObject({
        status: 2,
        stdout: "",
        stderr: expect.stringMatching(/^error: .*--/),
      });
    }
  });

  it.each([["plan"], ["run"], ["merge"], ["submit"]])("helps with %s", async (verb) => {
    const { status, stdout } = await weir(["sweep", verb, "--help"]);
    expect(status).toBe(0);
    expect(stdout).toContain(`Usage: weir sweep ${verb}`);
    expect(stdout).toContain("Example");
  });
});

describe("weir validate", () => {
  it("knows a sweep, and checks its points", async () => {
    const directory = folder();
    const file = writeSweep(directory, kTwoBySeeds);
    expect(await weir(["validate", file])).toMatchObject({ status: 0, stdout: `${file}: ok: sweep sweep, 4 points\n` });
    expect(await weir(["validate", writeSweep(directory, { vary: { duration: ["soon"] } })])).toMatchObject({
      status: 2,
    });
    expect(await weir(["validate", file, "--set", "seeds=2"])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("--set"),
    });
  });
});
