/** Scenarios with faults and failures, on real frames: made as they are in virtual time, and all frames accounted for. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Result } from "../../src/result/result.js";
import { describeLive } from "./capability.js";
import { folder, start } from "./weir.js";

async function ran(text: string, verb: "lab" | "sim"): Promise<Result> {
  const file = join(folder(), "scenario.yaml");
  writeFileSync(file, text);
  const command = [verb, "run", file, "--quiet", "--json", "--out", join(folder(), "out")];
  const { status, stdout, stderr } = await (await start(command, [], true)).finished;
  // 3: this host was the bottleneck, which changes nothing here.
  expect([0, 3], stderr).toContain(status);
  return JSON.parse(stdout) as Result;
}

const kScenario = `
duration: 6ms
warmup: 1ms
scale: 200
transport: { type: rc, recovery: selective-repeat, timeout: 9 }
congestion: { algorithm: none }
`;

describeLive("faults of a scenario", () => {
  it("are made on the wire as in virtual time, and told of", async () => {
    const text = `${kScenario}
topology: { kind: star, hosts: 2, link: { rate: 10Gbps } }
traffic: [{ from: h1, to: h2, rate: 2Gbps }]
faults:
  - { at: 1ms, device: h2, kind: drop, opcode: [write], every: 3, count: 5 }
  - { at: 2ms, device: sw, port: h2, kind: nak, code: sequence, count: 2 }
  - { at: 3ms, device: h1, kind: down, for: 500us }
  - { at: 3ms, device: h1, kind: drop, opcode: [cnp] }
  - { at: 4ms, device: h1, direction: out, kind: drop, opcode: [write], every: 3, count: 5 }
  - { at: 4ms, device: sw, port: h1, kind: pause, for: 200us }
  - { at: 5ms, device: h2, kind: slow, rate: 500Mbps, for: 500us }
`;
    const wire = await ran(text, "lab");
    const sim = await ran(text, "sim");
    for (const { faults, events, frames } of [wire, sim]) {
      expect(faults?.slice(0, -1).map(({ kind, hits }) => [kind, hits])).toEqual([
        ["drop", 5],
        ["nak", 2],
        ["down", 1],
        ["drop", 0],
        ["drop", 5],
        ["pause", 1],
      ]);
      expect(faults?.at(-1)?.hits).toBeGreaterThan(5);
      expect(frames?.missing).toBe(0);
      expect(frames?.impaired).toBeGreaterThanOrEqual(5);
      expect(events?.map(({ what }) => what)).toContain("link h1 -- sw is up again");
    }
    expect(wire.events).toEqual(sim.events);
  });

  it("come beside links that fail, around which routes lead on the wire, too", async () => {
    const text = `${kScenario}
topology: { kind: leaf-spine, leaves: 2, spines: 2, hosts: 1, link: { rate: 10Gbps } }
traffic: [{ from: h1-1, to: h2-1, rate: 1Gbps }]
failures:
  - { switch: spine1, at: 2ms, reroute: 500us }
  - { switch: spine2, at: 1ms, until: 1500us, reroute: 200us }
`;
    const { events, frames, flows, links: _, ...rest } = await ran(text, "lab");
    expect(events?.map(({ what }) => what)).toEqual([
      "switch spine2 fails",
      "routes without switch spine2",
      "switch spine2 is there again",
      "routes with switch spine2",
      "switch spine1 fails",
      "routes without switch spine1",
    ]);
    expect(frames?.missing).toBe(0);
    // After the second failure there is one way left, and it is taken: most of the traffic arrives.
    expect(flows[0]?.received).toBeGreaterThan(200);
    expect(rest.switches.spine2?.drops).toBeDefined();
  });
});
