/** Two hosts that send to one under a congestion control by acknowledgements: the parts that a lab and a simulation of it share. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, type TestContext } from "vitest";
import { readRun } from "../../src/result/run_files.js";
import { folder, type LabResult, start, sum, validLabRun } from "./weir.js";

/** Rate of each link, bit/s. */
export const kLine = 10e9;
const kOneSwitch = "switches: [sw]\n  links: [a -- sw, b -- sw, c -- sw]";

/** A scenario in which 1 us takes 0.4 ms. `network`: switches and links between a, b and c, by default one switch; `more`: the rest of it. */
export const twoToOne = (more: string, network = kOneSwitch): string => `
scale: 400
duration: 16ms
warmup: 8ms
topology:
  link: { rate: 10Gbps, delay: 1us }
  hosts: [a, b, c]
  ${network}
probes: { interval: 200us }
traffic: [{ id: x, from: [a, b], to: c }]
${more}
`;

/** Checks what holds for every run: feedback is by acknowledgements alone, of which each packet has one. */
export function expectAcknowledged({ nics, flows, transport = {} }: LabResult): void {
  expect(sum(Object.values(nics).map((nic) => nic.np_cnp_sent + nic.rp_cnp_handled))).toBe(0);
  const received = sum(flows.map(({ received: packets = 0 }) => packets));
  expect(received).toBeGreaterThan(100);
  expect((transport.tx_acks ?? 0) + (transport.tx_naks ?? 0)).toBeGreaterThan(0.9 * received);
}

/** Runs a lab that shares the link evenly and uses it, and the same scenario in virtual time. */
export async function onBothClocks(
  context: TestContext,
  scenario: string,
  holds: (result: LabResult) => void,
  ...set: readonly string[]
) {
  const file = join(folder(), "two-to-one.yaml");
  const args = set.flatMap((assignment) => ["--set", assignment]);
  writeFileSync(file, scenario);
  const { result, path } = await validLabRun(context, { file, args }, holds);
  expect(result.totals.jain).toBeGreaterThan(0.9);
  expect(result.totals.goodput_bps).toBeGreaterThan(0.5 * kLine);
  expect(result.frames.dropped).toBe(0);
  const sim = join(path, "sim");
  const simulation = await start(["sim", "run", file, "--quiet", "--json", "--out", sim, ...args], [], true);
  expect((await simulation.finished).status).toBe(0);
  const { flows } = readRun(join(path, "out/result.json")).series;
  return { result, flows, simulated: readRun(join(sim, "result.json")).result };
}

/** Mean of the queue to c, bytes. */
export const meanQueue = ({ switches }: Pick<LabResult, "switches">): number =>
  switches.sw?.queues.c?.["3"]?.mean ?? Number.NaN;
