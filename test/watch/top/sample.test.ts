/** Rates from two readings. */
import { expect, it } from "vitest";
import { sampleOf } from "../../../src/watch/top/sample.js";
import { counter, nicReading, switchReading } from "./samples.js";

const kTime = new Date("2026-01-01T12:03:44.000Z");
const after = (first: ReturnType<typeof nicReading>) => new Map([[first.device.name, first]]);

it("a queue pair: its limits as told, what it moved by the device's own clock", () => {
  const { queue_pairs } = sampleOf([nicReading(3)], after(nicReading(1)), kTime);
  expect(queue_pairs).toEqual([
    {
      device: "lab.h1",
      qp: "to-b",
      pid: null,
      peer: "b",
      stage: "fast_recovery",
      rate_bps: 4e8,
      target_rate_bps: 5e8,
      alpha: 0.25,
      tx_bps: 10.4e9,
      rx_bps: 0,
      bytes: 3.6e9,
    },
  ]);
});

it("a queue pair that only receives has no rate to be held to", () => {
  const reading = nicReading(1);
  const idle = { ...reading, pairs: reading.pairs.map((pair) => ({ ...pair, state: "idle" as const })) };
  expect(sampleOf([idle], new Map(), kTime).queue_pairs[0]).toMatchObject({
    stage: null,
    rate_bps: null,
    target_rate_bps: null,
    alpha: null,
  });
});

it("the port of a NIC: no queue, its priorities together, no impairments", () => {
  expect(sampleOf([nicReading(3)], after(nicReading(1)), kTime).ports).toEqual([
    {
      device: "lab.h1",
      port: "weir0",
      rx_bps: 0,
      tx_bps: 10e9,
      rx_pps: 5,
      tx_pps: 1e6,
      queue_bytes: null,
      marks_per_s: 7,
      pauses_rx_per_s: 2,
      pauses_tx_per_s: 0,
      drops_per_s: 2,
    },
  ]);
});

it("ports of a switch: what each counts, and what stands in its queues", () => {
  const { ports, devices } = sampleOf([switchReading(2)], after(switchReading(1)), kTime);
  expect(ports).toMatchObject([
    { port: "h1", rx_bps: 10e9, queue_bytes: 0, marks_per_s: 7, pauses_tx_per_s: 9, drops_per_s: 4 },
    { port: "r", rx_bps: 0, queue_bytes: 61_200, marks_per_s: 0, drops_per_s: 0 },
  ]);
  expect(devices).toEqual([{ name: "lab.sw", kind: "switch", scale: 40 }]);
});

it("what could not be sent is dropped, too", () => {
  const more = (seconds: number) => {
    const reading = switchReading(seconds);
    const lost = ["tx_port_down", "host_tx_errors"].map((name) =>
      counter(name, { switch: "sw", port: "r" }, 5 * seconds),
    );
    return { ...reading, counters: { ...reading.counters, counters: [...reading.counters.counters, ...lost] } };
  };
  expect(sampleOf([more(2)], after(more(1)), kTime).ports[1]).toMatchObject({ port: "r", drops_per_s: 10 });
});

it("what was sent live is not dropped", () => {
  const live = (seconds: number) => {
    const reading = switchReading(seconds);
    const sent = counter("host_tx_live", { switch: "sw", port: "r" }, 5 * seconds);
    return { ...reading, counters: { ...reading.counters, counters: [...reading.counters.counters, sent] } };
  };
  expect(sampleOf([live(2)], after(live(1)), kTime).ports[1]).toMatchObject({ port: "r", drops_per_s: 0 });
});

it("there are no rates at first, nor after counters were cleared", () => {
  expect(sampleOf([nicReading(3)], new Map(), kTime).ports[0]?.tx_bps).toBeNull();
  const cleared = {
    ...nicReading(4),
    counters: { since: "", at_ns: 4e9, counters: [counter("tx_bytes", { device: "h1" }, 1)] },
  };
  const { ports } = sampleOf([cleared], after(nicReading(3)), kTime);
  expect(ports[0]).toMatchObject({ tx_bps: null, drops_per_s: null, rx_bps: 0 });
});
