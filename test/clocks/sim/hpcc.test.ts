/** HPCC in virtual time: it leaves a link nearly full and its queue nearly empty, and shares. */
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import type { SimulationAddon } from "../../../src/native/simulation_types.js";
import type { Result } from "../../../src/result/result.js";
import { parseScenario, type Scenario } from "../../../src/scenario/scenario.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";
import { sliced } from "./sliced.js";

skipWhere(nativeObstacle());

const kLine = 10e9;
/** Bytes of a packet on the link, and as queues count it. */
const kPacket = { link: 1170, frame: 1146 };

interface Incast {
  hosts: number;
  duration?: string;
  warmup?: string;
  parameters?: Record<string, unknown>;
}

function scenario({ hosts, duration = "60ms", warmup = "30ms", parameters = {} }: Incast): Scenario {
  const senders = Array.from({ length: hosts }, (_, i) => `h${i}`);
  return parseScenario({
    name: "incast",
    duration,
    warmup,
    topology: {
      link: { rate: "10Gbps", delay: "1us" },
      hosts: Object.fromEntries([...senders, "r"].map((name) => [name, null])),
      switches: ["sw"],
      links: [...senders, "r"].map((host) => `${host} -- sw`),
    },
    switch: { ecn: { enabled: false }, buffer: { total: "32MB" } },
    transport: { type: "rc", window: 4096, timeout: 16 },
    congestion: { algorithm: "hpcc", parameters },
    traffic: senders.map((from, i) => ({ id: `x${i}`, from, to: "r", start: `${i * 10}us` })),
  }).scenario;
}

const run = (incast: Incast, addon?: SimulationAddon) =>
  runSimulation(scenario(incast), { signal: new AbortController().signal }, addon);
const queueOf = (result: Result) => result.switches.sw?.queues.r?.["3"] ?? expect.fail("no queue");
/** Part of the link to the receiver that is in use. */
const inUse = (result: Result) => (result.totals.goodput_bps * kPacket.link) / 1024 / kLine;

describe("HPCC", () => {
  it.each([
    [2, 80, 0.94],
    [8, 80, 0.94],
    // N W_AI below (1 - eta) B T, 812 bytes.
    [64, 10, 0.89],
    // N W_AI above it.
    [64, 80, 0.94],
  ])(
    "leaves %d flows of one link a share each, and its queue nearly empty (W_AI %d bytes)",
    async (hosts, step, least) => {
      const { result } = await run({ hosts, parameters: { hpcc_w_ai: `${step}B` } });
      expect(result).toMatchObject({ congestion_control: "hpcc", profile: "hpcc", fidelity: { valid: true } });
      expect(result.totals.jain).toBeGreaterThan(0.99);
      // eta + N W_AI / (B T); less where many packets meet by chance, as what waits of them counts as in use, too.
      expect(inUse(result)).toBeGreaterThan(least);
      expect(inUse(result)).toBeLessThan(0.955 + (hosts * step) / 16_250);
      const { mean, max } = queueOf(result);
      // A packet of each, or what the base round-trip time holds.
      expect(mean).toBeLessThan(Math.min(hosts * kPacket.frame, 16_250));
      expect(max).toBeLessThan(hosts * 2 * kPacket.frame);
      expect(result.frames?.dropped).toBe(0);
    },
  );

  it("has one flow alone use eta of its link, and series say at which window and rate", async () => {
    const { result, series } = await run({ hosts: 1 });
    const { cwnd_packets = [], rate_bps = [], target_rate_bps } = series.flows.x0 ?? {};
    expect(target_rate_bps).toEqual(rate_bps);
    // W / T, T = 13 us, of packets as long as the longest: the first of a message, with 16 bytes of RETH.
    const ratio = rate_bps
      .slice(1, -1)
      .map((rate, i) => rate / (((cwnd_packets[i + 1] ?? 0) * (kPacket.link + 16) * 8) / 13e-6));
    expect(Math.min(...ratio)).toBeGreaterThan(0.9999);
    expect(Math.max(...ratio)).toBeLessThan(1.0001);
    expect(Math.min(...rate_bps.slice(1, -1))).toBeGreaterThan(0.9 * kLine);
    expect(Math.abs(inUse(result) - 0.95 - 80 / 16_250)).toBeLessThan(0.005);
    expect(queueOf(result).max).toBeLessThan(2 * kPacket.frame);
  });

  it("uses as much of the link as eta says", async () => {
    const { result } = await run({ hosts: 2, parameters: { hpcc_eta: "70%" } });
    expect(Math.abs(inUse(result) - 0.7 - 160 / 16_250)).toBeLessThan(0.02);
  });

  it("is the same however the run is sliced", async () => {
    const incast = { hosts: 3, duration: "2ms", warmup: "1ms" };
    const text = async (addon?: SimulationAddon) => {
      const { result, series } = await run(incast, addon);
      return JSON.stringify({ result, series });
    };
    expect(await text(sliced(501))).toBe(await text());
  });
});
