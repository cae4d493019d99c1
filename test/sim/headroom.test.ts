/** Headroom that each link needs, against one size for all, at 400 Gb/s. */
import { describe, expect, it } from "vitest";
import { parseScenarioText } from "../../src/scenario/scenario.js";
import { runSimulation } from "../../src/sim/run.js";
import { nativeObstacle, skipWhere } from "../obstacles.js";

skipWhere(nativeObstacle());

/** 16 hosts send 400 Gb/s to one that a cable of 200 m leads to; without congestion control, so that PFC alone is there. */
async function incast(headroom: string) {
  const { scenario, warnings } = parseScenarioText(`
name: incast
duration: 300us
topology: { kind: star, hosts: 17, link: { rate: 400Gbps, delay: 1us } }
switch: { buffer: { headroom: ${headroom}, total: 64MB } }
congestion: { algorithm: none }
traffic: [{ pattern: incast, to: h17, degree: 16 }]
`);
  const { result } = await runSimulation(scenario, { signal: new AbortController().signal });
  return { result, warnings };
}

describe("an incast at 400 Gb/s", () => {
  it("loses packets with the default headroom, of which the scenario warns", async () => {
    const { result, warnings } = await incast("22.4KB");
    expect(warnings.join()).toMatch(
      /headroom 22\.4 KB is less than the 104\.65 KB .*and 16 ports alike.*headroom: auto/,
    );
    expect(result.switches.sw?.drops.headroom_full).toBeGreaterThan(1000);
  });

  it("loses none with headroom: auto", async () => {
    const { result, warnings } = await incast("auto");
    expect(warnings).toEqual([]);
    expect(result.frames).toMatchObject({ missing: 0 });
    expect(Object.values(result.switches.sw?.drops ?? {}).reduce((sum, n) => sum + n, 0)).toBe(0);
    expect(Object.values(result.switches.sw?.pfc_sent ?? {}).reduce((sum, n) => sum + n, 0)).toBeGreaterThan(100);
  });
});
