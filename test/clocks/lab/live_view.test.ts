import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import type { LiveState } from "../../../src/clocks/lab/live_state.js";
import { LiveView } from "../../../src/clocks/lab/live_view.js";
import { memoryStream } from "../../cli/memory_stream.js";

function screen(size?: { columns: number; rows: number }) {
  const { stream, writes, text } = memoryStream(size && { isTTY: true, ...size });
  return { stream, writes, text: () => stripVTControlCharacters(text()) };
}

function state(elapsed_ms: number, flows = 2): LiveState {
  return {
    elapsed_ns: elapsed_ms * 1e6,
    duration_ns: 250e6,
    scale: 40,
    flows: Array.from({ length: flows }, (_, i) => ({
      id: `f${i + 1}`,
      rate_bps: 10e9 / (i + 1),
      target_rate_bps: 12e9,
      alpha: 0.25,
    })),
    queue: {
      name: "sw:r:3",
      bytes: 61_000,
      max_bytes: 214_500,
      kmin: 5000,
      kmax: 200_000,
      history: [0, 100_000, 200_000],
    },
    congestion_control: "dcqcn",
    cnm_sent: 0,
    cnm_handled: 0,
    ecn_marked: elapsed_ms * 12,
    cnp_sent: 40,
    cnp_handled: 39,
    pfc_sent: 7,
    drops: 0,
    loop_gap_max_us: 912,
  };
}

describe("LiveView on a terminal", () => {
  it("draws progress, rates, the queue and the counters", () => {
    const { stream, text } = screen({ columns: 100, rows: 40 });
    const view = new LiveView(stream, { scenario: "incast", color: false, now: () => 0 });
    view.update(state(125));
    const lines = text().split("\n");
    expect(lines[0]).toBe("incast  scale 1/40, times meant (wall)");
    expect(lines[1]).toMatch(/^█{20}░{20} {2}50\.0% {2}125 ms \(5\.0 s\), left 125 ms \(5\.0 s\)$/);
    expect(lines).toContain("f1      10.000    12.000   0.250  =========================.....");
    expect(lines).toContain("f2       5.000    12.000   0.250  =============.................");
    expect(lines).toContain("queue sw:r:3  61.00 KB  max 214.50 KB  Kmin 5 KB  Kmax 200 KB");
    expect(lines).toContain("▁▅█ top 200.00 KB");
    expect(lines).toContain("marks 1500 (12000/s)  CNP sent 40 handled 39  PFC 7  drops 0  loop gap max 912.0 us");
  });

  it("has what arrives in the place of rates, where senders have windows", () => {
    const { stream, text } = screen({ columns: 100, rows: 40 });
    const view = new LiveView(stream, { scenario: "incast", color: false, now: () => 0 });
    view.update({ ...state(125), congestion_control: "dctcp" });
    expect(text()).toMatch(/f1 +10\.000 +0\.250 +=/);
    expect(text()).toMatch(/flow +Gb\/s +alpha/);
    expect(text()).not.toMatch(/RC|RT/);
  });

  it("speaks of CNMs and of no alpha under QCN", () => {
    const { stream, text } = screen({ columns: 100, rows: 40 });
    const plain = state(125);
    const flows = plain.flows.map((flow) => ({ ...flow, alpha: null }));
    const queue = { name: "sw:r:3", bytes: 30_000, max_bytes: 40_000, qeq: 26_000, history: [13_000, 26_000] };
    const view = new LiveView(stream, { scenario: "incast", color: false, now: () => 0 });
    view.update({ ...plain, flows, queue, congestion_control: "qcn", cnm_sent: 500, cnm_handled: 498 });
    const lines = text().split("\n");
    expect(text()).not.toMatch(/alpha|CNP|marks/);
    expect(lines).toContain("f2       5.000    12.000          =============.................");
    expect(lines).toContain("queue sw:r:3  30.00 KB  max 40.00 KB  Q_eq 26 KB");
    expect(lines).toContain("CNM sent 500 (4000/s) handled 498  PFC 7  drops 0  loop gap max 912.0 us");
  });

  it("draws at most every 200 ms and the last state at the end", () => {
    const { stream, writes, text } = screen({ columns: 100, rows: 40 });
    let now = 0;
    const view = new LiveView(stream, { scenario: "incast", color: false, now: () => now });
    view.update(state(10));
    const first = writes.length;
    now = 199;
    view.update(state(20));
    expect(writes).toHaveLength(first);
    now = 200;
    view.update(state(30));
    expect(writes.length).toBeGreaterThan(first);
    now = 250;
    view.update(state(250));
    expect(text()).not.toContain("100.0%");
    view.finish();
    expect(text()).toContain("100.0%");
  });

  it("does not say at the end what it has just said", () => {
    const { stream, writes } = screen();
    const view = new LiveView(stream, { scenario: "incast", color: false, now: () => 0 });
    view.update(state(250));
    view.finish();
    expect(writes).toHaveLength(1);
  });

  it("is silent once finished", () => {
    const { stream, writes } = screen({ columns: 100, rows: 40 });
    const view = new LiveView(stream, { scenario: "incast", color: false, now: () => 0 });
    view.update(state(10));
    view.finish();
    const count = writes.length;
    view.finish();
    view.update(state(20));
    expect(writes).toHaveLength(count);
  });

  it("fits the terminal's rows and sums up the flows that are left out", () => {
    const { stream, text } = screen({ columns: 80, rows: 20 });
    new LiveView(stream, { scenario: "incast", color: false, now: () => 0 }).update(state(10, 64));
    const lines = text().trimEnd().split("\n");
    expect(lines.length).toBeLessThan(20);
    expect(lines.filter((line) => /^f\d/.test(line))).toHaveLength(8);
    const rest = Array.from({ length: 56 }, (_, i) => 10 / (i + 9)).reduce((a, b) => a + b);
    expect(lines).toContain(`+ 56 more flows, ${rest.toFixed(3)} Gb/s together`);
  });

  it("lets no name drive the terminal", () => {
    const { stream, writes } = screen({ columns: 80, rows: 20 });
    const hostile = state(10);
    const [flow] = hostile.flows;
    if (flow) hostile.flows = [{ ...flow, id: "x\u001b]0;owned\u0007\n" }];
    new LiveView(stream, { scenario: "\u001b[2J", color: false, now: () => 0 }).update(hostile);
    for (const sequence of ["\u001b]", "\u0007", "\u001b[2J"]) expect(writes.join("")).not.toContain(sequence);
  });
});

describe("LiveView elsewhere", () => {
  it("writes one plain line every 2 seconds", () => {
    const { stream, writes } = screen();
    let now = 0;
    const view = new LiveView(stream, { scenario: "incast", now: () => now });
    for (now = 0; now <= 4000; now += 100) view.update(state(now / 20));
    expect(writes).toHaveLength(3);
    expect(writes[1]).toBe(
      "incast: 40.0% of 250 ms, rate 15.000 Gb/s, queue 61.00 KB, marked 1200, cnp 40/39, pfc 7, drops 0, " +
        "loop gap max 912.0 us\n",
    );
    view.finish();
    expect(writes.join("")).not.toContain("\u001b");
  });
});
