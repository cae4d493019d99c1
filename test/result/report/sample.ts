/** A made-up incast with the shape of a real one: rates that saw-tooth around the fair share, a queue between Kmin and Kmax. */
import type { Result, Series } from "../../../src/result/result.js";

const kLine = 40e9;

export function sampleSeries(flows: number, points: number): Series {
  const random = generator(7);
  const share = kLine / flows;
  const time_s = Array.from({ length: points }, (_, i) => i * 1e-4);
  const names = Array.from({ length: flows }, (_, i) => `incast.${i + 1}`);
  const bytes = time_s.map((t) =>
    Math.max(0, 60e3 + 30e3 * Math.sin(t * 900) + 22e3 * (random() - 0.5) + 140e3 * Math.exp(-t / 0.004)),
  );
  return {
    interval_s: 1e-4,
    time_s,
    flows: Object.fromEntries(
      names.map((name, i) => {
        const rate = time_s.map(
          (t) =>
            share * (1 + 0.25 * Math.sin(t * 400 + i * 2.1) + 0.1 * (random() - 0.5)) +
            (kLine - share) * Math.exp(-t / 0.003),
        );
        return [
          name,
          {
            rate_bps: rate,
            target_rate_bps: rate.map((r) => Math.min(kLine, r * 1.2)),
            alpha: time_s.map((t) => Math.min(1, 0.15 + 0.05 * Math.sin(t * 500 + i) + Math.exp(-t / 0.01))),
            goodput_bps: rate.map((r) => Math.min(r, share * 1.4) * 0.92),
          },
        ];
      }),
    ),
    queues: { "sw:r:3": { bytes, max_bytes: bytes.map((b) => b * 1.15) } },
    pauses: {
      "sw:h1:3": time_s.map((t) => (t < 0.006 && random() < 0.5 ? 2 : 0)),
      "sw:h2:3": time_s.map((t) => (t < 0.005 && random() < 0.4 ? 1 : 0)),
    },
    marks: { "sw:r:3": bytes.map((b) => Math.round((b / 200e3) * 6)) },
    cnps: { r: bytes.map((b) => Math.round((b / 200e3) * 3)) },
  };
}

export function sampleResult(flows: number): Result {
  const each = (kLine * 0.92) / flows;
  return {
    scenario: "incast-4to1",
    clock: "wire",
    scale: 40,
    seed: 1,
    duration_s: 0.25,
    warmup_s: 0.05,
    profile: "paper-sigcomm15",
    path_mtu: 1024,
    fidelity: { valid: true, reasons: [], loop_gap_us: { p50: 2.1, p99: 48.5, max: 912 }, host_drops: 0 },
    flows: Array.from({ length: flows }, (_, i) => ({
      id: `incast.${i + 1}`,
      from: `h${i + 1}`,
      to: "r",
      priority: 3,
      goodput_bps: each,
      wire_bps: each / 0.926,
      packets: 280_000 + i,
      lost: 0,
      cnp_handled: 1200 + i,
    })),
    totals: { goodput_bps: each * flows, jain: 0.9987 },
    switches: {
      sw: {
        drops: { buffer_full: 0 },
        ecn_marked: 8123,
        pfc_sent: { "3": 41 },
        queues: {
          r: {
            "3": { mean: 61_200, p50: 58_000, p95: 96_000, p99: 131_000, max: 214_560 },
            "6": { mean: 0, p50: 0, p95: 0, p99: 0, max: 0 },
          },
          h1: { "6": { mean: 2, p50: 0, p95: 0, p99: 64, max: 128 } },
        },
      },
    },
    nics: {
      h1: { np_cnp_sent: 0, rp_cnp_handled: 1200, pfc_received: { "3": 22 } },
      r: { np_cnp_sent: 4806, rp_cnp_handled: 0, pfc_received: {} },
    },
  };
}

/** A simulation of transfers that come to an end. */
export function simulatedResult(): Result {
  const figures = (count: number, slowdown: number, fct: number) => ({
    count,
    slowdown: { mean: slowdown, p50: slowdown, p95: 2 * slowdown, p99: 3 * slowdown, max: 4 * slowdown },
    fct_us: { mean: fct, p50: fct, p95: 2 * fct, p99: 3 * fct, max: 4 * fct },
  });
  const direction = (from: string, to: string, utilisation: number, pause_time_s: Record<string, number> = {}) => ({
    from,
    to,
    rate_bps: 40e9,
    utilisation,
    bytes: utilisation * 1e9,
    packets: utilisation * 1e6,
    lost: 0,
    pause_time_s,
  });
  return {
    ...sampleResult(2),
    clock: "sim",
    scale: 1,
    fidelity: { valid: true, reasons: [], loop_gap_us: { p50: 0, p99: 0, max: 0 }, host_drops: 0 },
    fct: {
      ...figures(300, 1.5, 40),
      incomplete: 4,
      bins: [
        { above_bytes: 0, up_to_bytes: 10e3, ...figures(200, 1.25, 8) },
        { above_bytes: 10e6, ...figures(100, 2, 900) },
      ],
    },
    links: [direction("h1", "sw", 0.5, { 3: 25e-6 }), direction("sw", "r", 0.99), direction("r", "sw", 0)],
  };
}

/** Park-Miller's generator: the picture is the same every time. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}
