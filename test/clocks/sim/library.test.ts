/** Congestion controls of shared libraries in virtual time: on any number of threads, and what becomes of those that are wrong. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import { parseScenario } from "../../../src/scenario/scenario.js";
import { kWeir } from "../../command.js";
import { builtLibrary, kAimd, kTold } from "../../congestion_libraries.js";
import { lacking } from "../../needs.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";

skipWhere(nativeObstacle() ?? lacking("build-essential"));

const folder = mkdtempSync(join(tmpdir(), "weir-library-"));
afterAll(() => rmSync(folder, { recursive: true }));
const library = (source: string, parameters = {}) => ({
  algorithm: "library",
  library: { file: builtLibrary(source, folder), parameters },
});

const incast = (congestion: object, more = {}) => ({
  name: "mine",
  duration: "10ms",
  warmup: "2ms",
  topology: { kind: "star", hosts: 4, link: { rate: "10Gbps", delay: "2us" } },
  congestion,
  traffic: [{ pattern: "incast", from: ["h1", "h2", "h3"], to: "h4" }],
  ...more,
});
const run = (congestion: object, more = {}, threads = 1) =>
  runSimulation(parseScenario(incast(congestion, more)).scenario, { signal: new AbortController().signal, threads });

describe("a congestion control of a library", () => {
  it("slows flows that meet congestion, and fills the link", async () => {
    const { result, series } = await run(library(kAimd));
    expect(result).toMatchObject({ congestion_control: "library", fidelity: { valid: true } });
    expect(result.totals.feedback_per_s).toBeGreaterThan(0);
    expect(result.totals.jain).toBeGreaterThan(0.9);
    expect(result.totals.goodput_bps).toBeGreaterThan(0.5 * (result.totals.goodput_limit_bps as number));
    for (const { rate_bps } of Object.values(series.flows)) expect(Math.min(...(rate_bps ?? []))).toBeLessThan(9e9);
    // Another cut, another run: parameters arrive.
    const gentle = await run(library(kAimd, { decrease: 0.95 }));
    expect(gentle.result.totals.feedback_per_s).toBeGreaterThan(result.totals.feedback_per_s as number);
  });

  it("gives the same result with any number of threads", async () => {
    const of = async (threads: number) => {
      const { result, series } = await run(library(kAimd), { transport: { type: "rc" } }, threads);
      return JSON.stringify({ totals: result.totals, flows: result.flows, series });
    };
    expect(await of(3)).toBe(await of(1));
  });

  it("holds a window on reliable connections", async () => {
    const { result } = await run(library(kTold, { window: 4 }), { transport: { type: "rc" } });
    // 4 packets of three hosts wait at most.
    expect(result.switches.sw?.queues.h4?.["3"]?.max ?? Number.NaN).toBeLessThan(13 * 1_100);
    expect(result.totals.goodput_bps).toBeGreaterThan(1e9);
  });

  it("changes nothing by an answer that is none, which is counted", async () => {
    const { result } = await run(library(kTold, { rate: -2 }));
    expect(result.nics.h1?.cc_refused_answers).toBeGreaterThan(0);
    expect(result.nics.h4?.cc_refused_answers).toBe(0);
  });

  it.each([
    ["no file", { algorithm: "library", library: { file: "/nowhere/mine.so" } }, "/nowhere/mine.so"],
    ["a parameter that it does not have", { speed: 1 }, "has no parameter speed"],
    ["a value out of range", { crash: 7 }, "is out of range"],
  ])("is refused with %s", async (_, wrong, message) => {
    await expect(run("algorithm" in wrong ? wrong : library(kTold, wrong))).rejects.toThrow(message);
  });

  it.each([
    [1, "SIGSEGV", "has crashed (SIGSEGV), and this process with it"],
    [2, "SIGABRT", "has crashed (SIGABRT), and this process with it"],
    [3, "SIGABRT", "has not come back for seconds, and this process ends with it"],
    [4, null, "has ended this process"],
  ])("is named when it crashes, does not come back, or exits: %s", (crash, signal, what) => {
    const file = join(folder, "crash.json");
    writeFileSync(file, JSON.stringify(incast(library(kTold, { crash }))));
    const [node = "", main = ""] = kWeir;
    const ended = spawnSync(node, [main, "sim", "run", file, "--out", join(folder, "out")], { encoding: "utf8" });
    expect(ended.signal).toBe(signal);
    expect(ended.status).toBe(signal === null ? 1 : null);
    expect(ended.stderr).toBe(`error: the congestion control told of ${folder}/told.so ${what}\n`);
  });
});
