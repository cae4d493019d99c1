/** TIMELY, patched TIMELY and Swift in virtual time: where queues and rates come to rest, if they do. */
import { describe, expect, it } from "vitest";
import { parseTime } from "../../../src/base/units.js";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import type { SimulationAddon } from "../../../src/native/simulation_types.js";
import type { Result } from "../../../src/result/result.js";
import { parseScenario, type Scenario } from "../../../src/scenario/scenario.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";
import { sliced } from "./sliced.js";

skipWhere(nativeObstacle());

const kLine = 10e9;
/** Bits of a packet on the link with preamble and gap, and as queues count it. */
const kPacket = { link: 1106 * 8, frame: 1082 * 8 };
/** Most payload that a flow can get, bit/s. */
const kPayload = (kLine * 1024 * 8) / kPacket.link;
/** RTT of a packet without queue, and without its own time on the sender's link, ns: 4 cables, the link to the receiver, and the
 * acknowledgement's time on both links. */
const kBase = 4_000 + (kPacket.link / kLine) * 1e9 + (2 * 88 * 8 * 1e9) / kLine;
/** Bytes in the queue where the RTT is this, ns. */
const queueAt = (rtt: number) => ((rtt - kBase) * (kLine / 8e9) * kPacket.frame) / kPacket.link;

interface Incast {
  congestion: Record<string, unknown>;
  hosts: number;
  duration: string;
  warmup: string;
  /** Flows but the first begin at this rate, which else is the line's; */
  later?: string;
  /** each begins so much after the one before. */
  apart?: string;
}

const slow = (rate: string) => ({ line_rate_start: false, initial_rate: rate });

function scenario({ congestion, hosts, duration, warmup, later, apart = "10us" }: Incast): Scenario {
  const senders = Array.from({ length: hosts }, (_, i) => `h${i}`);
  return parseScenario({
    name: "incast",
    duration,
    warmup,
    topology: {
      link: { rate: "10Gbps", delay: "1us" },
      hosts: {
        ...Object.fromEntries(senders.map((name, i) => [name, i > 0 && later !== undefined ? slow(later) : null])),
        r: null,
      },
      switches: ["sw"],
      links: [...senders, "r"].map((host) => `${host} -- sw`),
    },
    // No marks, and room for whatever queues there are.
    switch: { ecn: { enabled: false }, buffer: { total: "32MB" } },
    transport: { type: "rc", window: 4096, timeout: 16 },
    congestion,
    traffic: senders.map((from, i) => ({ id: `x${i}`, from, to: "r", start: `${i * parseTime(apart)}ns` })),
  }).scenario;
}

const run = (incast: Incast, addon?: SimulationAddon) =>
  runSimulation(scenario(incast), { signal: new AbortController().signal }, addon);

const queueOf = (result: Result) => result.switches.sw?.queues.r?.["3"] ?? expect.fail("no queue");

describe("patched TIMELY", () => {
  // ECN or Delay, theorem 5: equal rates, and an RTT of t_low (1 + N delta / (beta C)). With 40 flows, each has an update in 0.5
  // ms, and a step of delta is 4% of its rate: they swing about it.
  it.each([
    [2, 0.02],
    [8, 0.02],
    [40, 0.1],
  ])("comes to the fair share and the queue of its fixed point with %d flows", async (hosts, swing) => {
    const congestion = { algorithm: "timely", variant: "timely-patched" };
    const later = `${kLine / 1e6 / hosts}Mbps`;
    const { result } = await run({ congestion, hosts, duration: "400ms", warmup: "350ms", later });
    expect(result).toMatchObject({ congestion_control: "timely", profile: "timely-sigcomm15 timely-patched" });
    expect(result.fidelity.valid).toBe(true);
    expect(result.totals.jain).toBeGreaterThan(0.999);
    expect(result.totals.goodput_bps).toBeGreaterThan(0.999 * kPayload);
    const expected = queueAt(50e3 * (1 + (hosts * 10e6) / (0.008 * kLine)));
    const { mean, max, p50 } = queueOf(result);
    for (const queue of [mean, p50]) expect(Math.abs(queue / expected - 1)).toBeLessThan(swing);
    expect(max).toBeLessThan(1.1 * expected);
    expect(result.frames?.dropped).toBe(0);
  });

  it("comes to it from rates that differ", async () => {
    const congestion = { algorithm: "timely", variant: "timely-patched" };
    const { series } = await run({
      congestion,
      hosts: 2,
      duration: "400ms",
      warmup: "1ms",
      later: "1Gbps",
      apart: "2ms",
    });
    const [first = [], second = []] = Object.values(series.flows).map(({ rate_bps = [] }) => rate_bps);
    const at = series.time_s.findIndex((time) => time > 0.0021);
    expect(first[at]).toBeGreaterThan(5 * (second[at] as number));
    expect((first.at(-2) as number) / (second.at(-2) as number)).toBeCloseTo(1, 1);
  });
});

describe("TIMELY", () => {
  // ECN or Delay, theorem 3 and figure 9: it has no fixed point, and shares stay apart.
  it.each([2, 8])("has %d flows swing, and share as chance has it", async (hosts) => {
    const { result } = await run({ congestion: { algorithm: "timely" }, hosts, duration: "400ms", warmup: "200ms" });
    expect(result.fidelity.valid).toBe(true);
    expect(result.totals.jain).toBeLessThan(0.97);
    const { p95, p50 } = queueOf(result);
    expect(p95 - p50).toBeGreaterThan(20_000);
    // T_low is where the queue is on and off.
    expect(p95).toBeLessThan(queueAt(100e3));
  });

  it("keeps other shares where flows begin otherwise", async () => {
    const shares = async (later: string, apart: string) => {
      const congestion = { algorithm: "timely" };
      const { result } = await run({ congestion, hosts: 2, duration: "400ms", warmup: "200ms", later, apart });
      const [a = 0, b = 0] = result.flows.map(({ goodput_bps }) => goodput_bps);
      return a / (a + b);
    };
    const all = [await shares("10Gbps", "10us"), await shares("1Gbps", "2ms"), await shares("5Gbps", "2ms")];
    expect(Math.max(...all) - Math.min(...all)).toBeGreaterThan(0.03);
  });
});

describe("Swift", () => {
  it.each([2, 8, 64])("shares among %d flows, and holds their delay at the target of their window", async (hosts) => {
    const { result, series } = await run({
      congestion: { algorithm: "swift" },
      hosts,
      duration: "60ms",
      warmup: "30ms",
    });
    expect(result).toMatchObject({ congestion_control: "swift", profile: "swift", fidelity: { valid: true } });
    expect(result.totals.jain).toBeGreaterThan(0.999);
    expect(result.totals.goodput_bps).toBeGreaterThan(0.999 * kPayload);
    // The RTT, with the packet's own time on the sender's link, at which windows of C rtt / N packets have just this target.
    let rtt = 20e3;
    for (let i = 0; i < 100; ++i) {
      const window = (rtt * kLine) / 1e9 / kPacket.link / hosts;
      const a = 100e3 / (1 / Math.sqrt(0.1) - 1 / Math.sqrt(100));
      rtt = 20e3 + 3053 + Math.min(100e3, Math.max(0, a / Math.sqrt(window) - a / Math.sqrt(100)));
    }
    const expected = queueAt(rtt - (kPacket.link / kLine) * 1e9);
    expect(Math.abs(queueOf(result).mean / expected - 1)).toBeLessThan(0.15);
    for (const { cwnd_packets = [], rate_bps } of Object.values(series.flows)) {
      expect(rate_bps).toBeUndefined();
      const mean = cwnd_packets.slice(-100, -1).reduce((sum, window) => sum + window, 0) / 99;
      expect(mean / ((rtt * kLine) / 1e9 / kPacket.link / hosts)).toBeGreaterThan(0.7);
    }
    expect(result.frames?.dropped).toBe(0);
  });

  it("is the same however the run is sliced", async () => {
    const incast = { congestion: { algorithm: "swift" }, hosts: 3, duration: "2ms", warmup: "1ms" };
    const text = async (addon?: SimulationAddon) => {
      const { result, series } = await run(incast, addon);
      return JSON.stringify({ result, series });
    };
    expect(await text(sliced(501))).toBe(await text());
  });
});
