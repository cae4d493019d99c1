/** TIMELY and Swift on real frames: rates and windows that follow round-trip times of the kernel's stamps, and how far from virtual time that is. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readRun } from "../../src/result/run_files.js";
import { describeLive } from "./capability.js";
import { folder, type LabResult, start, sum, validLabRun } from "./weir.js";

const kLine = 10e9;
/** Two to one, without marks. A round-trip time of 50 us takes 20 ms. */
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
host: { line_rate_start: false, initial_rate: 5Gbps }
transport: { type: rc, timeout: 6 }
probes: { interval: 200us }
traffic: [{ id: x, from: [a, b], to: c }]
`;

/** What holds for every run: nobody marks or tells, each packet has its acknowledgement, and rates keep to the line. */
function expectUnmarked(result: LabResult): void {
  expect(sum(Object.values(result.nics).map((nic) => nic.np_cnp_sent + nic.rp_cnp_handled))).toBe(0);
  expect(result.switches.sw?.ecn_marked).toBe(0);
  const received = sum(result.flows.map(({ received: packets = 0 }) => packets));
  expect(result.transport?.tx_acks).toBeGreaterThan(0.9 * received);
}

describeLive("weir lab run under congestion control by round-trip times", () => {
  it.for([
    ["timely", "congestion={ algorithm: timely, variant: timely-patched }"],
    ["swift", "congestion={ algorithm: swift }"],
  ] as const)(
    "%s shares a link, and has the queue of virtual time as far as this host allows",
    async ([name, set], context) => {
      const file = join(folder(), "rtt.yaml");
      writeFileSync(file, kIncast);
      const { result, path } = await validLabRun(context, { file, args: ["--set", set] }, expectUnmarked);
      expect(result.congestion_control).toBe(name);
      expect(result.totals.jain).toBeGreaterThan(0.9);
      expect(result.totals.goodput_bps).toBeGreaterThan(0.5 * kLine);
      expect(result.frames.dropped).toBe(0);
      const { series } = readRun(join(path, "out/result.json"));
      for (const { rate_bps = [], cwnd_packets = [] } of Object.values(series.flows)) {
        // One of the two, and it moves: round-trip times are heard of.
        const moves = new Set([...rate_bps, ...cwnd_packets].slice(1, -1));
        expect(moves.size).toBeGreaterThan(3);
        expect(Math.max(0, ...rate_bps)).toBeLessThanOrEqual(kLine);
      }
      const sim = join(path, "sim");
      const simulation = await start(["sim", "run", file, "--quiet", "--json", "--out", sim, "--set", set], [], true);
      expect((await simulation.finished).status).toBe(0);
      const { result: simulated } = readRun(join(sim, "result.json"));
      const mean = (of: typeof simulated) => of.switches.sw?.queues.c?.["3"]?.mean ?? Number.NaN;
      // What the host adds to a round-trip time is no queue of the switch: there may be less.
      expect(mean(result)).toBeLessThan(2 * mean(simulated) + 20_000);
    },
  );
});
