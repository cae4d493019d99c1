/** Readings as `weir top` takes them. */

import type { CounterValue } from "../../../src/device/protocol.js";
import type { ControlledDevice } from "../../../src/device/running.js";
import type { Reading, Sample } from "../../../src/watch/top/sample.js";
import { describedAs } from "../../native/counters.js";
import { kNic, port } from "../show/answers.js";

export const device = (name: string, kind: "switch" | "nic"): ControlledDevice => ({
  name,
  kind,
  socket: "",
  device: undefined,
  owner: undefined,
});

export const counter = (name: string, labels: Record<string, string>, value: number): CounterValue => ({
  name,
  unit: "",
  meaning: describedAs(name, labels).meaning,
  labels,
  value,
});

const nicCounter = (name: string, value: number, more: Record<string, string> = {}) =>
  counter(name, { device: "h1", ...more }, value);
const switchCounter = (name: string, value: number, more: Record<string, string> = {}) =>
  counter(name, { switch: "sw", port: "h1", ...more }, value);

/** A reading after `seconds` of steady traffic. */
export function nicReading(seconds: number): Reading {
  const pair = { qpn: "0x000011", flow: "to-b" };
  return {
    device: device("lab.h1", "nic"),
    scale: 40,
    counters: {
      since: "",
      at_ns: seconds * 1e9,
      counters: [
        nicCounter("tx_bytes", 1.25e9 * seconds),
        nicCounter("tx_packets", 1e6 * seconds),
        nicCounter("rx_packets", 5 * seconds),
        nicCounter("tx_wire_bytes", 1.3e9 * seconds, pair),
        nicCounter("tx_bytes", 1.2e9 * seconds, pair),
        nicCounter("rx_prio_pause", 2 * seconds, { priority: "3" }),
        nicCounter("np_ecn_marked_roce_packets", 7 * seconds),
        nicCounter("drop_malformed", seconds),
        nicCounter("rx_icrc_encapsulated", seconds),
        nicCounter("lost", 100 * seconds, { port: "sw" }),
      ],
    },
    ports: [port("weir0")],
    queueBytes: undefined,
    pairs: kNic.queue_pairs ?? [],
  };
}

export function switchReading(seconds: number): Reading {
  return {
    device: device("lab.sw", "switch"),
    scale: 40,
    counters: {
      since: "",
      at_ns: seconds * 1e9,
      counters: [
        switchCounter("rx_bytes", 1.25e9 * seconds),
        switchCounter("wred_ecn_marked_packets", 3 * seconds, { priority: "3" }),
        switchCounter("wred_ecn_marked_packets", 4 * seconds, { priority: "4" }),
        switchCounter("pfc_tx_packets", 9 * seconds, { priority: "3" }),
        switchCounter("drop_runt", 2 * seconds),
        switchCounter("drop_no_route", seconds),
        switchCounter("host_rx_overrun", seconds),
      ],
    },
    ports: [port("h1"), port("r")],
    queueBytes: [0, 61_200],
    pairs: [],
  };
}

/** A sample of `pairs` queue pairs: qp0 ... */
export function bigSample(pairs: number): Sample {
  return {
    time: "2026-01-01T12:03:44.000Z",
    devices: [{ name: "lab.h1", kind: "nic", scale: 40 }],
    queue_pairs: Array.from({ length: pairs }, (_, i) => ({
      device: "lab.h1",
      qp: `qp${i}`,
      pid: null,
      peer: "r",
      stage: "fast_recovery",
      rate_bps: 1e9 * (i + 1),
      target_rate_bps: 2e9 * (i + 1),
      alpha: 0.5,
      tx_bps: 1e9,
      rx_bps: 0,
      bytes: 1e6,
    })),
    ports: [
      {
        device: "lab.h1",
        port: "weir0",
        rx_bps: 0,
        tx_bps: 4e9,
        rx_pps: 0,
        tx_pps: 1e6,
        queue_bytes: null,
        marks_per_s: 0.25,
        pauses_rx_per_s: 12,
        pauses_tx_per_s: 0,
        drops_per_s: 0,
      },
    ],
  };
}
