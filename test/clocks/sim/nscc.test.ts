/** NSCC and REPS in virtual time: where queues and shares come to rest, and spraying over a fabric. */
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import type { SimulationAddon } from "../../../src/native/simulation_types.js";
import type { Result } from "../../../src/result/result.js";
import { loadScenario, parseScenario, type Scenario } from "../../../src/scenario/scenario.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";
import { sliced } from "./sliced.js";

skipWhere(nativeObstacle());

const kLine = 100e9;
/** Bytes of a packet on the link, and as queues count it. */
const kPacket = { link: 4178, frame: 4154 };
/** Payload as a part of what a link can carry. */
const kShare = 4096 / kPacket.link;

const run = (scenario: Scenario, addon?: SimulationAddon) =>
  runSimulation(scenario, { signal: new AbortController().signal }, addon);

interface Incast {
  hosts: number;
  duration?: string;
  warmup?: string;
  /** Settings of the network and its hosts. */
  switch?: Record<string, unknown>;
  transport?: Record<string, unknown>;
  traffic?: Record<string, unknown>;
}

function incast({ hosts, duration = "12ms", warmup = "6ms", transport, traffic, ...rest }: Incast): Scenario {
  const senders = Array.from({ length: hosts }, (_, i) => `h${i}`);
  return parseScenario({
    name: "incast",
    duration,
    warmup,
    topology: {
      link: { rate: "100Gbps", delay: "1us", mtu: 5000 },
      hosts: Object.fromEntries([...senders, "r"].map((name) => [name, null])),
      switches: ["sw"],
      links: [...senders, "r"].map((host) => `${host} -- sw`),
    },
    host: { path_mtu: 4096 },
    switch: rest.switch ?? { buffer: { total: "64MB" }, ecn: { kmin: "30KB", kmax: "120KB", pmax: "100%" } },
    transport: { type: "rc", recovery: "selective-repeat", reordering: 250, ...transport },
    congestion: { algorithm: "nscc" },
    traffic: senders.map((from, i) => ({ id: `x${i}`, from, to: "r", start: `${i}us`, ...traffic })),
  }).scenario;
}

const queueOf = (result: Result) => result.switches.sw?.queues.r?.["3"] ?? expect.fail("no queue");

describe("NSCC", () => {
  it.each([2, 8])("has %d flows fill a link, and its queue stand at the target delay", async (hosts) => {
    const { result } = await run(incast({ hosts }));
    expect(result).toMatchObject({ congestion_control: "nscc", profile: "nscc", fidelity: { valid: true } });
    expect(result.totals.goodput_bps / kLine).toBeGreaterThan(0.999 * kShare);
    // Windows of a few packets that are cut in steps: shares differ by a sixth or so, for good.
    expect(result.totals.jain).toBeGreaterThan(0.95);
    const { mean, max } = queueOf(result);
    // 9 us at 100 Gb/s; where marks are seldom windows grow, and where they are certain they are cut.
    const target = (9e-6 * kLine * kPacket.frame) / kPacket.link / 8;
    expect(Math.abs(mean / target - 1)).toBeLessThan(0.15);
    expect(max).toBeLessThan(1.6 * target);
    expect(result.frames?.dropped).toBe(0);
  });

  it("has one packet of each of 64 flows in flight, and no less", async () => {
    const { result } = await run(incast({ hosts: 64 }));
    expect(result.totals.jain).toBeGreaterThan(0.999);
    // Bytes that are not in the queue are on the way: 4 us of links, and the time of a packet and its acknowledgement on two of them.
    const under_way = (4e-6 * kLine) / 8 + 2 * kPacket.link;
    expect(Math.abs(queueOf(result).mean - (64 * kPacket.frame - under_way))).toBeLessThan(3 * kPacket.frame);
  });

  it.each(["4700ns", "12us"])(
    "shares evenly where packets are trimmed, told of a base round-trip time of %s",
    async (base) => {
      const set = [`congestion.parameters.nscc_base_rtt=${base}`, "duration=4ms", "warmup=2ms"];
      const { result } = await run(loadScenario("examples/nscc-incast.yaml", { set }).scenario);
      expect(result.transport?.trimmed_requests).toBeGreaterThan(50);
      expect(result.totals.jain).toBeGreaterThan(0.9);
      expect(result.totals.goodput_bps / kLine).toBeGreaterThan(0.999 * kShare);
    },
  );

  it("leaves one flow alone its link without a queue", async () => {
    const { result } = await run(incast({ hosts: 1 }));
    expect(result.totals.goodput_bps / kLine).toBeGreaterThan(0.999 * kShare);
    expect(queueOf(result).max).toBeLessThan(2 * kPacket.frame);
  });

  it("brings everything through a small lossy buffer, though it begins with more than that", async () => {
    const lossy = {
      buffer: { total: "400KB", headroom: "0KB" },
      pfc: { enabled: false },
      ecn: { kmin: "30KB", kmax: "120KB", pmax: "100%" },
    };
    const { result } = await run(
      incast({
        hosts: 8,
        duration: "60ms",
        warmup: "0s",
        switch: lossy,
        transport: { timeout: 6, reordering: 8 },
        traffic: { bytes: "4MB" },
      }),
    );
    expect(result.frames?.dropped).toBeGreaterThan(50);
    expect(result.fct?.count).toBe(8);
    expect(result.transport?.retransmitted).toBeGreaterThan(50);
    // Data alone find no room here: each loss is of a flow, which sent as much again.
    expect(result.flows.reduce((sum, { lost }) => sum + lost, 0)).toBe(result.frames?.dropped);
  });

  it("is the same however the run is sliced", async () => {
    const scenario = incast({ hosts: 3, duration: "1ms", warmup: "500us", transport: { spraying: "reps" } });
    const text = async (addon?: SimulationAddon) => {
      const { result, series } = await run(scenario, addon);
      return JSON.stringify({ result, series });
    };
    expect(await text(sliced(501))).toBe(await text());
  });
});

function permutation(
  spraying: string,
  more: { balancing?: string; bytes?: string; failures?: unknown[]; ack?: Record<string, number> } = {},
): Scenario {
  return parseScenario({
    name: "permutation",
    duration: more.bytes === undefined ? "3ms" : "30ms",
    warmup: more.bytes === undefined ? "1ms" : "0s",
    topology: {
      kind: "leaf-spine",
      leaves: 4,
      spines: 4,
      hosts: 4,
      link: { rate: "100Gbps", delay: "1us", mtu: 5000 },
    },
    host: { path_mtu: 4096, ...(more.ack && { ack: more.ack }) },
    switch: {
      buffer: { total: "12MB", headroom: "100KB", priorities: 1 },
      ecn: { kmin: "30KB", kmax: "120KB", pmax: "100%" },
      load_balancing: more.balancing ?? "ecmp",
    },
    transport: { type: "rc", recovery: "selective-repeat", reordering: 250, timeout: 8, spraying },
    congestion: { algorithm: "nscc" },
    traffic: [{ id: "p", pattern: "permutation", message: "4MB", ...(more.bytes && { bytes: more.bytes }) }],
    ...(more.failures && { failures: more.failures }),
  }).scenario;
}

describe("transport.spraying", () => {
  it("has each host of a fabric send to another at nearly its link's rate, with switches that only hash", async () => {
    const goodput = async (...of: Parameters<typeof permutation>) => {
      const { result } = await run(permutation(...of));
      expect(result.frames?.dropped).toBe(0);
      expect(result.transport?.retransmitted ?? 0).toBe(0);
      // Packets that overtake others leave gaps, and nothing is lost.
      expect(result.flows.map(({ lost }) => lost)).toEqual(Array(16).fill(0));
      return result.totals.goodput_bps / (16 * kLine * kShare);
    };
    const [none, oblivious, reps, spray] = [
      await goodput("none"),
      await goodput("oblivious"),
      await goodput("reps"),
      await goodput("none", { balancing: "spray" }),
    ];
    // Some of 16 flows on 16 uplinks share one, by chance; packets that are sprayed without feedback meet by chance as well, one by one.
    expect(none).toBeLessThan(0.7);
    expect(oblivious).toBeGreaterThan(0.8);
    expect(reps).toBeGreaterThan(0.94);
    expect(reps).toBeGreaterThan(Math.max(oblivious, spray) + 0.03);
  });

  it("has acknowledgements of a priority of their own wait for nobody", async () => {
    const share = async (ack?: Record<string, number>) => {
      const { result } = await run(permutation("reps", { ...(ack && { ack }) }));
      return result.totals.goodput_bps / (16 * kLine * kShare);
    };
    const [alike, own] = [await share(), await share({ priority: 6 })];
    expect(own).toBeGreaterThan(0.96);
    expect(own).toBeGreaterThan(alike + 0.01);
  });

  it("has the last of these flows complete sooner", async () => {
    const last = async (spraying: string) => {
      const { result } = await run(permutation(spraying, { bytes: "8MB" }));
      expect(result.fct?.count).toBe(16);
      return result.fct?.fct_us?.max ?? Number.NaN;
    };
    const [none, reps] = [await last("none"), await last("reps")];
    // 8 MB take 653 us alone.
    expect(reps).toBeLessThan(800);
    expect(none).toBeGreaterThan(2 * reps);
  });

  it("goes on where a link fails, by the ways that are left", async () => {
    const failures = [{ link: "leaf1 -- spine1", at: "100us" }];
    const { result } = await run(permutation("reps", { bytes: "8MB", failures }));
    expect(result.fct?.count).toBe(16);
    expect(result.transport?.retransmitted).toBeGreaterThan(0);
  });
});
