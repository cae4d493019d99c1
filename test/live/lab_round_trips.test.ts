/** TIMELY and Swift on real frames: rates and windows that follow round-trip times of the kernel's stamps, and how far from virtual time that is. */
import { expect, it } from "vitest";
import { describeLive } from "./capability.js";
import { expectAcknowledged, kLine, meanQueue, onBothClocks, twoToOne } from "./two_to_one.js";
import type { LabResult } from "./weir.js";

/** An incast without marks. A round-trip time of 50 us takes 20 ms. */
const kIncast = twoToOne(`
switch: { ecn: { enabled: false }, pfc: { priorities: [3] } }
host: { line_rate_start: false, initial_rate: 5Gbps }
transport: { type: rc, timeout: 6 }`);

/** Checks what holds for every run: nobody marks. */
function expectUnmarked(result: LabResult): void {
  expectAcknowledged(result);
  expect(result.switches.sw?.ecn_marked).toBe(0);
}

describeLive("weir lab run under congestion control by round-trip times", () => {
  it.for([
    ["timely", "congestion={ algorithm: timely, variant: timely-patched }"],
    ["swift", "congestion={ algorithm: swift }"],
  ] as const)(
    "%s shares a link, and has the queue of virtual time as far as this host allows",
    async ([name, set], context) => {
      const { result, flows, simulated } = await onBothClocks(context, kIncast, expectUnmarked, set);
      expect(result.congestion_control).toBe(name);
      for (const { rate_bps = [], cwnd_packets = [] } of Object.values(flows)) {
        // One of the two, and it moves: round-trip times are heard of.
        const moves = new Set([...rate_bps, ...cwnd_packets].slice(1, -1));
        expect(moves.size).toBeGreaterThan(3);
        expect(Math.max(0, ...rate_bps)).toBeLessThanOrEqual(kLine);
      }
      // The host adds to round-trip times without a queue at the switch, so the queue may be shorter.
      expect(meanQueue(result)).toBeLessThan(2 * meanQueue(simulated) + 20_000);
    },
  );
});
