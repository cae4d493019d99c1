/** A transport that acts on trimmed packets: what becomes of the tail of an incast in a lossy class. */
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import type { Result } from "../../../src/result/result.js";
import { loadScenario } from "../../../src/scenario/scenario.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";

skipWhere(nativeObstacle());

async function run(...set: string[]): Promise<Result> {
  const { scenario } = loadScenario("examples/trimming-rc.yaml", { set });
  const { result } = await runSimulation(scenario, { signal: new AbortController().signal });
  expect(result.fidelity).toMatchObject({ valid: true, reasons: [] });
  expect(result.frames).toMatchObject({ missing: 0, impaired: 0 });
  return result;
}
const kDropped = "switch.trimming.enabled=false";
const kUnheard = "transport.trim_naks=false";
const kRead = "traffic.0.operation=read";
const tail = ({ fct }: Result) => fct?.fct_us.p99 ?? Number.NaN;
const count = ({ transport = {} }: Result, name: string) => transport[name] ?? 0;

describe("trimmed packets that are asked for", () => {
  it("spare an incast the timeouts that the same packets cost it when they are dropped, or when nobody acts on them", async () => {
    const [asked, unheard, dropped] = [await run(), await run(kUnheard), await run(kDropped)];
    const trimmed = Object.values(asked.switches.sw?.trimmed ?? {}).reduce((sum, n) => sum + n, 0);
    expect(trimmed).toBeGreaterThan(500);
    expect(asked.fct).toMatchObject({ count: 16 * 40, incomplete: 0 });
    for (const other of [unheard, dropped]) {
      expect(count(other, "local_ack_timeout_err")).toBeGreaterThan(0);
      expect(tail(asked)).toBeLessThan(tail(other) / 2);
    }
    expect(count(asked, "local_ack_timeout_err")).toBe(0);
    expect(count(asked, "rx_trim_naks")).toBe(count(asked, "tx_trim_naks"));
  });

  it("spare READs the same, which ask for them by themselves", async () => {
    const [asked, unheard] = [await run(kRead), await run(kRead, kUnheard)];
    expect(asked.fct).toMatchObject({ count: 16 * 40, incomplete: 0 });
    expect(count(asked, "trimmed_responses")).toBeGreaterThan(500);
    expect(count(asked, "tx_trim_naks")).toBe(0);
    expect(count(asked, "local_ack_timeout_err")).toBe(0);
    expect(count(unheard, "local_ack_timeout_err")).toBeGreaterThan(0);
    expect(tail(asked)).toBeLessThan(tail(unheard) / 2);
  });

  it.each(["dctcp", "swift", "hpcc", "timely"])("let all messages complete under %s", async (algorithm) => {
    const result = await run(`congestion.algorithm=${algorithm}`);
    expect(count(result, "trimmed_requests")).toBeGreaterThan(0);
    expect(result.fct?.count).toBe(16 * 40);
  });

  it("give the same result with any number of threads", async () => {
    const { scenario } = loadScenario("examples/trimming-rc.yaml", { set: ["duration=3ms"] });
    const of = async (threads: number) => {
      const { result } = await runSimulation(scenario, { signal: new AbortController().signal, threads });
      return JSON.stringify([result.totals, result.flows, result.transport]);
    };
    expect(await of(3)).toBe(await of(1));
  });
});
