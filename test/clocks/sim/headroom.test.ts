/** Headroom that each link needs, against one size for all, at 400 Gb/s. */
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import { parseScenarioText } from "../../../src/scenario/scenario.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";

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

describe("a bottleneck of another rate and length than the hosts' links", () => {
  /** Eight hosts fill a link of 400 Gb/s and 5 us to a switch whose host has 100 Gb/s: that link's peer is paused, and then they are. */
  async function lost(buffer: string) {
    const { scenario } = parseScenarioText(`
name: funnel
duration: 400us
topology:
  kind: dumbbell
  senders: 8
  receivers: 1
  link: { rate: 100Gbps, delay: 500ns }
  bottleneck: { rate: 400Gbps, delay: 5us }
switch: { buffer: { ${buffer} } }
congestion: { algorithm: none }
traffic: [{ from: [s1, s2, s3, s4, s5, s6, s7, s8], to: r1 }]
`);
    const { result } = await runSimulation(scenario, { signal: new AbortController().signal });
    for (const name of ["left", "right"]) expect(result.switches[name]?.pfc_sent["3"] ?? 0).toBeGreaterThan(0);
    return result.frames?.dropped;
  }

  it("has headroom of its own with auto, at its end alone", async () => {
    expect(await lost("headroom: auto, total: 10MB")).toBe(0);
    // The need of the hosts' links is too little for it.
    expect(await lost("headroom: 43KB, total: 10MB")).toBeGreaterThan(1000);
  });
});
