/** One switch with as many ports as the largest that are sold. */
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import { parseScenarioText } from "../../../src/scenario/scenario.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";

skipWhere(nativeObstacle());

/** Runs `traffic` among 514 hosts, of which no frame may be lost. */
async function among514(forwarding: string, traffic: string) {
  const { scenario } = parseScenarioText(`
name: many
duration: 2ms
warmup: 0us
topology: { kind: star, hosts: 514, link: { rate: 100Gbps, delay: 100ns } }
switch: { forwarding: ${forwarding}, buffer: { headroom: auto, total: 400MB } }
transport: { type: rc }
traffic: ${traffic}
`);
  const { result } = await runSimulation(scenario, { signal: new AbortController().signal });
  expect(result.frames).toMatchObject({ dropped: 0, missing: 0 });
  return result;
}

describe("a switch with 514 ports", () => {
  it.each(["static", "routed"])("brings all that everybody sends to where it belongs, %s", async (forwarding) => {
    const { fct, switches } = await among514(
      forwarding,
      "[{ pattern: permutation, bytes: 50KB }, { pattern: incast, degree: 513, to: h514, bytes: 4KB }]",
    );
    expect(fct).toMatchObject({ count: 514 + 513, incomplete: 0 });
    expect(switches.sw?.ecn_marked).toBeGreaterThan(100);
  });

  it("learns what is behind each", async () => {
    const { fct, frames } = await among514("learning", "[{ from: [h2, h257, h400, h513], to: h514, bytes: 50KB }]");
    expect(fct).toMatchObject({ count: 4, incomplete: 0 });
    // Frames to an unknown address go to all others; once h514 has answered none do.
    expect(frames?.duplicated).toBeGreaterThan(4 * 511);
  });
});
