import { existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { WeirError } from "../../src/base/error.js";
import type { LabOptions } from "../../src/clocks/lab/types.js";
import { sampleResult, sampleSeries } from "../result/report/sample.js";
import { unmade } from "../result/unmade.js";
import { type FakeLab, finishedLab, weir } from "./harness.js";

const kIncast = fileURLToPath(new URL("./fixtures/incast.yaml", import.meta.url));
const folder = () => join(mkdtempSync(join(tmpdir(), "weir-")), "out");
const json = (...path: string[]) => JSON.parse(readFileSync(join(...path), "utf8"));

/** A lab that sends itself signals and ends as the real one does when its signal aborts. */
const interrupted =
  (...names: string[]): FakeLab =>
  ({ signal }, signals) =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () => setImmediate(() => reject(signal.reason)));
      for (const name of names) signals.emit(name, name);
    });

describe("weir lab run", () => {
  it("prints tables and leaves result, series, scenario and report", async () => {
    const out = folder();
    const { status, stdout } = await weir(["lab", "run", kIncast, "--out", out, "--quiet", "--seed", "9"]);
    expect(status).toBe(0);
    expect(stdout).toContain("incast.2  h2 -> r");
    expect(stdout.endsWith(`\nreport: ${join(out, "report.html")}\n`)).toBe(true);
    expect(readdirSync(out).sort()).toEqual(["report.html", "result.json", "scenario.json", "series.json"]);
    expect(unmade(readFileSync(join(out, "result.json"), "utf8"))).toEqual(sampleResult(2));
    expect(json(out, "series.json").time_s).toHaveLength(50);
    expect(json(out, "scenario.json")).toMatchObject({ set: ["seed=9"], scenario: { seed: 9, name: "incast" } });
    const page = readFileSync(join(out, "report.html"), "utf8");
    expect(page).toContain("<h1>incast-4to1</h1>");
    expect(page).toContain('"thresholds":{"sw:r:3":{"kmin":5000,"kmax":200000}}');
  });

  it("prints exactly one JSON document with --json, the series only on request", async () => {
    const bare = unmade((await weir(["lab", "run", kIncast, "--out", folder(), "--json"])).stdout);
    expect(bare).toEqual(sampleResult(2));
    const full = JSON.parse((await weir(["lab", "run", kIncast, "--out", folder(), "--json", "--series"])).stdout);
    expect(full.series.time_s).toHaveLength(50);
  });

  it.each([
    [
      ["--set", "topology={kind: leaf-spine, leaves: 4, spines: 2, hosts: 64}", "--set", "traffic=[]"],
      "256 hosts are too many",
    ],
    [["--capture", "h9:a.pcap"], "--capture h9"],
  ])("takes %j for bad usage, before it asks for rights", async (options, message) => {
    const { status, stdout, stderr } = await weir(["lab", "run", kIncast, "--quiet", ...options], finishedLab, 0);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toContain(`error: ${message}`);
  });

  it("hands the lab a view, captures and a folder", async () => {
    const seen: LabOptions[] = [];
    const watch: FakeLab = (options, signals) => {
      seen.push(options);
      return finishedLab(options, signals);
    };
    const out = folder();
    await weir(
      ["lab", "run", kIncast, "--out", out, "--capture", "sw:a.pcap", "--capture", "h1--sw:/tmp/b:c.pcap"],
      watch,
    );
    await weir(["lab", "run", kIncast, "--out", out, "--quiet"], watch);
    expect(seen[0]).toMatchObject({
      folder: out,
      capture: [
        { target: "sw", file: "a.pcap" },
        { target: "h1--sw", file: "/tmp/b:c.pcap" },
      ],
    });
    expect(seen[0]?.view).toBeDefined();
    expect(seen[1]?.view).toBeUndefined();
  });

  it("gives status 3 and still all files when the host was the bottleneck", async () => {
    const out = folder();
    const result = sampleResult(2);
    result.fidelity = { ...result.fidelity, valid: false, reasons: ["loop gap 7 ms"] };
    const { status, stdout } = await weir(["lab", "run", kIncast, "--out", out], async () => ({
      result,
      series: sampleSeries(2, 50),
      flowTable: [],
      complete: true,
    }));
    expect(status).toBe(3);
    expect(stdout).toContain("fidelity: INVALID");
    expect(existsSync(join(out, "report.html"))).toBe(true);
  });

  it("gives status 1 with the hint when the lab fails, and leaves no empty folder", async () => {
    const out = folder();
    const { status, stdout, stderr } = await weir(["lab", "run", kIncast, "--out", out, "--json"], async () => {
      throw new WeirError("cannot open a packet socket", { hint: "run as root" });
    });
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toBe("error: cannot open a packet socket\n  hint: run as root\n");
    expect(existsSync(out)).toBe(false);
  });

  it("gives status 2 before anything runs when the scenario is bad", async () => {
    const neverLab: FakeLab = async () => {
      throw new Error("the lab must not run");
    };
    const out = folder();
    const bad = await weir(["lab", "run", kIncast, "--out", out, "--duration", "5 apples"], neverLab);
    expect(bad).toMatchObject({ status: 2, stdout: "", stderr: expect.stringContaining("duration") });
    expect(await weir(["lab", "run", kIncast, "--capture", "sw"], neverLab)).toMatchObject({ status: 2, stdout: "" });
    expect(existsSync(out)).toBe(false);
  });

  it("passes on the status of the run with more rights, and does nothing itself", async () => {
    const out = folder();
    const ran = await weir(["lab", "run", kIncast, "--out", out], finishedLab, 3);
    expect(ran).toEqual({ status: 3, stdout: "", stderr: "", exits: [] });
    expect(existsSync(out)).toBe(false);
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ])("stops a lab that has no traffic yet on %s and gives status %d", async (name, status) => {
    const out = folder();
    const ran = await weir(["lab", "run", kIncast, "--out", out, "--json"], interrupted(name));
    expect(ran).toMatchObject({ status, stdout: "", exits: [] });
    expect(existsSync(out)).toBe(false);
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ])("keeps what there was until %s, and gives status %d", async (name, status) => {
    const out = folder();
    const stopped: FakeLab = ({ signal }, signals) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => {
          const result = { ...sampleResult(2), until_s: 0.1 };
          result.fidelity = { ...result.fidelity, valid: false, reasons: [(signal.reason as Error).message] };
          resolve({ result, series: sampleSeries(2, 50), flowTable: [], complete: false });
        });
        signals.emit(name, name);
      });
    const ran = await weir(["lab", "run", kIncast, "--out", out, "--json", "--quiet"], stopped);
    expect(ran).toMatchObject({ status, stderr: "", exits: [] });
    const saved = { until_s: 0.1, fidelity: { valid: false, reasons: [`ended by ${name}`] } };
    expect(JSON.parse(ran.stdout)).toMatchObject(saved);
    expect(json(out, "result.json")).toMatchObject(saved);
    expect(readFileSync(join(out, "report.html"), "utf8")).toContain(
      "the first 0.1 s of 0.25 s of scaled time on wire",
    );
  });

  it("ends at once on a second signal", async () => {
    const ran = await weir(["lab", "run", kIncast, "--out", folder()], interrupted("SIGINT", "SIGINT"));
    expect(ran.exits).toEqual([130]);
  });
});

describe("weir report", () => {
  it("renders a saved run again, with series and thresholds from beside it", async () => {
    const out = folder();
    await weir(["lab", "run", kIncast, "--out", out, "--quiet"]);
    const page = join(out, "again.html");
    const { status, stdout } = await weir(["report", join(out, "result.json"), "-o", page]);
    expect({ status, stdout }).toEqual({ status: 0, stdout: `${page}\n` });
    const text = readFileSync(page, "utf8");
    expect(text).toContain('"thresholds":{"sw:r:3":{"kmin":5000,"kmax":200000}}');
    expect(text).toContain('"goodput_bps":[');
  });

  it("refuses what is no result", async () => {
    expect(await weir(["report", kIncast])).toMatchObject({ status: 2, stderr: expect.stringContaining(kIncast) });
    expect(await weir(["report", "nosuch.json"])).toMatchObject({ status: 2 });
  });
});
