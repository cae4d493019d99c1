import { expect, it } from "vitest";
import type { LabAccess } from "../../../src/clocks/lab/access.js";
import { LiveStates } from "../../../src/clocks/lab/live_state.js";
import { counterTable, smallScenario } from "./evidence.js";

it("tells rates until the end of traffic, not those of the network that runs empty behind it", () => {
  const scenario = smallScenario();
  const count = Math.floor(scenario.duration / scenario.probes.interval) + 1;
  const samples = (value: number) => [...Array<number>(count).fill(value), 0, 0];
  const flow = { rate: samples(5e9), target: samples(6e9), alpha: samples(0.5), bytes: [], wireBytes: [], cnps: [] };
  const counters = counterTable([]);
  const side = { counters, worker: { worstGap: () => 0 } };
  const lab = {
    ...{ scenario, scale: 1, switches: side, nics: side, now: () => scenario.duration },
    recorder: { flows: new Map(scenario.flows.map(({ id }) => [id, flow])), queues: new Map() },
  } as unknown as LabAccess;
  const [first] = new LiveStates({ update: () => {} }).state(lab).flows;
  expect(first).toMatchObject({ rate_bps: 5e9, target_rate_bps: 6e9, alpha: 0.5 });
});
