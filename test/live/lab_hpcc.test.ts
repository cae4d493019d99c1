/** HPCC on real frames: telemetry that the switch writes into packets on the wire keeps its queue short, as it does in virtual time. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readRun } from "../../src/result/run_files.js";
import { describeLive } from "./capability.js";
import { folder, type LabResult, start, sum, validLabRun } from "./weir.js";

const kLine = 10e9;
/** Two to one, without marks, from line rate on. A base round-trip time of 13 us takes 5.2 ms. */
const kIncast = `
scale: 400
duration: 16ms
warmup: 8ms
topology:
  link: { rate: 10Gbps, delay: 1us }
  hosts: [a, b, c]
  switches: [sw]
  links: [a -- sw, b -- sw, c -- sw]
switch: { ecn: { enabled: false }, pfc: { priorities: [3] } }
transport: { type: rc, timeout: 6 }
congestion: { algorithm: hpcc }
probes: { interval: 200us }
traffic: [{ id: x, from: [a, b], to: c }]
`;

/** What holds for every run: nobody marks or tells, packets with telemetry are whole, and each has its acknowledgement. */
function expectTelemetry(result: LabResult): void {
  expect(sum(Object.values(result.nics).map((nic) => nic.np_cnp_sent + nic.rp_cnp_handled))).toBe(0);
  expect(result.switches.sw?.ecn_marked).toBe(0);
  expect(result.transport?.rx_telemetry_malformed ?? 0).toBe(0);
  const received = sum(result.flows.map(({ received: packets = 0 }) => packets));
  expect(received).toBeGreaterThan(100);
  expect(result.transport?.tx_acks).toBeGreaterThan(0.9 * received);
}

describeLive("weir lab run under HPCC", () => {
  it("shares a link, and leaves its queue nearly empty", async (context) => {
    const file = join(folder(), "hpcc.yaml");
    writeFileSync(file, kIncast);
    const { result, path } = await validLabRun(context, { file }, expectTelemetry);
    expect(result.congestion_control).toBe("hpcc");
    expect(result.totals.jain).toBeGreaterThan(0.9);
    expect(result.totals.goodput_bps).toBeGreaterThan(0.5 * kLine);
    expect(result.frames.dropped).toBe(0);
    const { series } = readRun(join(path, "out/result.json"));
    for (const { rate_bps = [], cwnd_packets = [] } of Object.values(series.flows)) {
      // Both move: senders have read what switches wrote.
      for (const values of [rate_bps, cwnd_packets]) expect(new Set(values.slice(1, -1)).size).toBeGreaterThan(3);
      expect(Math.max(0, ...rate_bps)).toBeLessThanOrEqual(kLine);
    }
    const sim = join(path, "sim");
    const simulation = await start(["sim", "run", file, "--quiet", "--json", "--out", sim], [], true);
    expect((await simulation.finished).status).toBe(0);
    const { result: simulated } = readRun(join(sim, "result.json"));
    const mean = (of: typeof simulated) => of.switches.sw?.queues.c?.["3"]?.mean ?? Number.NaN;
    // Without telemetry both would stay at line rate, and PFC alone would hold megabytes.
    expect(mean(simulated)).toBeLessThan(3_000);
    expect(mean(result)).toBeLessThan(2 * mean(simulated) + 20_000);
  });
});
