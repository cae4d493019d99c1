/** Pauses without end: a NIC's, and those of switches that wait for each other. */
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import { checkPlan } from "../../../src/models/buffers/check.js";
import { renderTable } from "../../../src/result/report/table.js";
import type { Result } from "../../../src/result/result.js";
import { loadScenario } from "../../../src/scenario/scenario.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";

skipWhere(nativeObstacle());

async function run(example: string, ...set: string[]): Promise<Result> {
  const { scenario } = loadScenario(`examples/${example}.yaml`, { set });
  const { result } = await runSimulation(scenario, { signal: new AbortController().signal });
  expect(result.fidelity).toMatchObject({ valid: true, reasons: [] });
  expect(result.frames).toMatchObject({ missing: 0 });
  return result;
}
const goodput = (result: Result, id: string) => result.flows.find((flow) => flow.id === id)?.goodput_bps ?? 0;

describe("a NIC that pauses without end", () => {
  it("stops flows that have nothing to do with it", async () => {
    const result = await run("pfc-storm", "switch.pfc_watchdog.enabled=false");
    expect(goodput(result, "good")).toBeLessThan(2e9);
    expect(Object.values(result.switches).map(({ drops }) => drops)).toEqual([{}, {}, {}]);
  });

  it("is found at its own switch alone, which drops what is for it", async () => {
    const result = await run("pfc-storm");
    expect(goodput(result, "good")).toBeGreaterThan(3e9);
    const { leaf1, leaf2, spine } = result.switches;
    expect([leaf1?.drops, spine?.drops]).toEqual([{}, {}]);
    expect(Object.keys(leaf2?.drops ?? {})).toEqual(["pfc_watchdog"]);
    expect([leaf1?.pfc_storms, spine?.pfc_storms, leaf2?.pfc_storms]).toEqual([undefined, undefined, { "3": 1 }]);
    expect(renderTable(result)).toMatch(/PFC storms prio:n/);
  });

  it("loses nothing where its pauses are ignored; only counted it is as without", async () => {
    const ignored = await run("pfc-storm", "switch.pfc_watchdog.action=forward");
    expect(goodput(ignored, "bad")).toBeGreaterThan(3e9);
    expect(Object.values(ignored.switches).map(({ drops }) => drops)).toEqual([{}, {}, {}]);
    const counted = await run("pfc-storm", "switch.pfc_watchdog.action=alert");
    expect(goodput(counted, "good")).toBeLessThan(2e9);
    expect(counted.switches.leaf2?.pfc_storms).toEqual({ "3": 1 });
  });
});

describe.each([
  ["deadlock-ring", "s1", 3],
  ["deadlock-leaf-spine", "leaf3", 4],
])("switches that wait for each other in a circle: %s", (example, one, links) => {
  const received = ({ flows }: Result) => flows.reduce((sum, flow) => sum + flow.goodput_bps, 0);

  it("stand still for good, as the planner says that they can; with the watchdog they go on, at the cost of frames", async () => {
    const { cycles, deadlock_free } = checkPlan(loadScenario(`examples/${example}.yaml`).scenario);
    expect(deadlock_free).toBe(false);
    expect(cycles.map(({ switches }) => switches.length)).toEqual([links]);
    const [still, watched] = [await run(example), await run(example, "switch.pfc_watchdog.enabled=true")];
    expect(received(still)).toBeLessThan(0.01 * 10e9 * still.flows.length);
    expect(received(watched)).toBeGreaterThan(5 * received(still));
    expect(Object.keys(watched.switches[one]?.drops ?? {})).toEqual(["pfc_watchdog"]);
  });

  it("do not come to that where congestion control keeps queues short", async () => {
    const result = await run(example, "congestion.algorithm=dcqcn");
    expect(received(result)).toBeGreaterThan(0.35 * 10e9 * result.flows.length);
  });
});

describe("a fat tree that loses two links of a pod", () => {
  it("stands still as a whole, as the planner says of the routes that follow; with the watchdog it goes on", async () => {
    const example = "deadlock-fat-tree";
    const { cycles, findings } = checkPlan(loadScenario(`examples/${example}.yaml`).scenario);
    expect(cycles.map(({ without }) => without)).toEqual(cycles.map(() => ["e1_1 -- a1_1", "e1_2 -- a1_2"]));
    expect(cycles.length).toBeGreaterThan(0);
    expect(findings.map(({ message }) => message)).toEqual(
      expect.arrayContaining([expect.stringMatching(/without e1_1 -- a1_1, e1_2 -- a1_2: \w+ -> /)]),
    );
    expect(checkPlan(loadScenario(`examples/${example}.yaml`, { set: ["failures=[]"] }).scenario).cycles).toEqual([]);
    const failing = async (...set: string[]) => {
      const { scenario } = loadScenario(`examples/${example}.yaml`, { set });
      return (await runSimulation(scenario, { signal: new AbortController().signal })).result.totals.goodput_bps;
    };
    expect(await failing()).toBe(0);
    expect(await failing("switch.pfc_watchdog.enabled=true")).toBeGreaterThan(10e9);
    expect(await failing("failures=[]")).toBeGreaterThan(40e9);
  });
});
