/** DCTCP in virtual time: the queue at its threshold, windows in the series, and no trace of DCQCN. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { writeSeries } from "../../../src/clocks/series_files.js";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import type { SimulationAddon } from "../../../src/native/simulation_types.js";
import type { Scenario } from "../../../src/scenario/types.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";
import { incast } from "./scenarios.js";
import { sliced } from "./sliced.js";

skipWhere(nativeObstacle());

const kDctcp = {
  congestion: { algorithm: "dctcp" },
  transport: { type: "rc" },
  switch: { ecn: { kmin: "100KB", kmax: "100KB", pmax: 1 } },
};
const run = (scenario: Scenario, addon?: SimulationAddon) =>
  runSimulation(scenario, { signal: new AbortController().signal }, addon);

describe("flows under DCTCP", () => {
  it("fill the link and hold the queue below K and a packet of each", async () => {
    const { result, series } = await run(incast({ ...kDctcp, duration: "20ms", warmup: "5ms" }));
    expect(result).toMatchObject({ congestion_control: "dctcp", profile: "dctcp", fidelity: { valid: true } });
    expect(result.totals.goodput_bps).toBeGreaterThan(0.999 * (result.totals.goodput_limit_bps as number));
    expect(result.totals.feedback_per_s).toBeUndefined();
    const queue = result.switches.sw?.queues.c?.["3"];
    expect(queue?.max).toBeGreaterThan(100_000);
    expect(queue?.max).toBeLessThan(110_000);
    expect(queue?.p50).toBeGreaterThan(80_000);
    for (const { alpha, cwnd_packets, rate_bps, goodput_bps } of Object.values(series.flows)) {
      expect(rate_bps).toBeUndefined();
      expect(goodput_bps).toHaveLength(series.time_s.length);
      expect(Math.min(...(cwnd_packets?.slice(1, -1) ?? []))).toBeGreaterThanOrEqual(2);
      expect(Math.min(...(alpha?.slice(20, -1) ?? []))).toBeGreaterThan(0);
    }
  });

  it("have windows in the files of their series", async () => {
    const { series } = await run(incast({ ...kDctcp, duration: "1ms" }));
    const folder = mkdtempSync(join(tmpdir(), "weir-dctcp-"));
    writeSeries(folder, series, "csv");
    const lines = readFileSync(join(folder, "flows.csv"), "utf8").split("\n");
    rmSync(folder, { recursive: true });
    expect(lines[0]).toBe("time_s,flow,cwnd_packets,alpha,goodput_bps");
    expect(lines[2]).toMatch(/^0.0001,x\/a,\d+,0\.\d+,\d+$/);
  });

  it("are the same however the run is sliced", async () => {
    const scenario = incast({ ...kDctcp, duration: "3ms", warmup: "1ms" });
    const text = async (addon?: SimulationAddon) => {
      const { result, series } = await run(scenario, addon);
      return JSON.stringify({ result, series });
    };
    expect(await text(sliced(501))).toBe(await text());
  });
});
