/** READs under congestion control by acknowledgements, whose requester has it: queues and shares are those of WRITEs. */
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import type { Result } from "../../../src/result/result.js";
import { parseScenario } from "../../../src/scenario/scenario.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";

skipWhere(nativeObstacle());

interface Case {
  congestion: Record<string, unknown>;
  /** Both thresholds, where switches mark. */
  marks?: [string, string];
  rate?: string;
  host?: Record<string, unknown>;
}

const kDctcp: Case = { congestion: { algorithm: "dctcp" }, marks: ["70KB", "70KB"] };
const kTimely = { algorithm: "timely", variant: "timely-patched" };
const kPatched: Case = { congestion: kTimely, host: { line_rate_start: false, initial_rate: "1Gbps" } };
const kSwift: Case = { congestion: { algorithm: "swift" } };
const kHpcc: Case = { congestion: { algorithm: "hpcc" } };
const kNscc: Case = {
  congestion: { algorithm: "nscc" },
  marks: ["30KB", "120KB"],
  rate: "100Gbps",
  host: { path_mtu: 4096 },
};
const kCases = Object.entries({ kDctcp, kPatched, kSwift, kHpcc, kNscc }).map(
  ([name, one]) => [name.slice(1).toLowerCase(), one] as const,
);

/** Flows between `r` and others; its data is sent, or READ. */
async function run(one: Case, others: number, operation: "write" | "read", to: "r" | "others"): Promise<Result> {
  const hosts = Array.from({ length: others }, (_, i) => `h${i}`);
  const { scenario } = parseScenario({
    name: "reads",
    duration: "20ms",
    warmup: "10ms",
    topology: {
      link: { rate: one.rate ?? "10Gbps", delay: "1us", mtu: 4200 },
      hosts: Object.fromEntries([...hosts, "r"].map((name) => [name, null])),
      switches: ["sw"],
      links: [...hosts, "r"].map((host) => `${host} -- sw`),
    },
    host: one.host ?? {},
    switch: {
      buffer: { total: "12MB" },
      ecn: one.marks ? { kmin: one.marks[0], kmax: one.marks[1], pmax: "100%" } : { enabled: false },
    },
    transport: { type: "rc", timeout: 16 },
    congestion: one.congestion,
    traffic: hosts.map((host, i) => ({
      ...(to === "r" ? { from: host, to: "r" } : { from: "r", to: host }),
      id: host,
      start: `${i * 10}us`,
      operation,
    })),
  });
  const { result } = await runSimulation(scenario, { signal: new AbortController().signal });
  expect(result.fidelity.valid).toBe(true);
  expect(result.frames).toMatchObject({ dropped: 0, missing: 0 });
  expect(result.transport?.retransmitted ?? 0).toBe(0);
  return result;
}

const queueOf = (result: Result) => result.switches.sw?.queues.r?.["3"] ?? expect.fail("no queue");

describe.each(kCases)("under %s", (_name, one) => {
  it.each([2, 8])("READs from %d hosts have the queue and the shares of WRITEs, and no pause", async (others) => {
    const [read, write] = [await run(one, others, "read", "r"), await run(one, others, "write", "r")];
    expect(read.totals.goodput_bps).toBeGreaterThan(0.98 * write.totals.goodput_bps);
    expect(read.totals.jain).toBeGreaterThan((write.totals.jain ?? 1) - 0.03);
    const [queue, same] = [queueOf(read), queueOf(write)];
    expect(Math.abs(queue.mean - same.mean)).toBeLessThan(0.1 * same.mean + 1_000);
    expect(queue.max).toBeLessThan(1.2 * same.max + 5_000);
    expect(read.switches.sw?.pfc_sent ?? {}).toEqual({});
  });

  it("READs of eight hosts from one share its link, and have no queue in the switch", async () => {
    const read = await run(one, 8, "read", "others");
    expect(read.totals.jain).toBeGreaterThan(0.99);
    const write = await run(one, 8, "write", "others");
    expect(read.totals.goodput_bps).toBeGreaterThan(0.98 * write.totals.goodput_bps);
    expect(read.switches.sw?.pfc_sent ?? {}).toEqual({});
  });
});
