/** Faults of a scenario in virtual time: what they are made to, what the transport makes of them, and what the result tells. */
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import { renderTable } from "../../../src/result/report/table.js";
import { parseScenario } from "../../../src/scenario/scenario.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";

skipWhere(nativeObstacle());

const kFrom = { at: "2ms", device: "h2" };

const kLossless = {
  topology: {
    links: ["h1 -- sw", "h2 -- sw"],
    hosts: { h1: {}, h2: {} },
    switches: ["sw"],
    link: { rate: "10Gbps", delay: "1us" },
  },
  switch: { pfc: { priorities: [3] } },
};

async function run(faults: object[], overrides: object = {}, threads = 1) {
  const { scenario } = parseScenario({
    duration: "6ms",
    warmup: "1ms",
    topology: { kind: "star", hosts: 3, link: { rate: "10Gbps", delay: "1us" } },
    transport: { type: "rc", recovery: "selective-repeat", timeout: 5 },
    congestion: { algorithm: "none" },
    traffic: [{ id: "x", from: "h1", to: "h2", message: "20KB" }],
    faults,
    ...overrides,
  });
  const outcome = await runSimulation(scenario, { signal: new AbortController().signal, threads });
  expect(outcome.result.fidelity).toMatchObject({ valid: true, reasons: [] });
  expect(outcome.result.frames?.missing).toBe(0);
  return outcome.result;
}

describe("faults in virtual time", () => {
  it("hit what matches, once for each, and are made good by the transport", async () => {
    const result = await run([
      { ...kFrom, kind: "drop", opcode: ["write"], every: 10, count: 7 },
      { ...kFrom, kind: "drop", opcode: ["cnp"] },
      { ...kFrom, at: "3ms", kind: "duplicate", count: 5 },
      { at: "4ms", device: "h1", kind: "corrupt", opcode: ["ack"], count: 2 },
    ]);
    expect(result.faults).toMatchObject([
      { device: "h2", kind: "drop", at_s: 0.002, matched: 70, hits: 7 },
      { kind: "drop", matched: 0, hits: 0 },
      { kind: "duplicate", matched: 5, hits: 5 },
      { device: "h1", kind: "corrupt", hits: 2 },
    ]);
    expect(result.frames).toMatchObject({ impaired: 9, duplicated: 5 });
    expect(result.transport?.retransmitted).toBeGreaterThanOrEqual(7);
    const between = (result.links ?? []).find(({ from, to }) => from === "sw" && to === "h2");
    expect(between?.lost).toBe(7);
  });

  it("are the same with the same seed, on any number of threads, and change nothing before they begin", async () => {
    const faults = [{ ...kFrom, kind: "drop", share: "3%", for: "2ms", seed: 5 }];
    const [one, two, none] = [await run(faults), await run(faults, {}, 2), await run([])];
    expect(one.faults?.[0]?.hits).toBeGreaterThan(20);
    expect({ ...two, made: undefined }).toEqual({ ...one, made: undefined });
    const other = await run([{ ...kFrom, kind: "drop", share: "3%", for: "2ms", seed: 6 }]);
    expect(other.faults?.[0]?.hits).not.toBe(one.faults?.[0]?.hits);
    const late = await run([{ ...kFrom, at: "5999us", kind: "drop", opcode: ["cnp"] }]);
    expect(late.flows).toEqual(none.flows);
  });

  it("choose by sender, of several that come in at a port", async () => {
    const traffic = [
      { id: "x", from: "h1", to: "h2", message: "20KB" },
      { id: "y", from: "h3", to: "h2", message: "20KB" },
    ];
    const result = await run([{ ...kFrom, kind: "drop", from: "h3", every: 20 }], { traffic });
    expect(result.flows.map(({ lost }) => lost > 0)).toEqual([false, true]);
  });

  it("take a link down, which comes back, and is told of", async () => {
    const result = await run([{ ...kFrom, kind: "down", for: "500us" }]);
    expect(result.faults).toMatchObject([{ kind: "down", for_s: 0.0005, hits: 1 }]);
    expect(result.faults?.[0]?.recovery_s).toBeGreaterThanOrEqual(0);
    expect(result.frames?.link_down).toBeGreaterThan(0);
    expect(result.events?.map(({ what }) => what)).toEqual(["link h2 -- sw goes down", "link h2 -- sw is up again"]);
    expect(renderTable(result)).toMatch(/Faults\n.*recovered in/);
  });

  it("pause a switch as a host's storm does, where the pauses leave that host", async () => {
    const result = await run([{ ...kFrom, kind: "pause", direction: "out", priorities: [3], for: "2ms" }], kLossless);
    const { topology } = kLossless;
    const h2 = { pause_storm: { priorities: [3], start: "2ms", stop: "4ms" } };
    const storm = await run([], { ...kLossless, topology: { ...topology, hosts: { h1: {}, h2 } } });
    expect(result.faults).toMatchObject([{ device: "h2", direction: "out", kind: "pause" }]);
    expect(result.faults?.[0]?.hits).toBeGreaterThan(0);
    const [paused, stormed] = [result, storm].map(({ flows }) => flows[0]?.goodput_bps);
    expect(paused).toBeLessThan(0.7 * 9.4e9);
    expect(paused).toBe(stormed);
  });

  it("mark what may be marked, so that senders slow down", async () => {
    const dcqcn = { congestion: { algorithm: "dcqcn" }, switch: { ecn: { enabled: false } } };
    const result = await run([{ ...kFrom, kind: "mark", every: 50 }], dcqcn);
    expect(result.faults?.[0]?.hits).toBeGreaterThan(10);
    expect(result.nics.h2?.np_cnp_sent).toBeGreaterThan(0);
    expect(result.flows[0]?.goodput_bps).toBeLessThan(8e9);
  });

  it("make acknowledgements NAKs: a sender goes back for one, waits for another, and gives up at a third", async () => {
    const at = { at: "2ms", device: "h1", kind: "nak" };
    const sequence = await run([{ ...at, code: "sequence", count: 4 }]);
    expect(sequence.faults).toMatchObject([{ hits: 4 }]);
    expect(sequence.transport?.retransmitted).toBeGreaterThan(0);
    const rnr = await run([{ ...at, code: "rnr", count: 1 }]);
    expect(rnr.transport).toMatchObject({ rnr_nak_retry_err: 1 });
    const access = await run([{ ...at, code: "remote-access", count: 1 }]);
    expect(access.transport).toMatchObject({ req_remote_access_errors: 1 });
    expect(access.flows[0]?.goodput_bps).toBeLessThan(5e9);
    expect(access.faults?.[0]).not.toHaveProperty("recovery_s");
  });
});
