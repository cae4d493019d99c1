import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Result } from "../../src/result/result.js";
import { sampleResult, sampleSeries } from "../result/report/sample.js";
import { weir } from "./harness.js";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "weir-compare-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** A folder as a run leaves it. */
function saved(name: string, change: (result: Result) => void = () => {}): string {
  const folder = join(directory, name);
  const result = sampleResult(2);
  change(result);
  mkdirSync(folder);
  writeFileSync(join(folder, "result.json"), JSON.stringify(result));
  writeFileSync(join(folder, "series.json"), JSON.stringify(sampleSeries(2, 50)));
  return folder;
}

/** Saves a run of the virtual clock, with one flow `percent` faster. */
const sim = (percent: number) =>
  saved("sim", (result) => {
    result.clock = "sim";
    const [flow] = result.flows;
    if (flow) flow.goodput_bps *= 1 + percent / 100;
  });

/** The same with samples of another interval. */
function resampled(): string {
  const folder = saved("again");
  writeFileSync(join(folder, "series.json"), JSON.stringify({ ...sampleSeries(2, 50), interval_s: 7 }));
  return folder;
}

describe("weir compare", () => {
  it("compares folders and files, and names runs by their clocks", async () => {
    const { status, stdout } = await weir(["compare", saved("a"), join(sim(4), "result.json")]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^flow +wire +sim +diff$/m);
    expect(stdout).toMatch(/^incast\.1 +18\.400 +19\.136 +\+4\.0%$/m);
  });

  it("names runs of one clock by their folders, or as asked", async () => {
    const runs = [saved("before"), saved("after")];
    expect((await weir(["compare", ...runs])).stdout).toMatch(/^flow +before +after +diff$/m);
    expect((await weir(["compare", ...runs, "--labels", "old, new"])).stdout).toMatch(/^flow +old +new +diff$/m);
    const same = await weir(["compare", runs[0] ?? "", runs[0] ?? "", "--json"]);
    expect(JSON.parse(same.stdout).runs.map(({ label }: { label: string }) => label.slice(0, 3))).toEqual([
      "1: ",
      "2: ",
    ]);
  });

  it("prints one JSON document with --json, limits only on request", async () => {
    const runs = [saved("a"), sim(4)];
    const { stdout } = await weir(["compare", ...runs, "--json"]);
    const document = JSON.parse(stdout);
    expect(document.flows[1]).toEqual({
      id: "incast.2",
      goodput_bps: { values: [18.4e9, 18.4e9], difference: [0, 0] },
    });
    expect(document.limits).toBeUndefined();
    const limited = await weir(["compare", ...runs, "--json", "--max-difference", "jain=1%"]);
    expect(JSON.parse(limited.stdout).limits).toEqual([
      { figure: "jain", limit: 0.01, worst: { difference: 0, where: "all flows", run: "sim" }, within: true },
    ]);
  });

  it("with --exact fails unless all but `made` is the same", async () => {
    const made = (weir: string) => (result: Result) => {
      result.made = { weir, at: "2026-01-01T00:00:00.000Z", host: { kernel: "6", cpus: 2, node: "v20" } };
    };
    const [first, same] = [saved("first", made("0.1.0+a")), saved("same", made("0.1.0+b"))];
    const equal = await weir(["compare", first, same, "--exact"]);
    expect(equal.status).toBe(0);
    expect(equal.stdout).toContain("note: different versions of Weir (0.1.0+a, 0.1.0+b)");
    expect(equal.stdout).toContain("\nexact: same is the same as first, but for when and where it was made\n");
    const other = await weir(["compare", first, sim(4), "--exact"]);
    expect(other.status).toBe(1);
    expect(other.stdout).toContain(
      '\nexact: sim DIFFERS from wire in 2 places\n  clock: "wire", "sim"\n  flows.0.goodput_bps: ',
    );
    const document = JSON.parse((await weir(["compare", first, resampled(), "--exact", "--json"])).stdout);
    expect(document.exact).toMatchObject([{ run: "again", same: false, differences: 1 }]);
    expect(document.exact[0].places[0].place).toBe("series.interval_s");
  });

  it("says of one run that is not there that it is not", async () => {
    const { status, stderr } = await weir(["compare", join(directory, "none")]);
    expect({ status, stderr }).toMatchObject({ status: 2, stderr: expect.stringContaining("none: no such file") });
    expect((await weir(["compare", saved("alone")])).stderr).toContain("one run: nothing to compare it to");
  });

  it("writes a page", async () => {
    const out = join(directory, "overlay.html");
    const { status, stdout } = await weir(["compare", saved("a"), sim(4), "--out", out]);
    expect(status).toBe(0);
    expect(stdout.endsWith(`\nreport: ${out}\n`)).toBe(true);
    expect(readFileSync(out, "utf8")).toContain('<script type="application/json" id="data">[{"label":"');
  });

  it.each([
    ["goodput=5%", 0],
    ["goodput=3%", 1],
    ["p50=0%,goodput=3%", 1],
    ["p50=0%, p95=0.2", 0],
  ])("gives --max-difference %s status %d", async (limits, status) => {
    const ran = await weir(["compare", saved("a"), sim(4), "--max-difference", limits]);
    expect(ran.status).toBe(status);
    expect(ran.stdout.includes("EXCEEDS")).toBe(status === 1);
  });

  it("gives status 3 to a check with a run that is not valid, and 0 to a look at it", async () => {
    const invalid = saved("invalid", (result) => {
      result.fidelity = { ...result.fidelity, valid: false, reasons: ["loop gap 7 ms"] };
    });
    const runs = [invalid, sim(0)];
    expect(await weir(["compare", ...runs, "--max-difference", "goodput=5%"])).toMatchObject({ status: 3 });
    const looked = await weir(["compare", ...runs]);
    expect(looked.status).toBe(0);
    expect(looked.stdout).toContain("INVALID: the figures of wire do not count: loop gap 7 ms");
  });

  it("refuses what is no result, and says which file", async () => {
    const good = saved("a");
    const bad = join(directory, "bad");
    mkdirSync(bad);
    const refused = async (...paths: string[]) => {
      const { status, stdout, stderr } = await weir(["compare", ...paths]);
      expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
      return stderr;
    };
    expect(await refused(good, join(directory, "nosuch"))).toContain(join(directory, "nosuch"));
    expect(await refused(good, bad)).toMatch(
      /bad\/result\.json: no such file\n {2}hint: give the result.json of a run/,
    );
    writeFileSync(join(bad, "result.json"), '{"scenario":"x"}');
    expect(await refused(good, bad)).toContain("bad/result.json: not a result of weir: clock: ");
    writeFileSync(join(bad, "result.json"), "[]");
    expect(await refused(good, bad)).toContain("bad/result.json: not a result of weir: Invalid input");
    writeFileSync(join(bad, "result.json"), JSON.stringify(sampleResult(1)));
    writeFileSync(join(bad, "series.json"), '{"time_s":[]}');
    expect(await refused(good, bad)).toContain("bad/series.json: not series of weir: interval_s: ");
  });

  it.each([
    [["--labels", "one"], "--labels: 1 for 2 runs"],
    [["--labels", "x,x"], "two are the same"],
    [["--labels", "x,"], "one of them is empty"],
    [["--max-difference", "speed=5%"], "figures: goodput, total"],
    [["--max-difference", "goodput"], "--max-difference goodput: not a limit"],
    [["--max-difference", "goodput=5 apples"], "5 apples"],
  ])("refuses %j", async (options, message) => {
    const out = join(directory, "never.html");
    const ran = await weir(["compare", saved("a"), sim(1), "--out", out, ...options]);
    expect(ran).toMatchObject({ status: 2, stdout: "", stderr: expect.stringContaining(message) });
    expect(existsSync(out)).toBe(false);
  });

  it("needs two runs", async () => {
    expect(await weir(["compare", saved("a")])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("one run"),
    });
  });
});
