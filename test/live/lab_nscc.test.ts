/** NSCC and REPS on real frames: packets of one flow come by several ways, and marks hold the windows. */
import { expect, it } from "vitest";
import { describeLive } from "./capability.js";
import { expectAcknowledged, onBothClocks, twoToOne } from "./two_to_one.js";

/** An incast over two spines, from line rate on. A base round-trip time of 16 us takes 6.4 ms. */
const kIncast = twoToOne(
  `
switch: { ecn: { kmin: 5KB, kmax: 20KB, pmax: 100% }, pfc: { priorities: [3] } }
transport: { type: rc, timeout: 6, recovery: selective-repeat, reordering: 250, spraying: reps }
congestion: { algorithm: nscc, parameters: { nscc_base_rtt: 16us } }`,
  `switches: [left, right, up, down]
  links: [a -- left, b -- left, c -- right, left -- up, left -- down, up -- right, down -- right]`,
);

describeLive("weir lab run under NSCC with REPS", () => {
  it("shares a link, half of it by each way in virtual time", async (context) => {
    const { result, flows, simulated } = await onBothClocks(context, kIncast, expectAcknowledged);
    expect(result.congestion_control).toBe("nscc");
    expect(result.switches.right?.ecn_marked).toBeGreaterThan(0);
    for (const { cwnd_packets = [] } of Object.values(flows)) {
      expect(new Set(cwnd_packets.slice(1, -1)).size).toBeGreaterThan(3);
    }
    // Results of labs do not count packets by link.
    const by = (spine: string) =>
      simulated.links?.find(({ from, to }) => from === spine && to === "right")?.packets ?? 0;
    const part = by("up") / (by("up") + by("down"));
    // These are some hundred packets, each by one of two ways at random or by one that was free.
    expect(part).toBeGreaterThan(0.3);
    expect(part).toBeLessThan(0.7);
  });
});
