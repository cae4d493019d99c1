/** NSCC and REPS on real frames: packets of one flow come by several ways, and marks hold the windows. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readRun } from "../../src/result/run_files.js";
import { describeLive } from "./capability.js";
import { folder, type LabResult, start, sum, validLabRun } from "./weir.js";

const kLine = 10e9;
/** Two to one over two spines, from line rate on. A base round-trip time of 16 us takes 6.4 ms. */
const kIncast = `
scale: 400
duration: 16ms
warmup: 8ms
topology:
  link: { rate: 10Gbps, delay: 1us }
  hosts: [a, b, c]
  switches: [left, right, up, down]
  links: [a -- left, b -- left, c -- right, left -- up, left -- down, up -- right, down -- right]
switch: { ecn: { kmin: 5KB, kmax: 20KB, pmax: 100% }, pfc: { priorities: [3] } }
transport: { type: rc, timeout: 6, recovery: selective-repeat, reordering: 250, spraying: reps }
congestion: { algorithm: nscc, parameters: { nscc_base_rtt: 16us } }
probes: { interval: 200us }
traffic: [{ id: x, from: [a, b], to: c }]
`;

/** What holds for every run: nobody is told but by acknowledgements, of which each packet has one. */
function expectAcknowledged(result: LabResult): void {
  expect(sum(Object.values(result.nics).map((nic) => nic.np_cnp_sent + nic.rp_cnp_handled))).toBe(0);
  const received = sum(result.flows.map(({ received: packets = 0 }) => packets));
  expect(received).toBeGreaterThan(100);
  expect((result.transport?.tx_acks ?? 0) + (result.transport?.tx_naks ?? 0)).toBeGreaterThan(0.9 * received);
}

describeLive("weir lab run under NSCC with REPS", () => {
  it("shares a link, half of it by each way in virtual time", async (context) => {
    const file = join(folder(), "nscc.yaml");
    writeFileSync(file, kIncast);
    const { result, path } = await validLabRun(context, { file }, expectAcknowledged);
    expect(result.congestion_control).toBe("nscc");
    expect(result.totals.jain).toBeGreaterThan(0.9);
    expect(result.totals.goodput_bps).toBeGreaterThan(0.5 * kLine);
    expect(result.frames.dropped).toBe(0);
    expect(result.switches.right?.ecn_marked).toBeGreaterThan(0);
    const { series } = readRun(join(path, "out/result.json"));
    for (const { cwnd_packets = [] } of Object.values(series.flows)) {
      expect(new Set(cwnd_packets.slice(1, -1)).size).toBeGreaterThan(3);
    }
    const sim = join(path, "sim");
    const simulation = await start(["sim", "run", file, "--quiet", "--json", "--out", sim], [], true);
    expect((await simulation.finished).status).toBe(0);
    // Results of labs do not count packets by link.
    const { links } = readRun(join(sim, "result.json")).result;
    const by = (spine: string) => links?.find(({ from, to }) => from === spine && to === "right")?.packets ?? 0;
    const part = by("up") / (by("up") + by("down"));
    // Of some hundred packets, each by one of two ways at random or by one that was free.
    expect(part).toBeGreaterThan(0.3);
    expect(part).toBeLessThan(0.7);
  });
});
