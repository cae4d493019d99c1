/** HPCC on real frames: telemetry that the switch writes into packets on the wire keeps its queue short, as it does in virtual time. */
import { expect, it } from "vitest";
import { describeLive } from "./capability.js";
import { expectAcknowledged, kLine, meanQueue, onBothClocks, twoToOne } from "./two_to_one.js";
import type { LabResult } from "./weir.js";

/** An incast without marks, from line rate on. A base round-trip time of 13 us takes 5.2 ms. */
const kIncast = twoToOne(`
switch: { ecn: { enabled: false }, pfc: { priorities: [3] } }
transport: { type: rc, timeout: 6 }
congestion: { algorithm: hpcc }`);

/** Checks what holds for every run: nobody marks, and packets with telemetry are whole. */
function expectTelemetry(result: LabResult): void {
  expectAcknowledged(result);
  expect(result.switches.sw?.ecn_marked).toBe(0);
  expect(result.transport?.rx_telemetry_malformed ?? 0).toBe(0);
}

describeLive("weir lab run under HPCC", () => {
  it("shares a link, and leaves its queue nearly empty", async (context) => {
    const { result, flows, simulated } = await onBothClocks(context, kIncast, expectTelemetry);
    expect(result.congestion_control).toBe("hpcc");
    for (const { rate_bps = [], cwnd_packets = [] } of Object.values(flows)) {
      // Both move: senders have read what switches wrote.
      for (const values of [rate_bps, cwnd_packets]) expect(new Set(values.slice(1, -1)).size).toBeGreaterThan(3);
      expect(Math.max(0, ...rate_bps)).toBeLessThanOrEqual(kLine);
    }
    // Without telemetry both would stay at line rate, and PFC alone would hold megabytes.
    expect(meanQueue(simulated)).toBeLessThan(3_000);
    expect(meanQueue(result)).toBeLessThan(2 * meanQueue(simulated) + 20_000);
  });
});
