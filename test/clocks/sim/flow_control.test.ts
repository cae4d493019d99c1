/** Effects of 802.3x, packet trimming and a NIC's limit of CNPs on an incast. */
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import { renderTable } from "../../../src/result/report/table.js";
import type { Result } from "../../../src/result/result.js";
import { loadScenario } from "../../../src/scenario/scenario.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";

skipWhere(nativeObstacle());

async function run(...set: string[]): Promise<Result> {
  const short = ["duration=20ms", "warmup=2ms", "topology.link.impairment.jitter=200ns"];
  const { scenario } = loadScenario("examples/incast-4to1.yaml", { set: [...short, ...set] });
  const { result } = await runSimulation(scenario, { signal: new AbortController().signal });
  expect(result.fidelity).toMatchObject({ valid: true, reasons: [] });
  expect(result.frames).toMatchObject({ missing: 0 });
  return result;
}
const kGreedy = "congestion.algorithm=none";
const kLossy = "switch.pfc.enabled=false";

describe("802.3x in place of PFC", () => {
  it("loses nothing, where without both the buffer overflows", async () => {
    const [paused, lossy] = [await run(kGreedy, kLossy, "switch.pfc.link_pause=true"), await run(kGreedy, kLossy)];
    expect(paused.switches.sw?.drops).toEqual({});
    expect(Object.keys(paused.switches.sw?.pfc_sent ?? {})).toHaveLength(8);
    expect(paused.totals.goodput_bps).toBeGreaterThan(0.99 * (paused.totals.goodput_limit_bps ?? 0));
    expect(Object.keys(lossy.switches.sw?.drops ?? {})).not.toEqual([]);
  });
});

describe("packet trimming", () => {
  it("tells the receivers of every packet that would have been lost", async () => {
    const result = await run(
      ...[kGreedy, kLossy, "switch.trimming={enabled: true, priorities: [3]}", "switch.scheduler.strict=[5,6]"],
    );
    const { sw } = result.switches;
    expect(sw?.drops).toEqual({});
    expect(sw?.trimmed_dropped).toBeUndefined();
    const trimmed = result.flows.reduce((sum, flow) => sum + (flow.trimmed ?? 0), 0);
    expect(trimmed).toBeGreaterThan(1000);
    expect(sw?.trimmed?.["3"]).toBeGreaterThanOrEqual(trimmed);
    // Strict priority: hardly one of them is still on its way.
    for (const { lost, trimmed: heard = 0 } of result.flows) expect(Math.abs(lost - heard)).toBeLessThan(20);
    expect(renderTable(result)).toMatch(/trimmed prio:n/);
  });
});

describe("a NIC's limit of CNPs", () => {
  it("withholds what its flows would be owed beyond it", async () => {
    const [free, limited] = [await run(), await run("host.cnp.nic_interval=1ms")];
    const cnps = ({ nics }: Result) => nics.r?.np_cnp_sent ?? 0;
    expect(cnps(limited)).toBeLessThanOrEqual(20 + 1);
    expect(cnps(free)).toBeGreaterThan(1.5 * cnps(limited));
    expect(free.nics.r).not.toHaveProperty("np_cnp_withheld");
  });
});
