/** Trimmed packets on real frames: receivers ask for them, senders send them again, and messages that a switch had no room for complete. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { starText } from "../fixtures/networks.js";
import { describeLive } from "./capability.js";
import { folder, type LabResult, sum, validLabRun } from "./weir.js";

/** Three to one, whom nothing but the loss of room holds back, in a lossy class. The last packets of a message have none behind them. */
const kIncast = `
scale: 400
duration: 16ms
warmup: 0s
topology: ${starText(["a", "b", "c", "r"], { rate: "10Gbps", delay: "1us" })}
switch:
  buffer: { total: 100KB, headroom: 0KB }
  pfc: { enabled: false }
  scheduler: { strict: [6], weights: { 0: 75, 5: 25 } }
  trimming: { enabled: true, priorities: [0] }
transport: { type: rc, recovery: selective-repeat, timeout: 10, trim_naks: true }
congestion: { algorithm: none }
traffic: [{ id: x, from: [a, b, c], to: r, bytes: 1MB, message: 1MB, priority: 0 }]
`;

function expectAsked({ transport = {}, switches, flows }: LabResult): void {
  const heard = sum(flows.map(({ trimmed = 0 }) => trimmed));
  expect(heard).toBeGreaterThan(0);
  expect(sum(Object.values(switches.sw?.trimmed ?? {}))).toBeGreaterThanOrEqual(heard);
  expect(transport.tx_trim_naks).toBeGreaterThan(0);
  expect(transport.tx_trim_naks).toBeLessThanOrEqual(heard);
  expect(transport.rx_trim_naks).toBeGreaterThan(0);
  expect(transport.rx_trim_naks).toBeLessThanOrEqual(transport.tx_trim_naks ?? 0);
  expect(transport.trimmed_requests).toBeGreaterThan(0);
  expect(transport.trimmed_requests).toBeLessThanOrEqual(heard);
}

describeLive("weir lab run of an incast whose packets are trimmed", () => {
  it("asks for each at once, and every message completes", async (context) => {
    const file = join(folder(), "trimming.yaml");
    writeFileSync(file, kIncast);
    const { result } = await validLabRun(context, { file }, expectAsked);
    expect(result.fct?.count).toBe(3);
    expect(result.frames.missing).toBe(0);
  });
});
