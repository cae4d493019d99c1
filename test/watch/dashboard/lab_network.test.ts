/** Frames of a lab: every event since the one before, rates in meant units. */
import { expect, it } from "vitest";
import { Frames } from "../../../src/device/frames.js";
import { kRecordWords, RecordKind } from "../../../src/native/types.js";
import { LabNetwork } from "../../../src/watch/dashboard/lab_network.js";
import type { Counter } from "../../clocks/lab/evidence.js";
import { smallScenario } from "../../clocks/lab/evidence.js";
import { FakeCounters, FakeLab } from "./fake_lab.js";

const atC = { switch: "sw", port: "c" };
const kSwitch: Counter[] = [
  ["wred_ecn_marked_packets", { ...atC, priority: "3" }, 100],
  ["pfc_tx_packets", { switch: "sw", port: "a", priority: "3" }, 4],
  ["tx_pfc_frames", { switch: "sw", port: "a" }, 4],
  ["drop_headroom_full", { switch: "sw", port: "a" }, 0],
  ["tx_bytes", atC, 5000],
  ["tx_packets", atC, 5],
  ["cn_cp_transmitted_cnms", { ...atC, priority: "3" }, 0],
  ["lost", { device: "sw", port: "b" }, 0],
  ["tx_port_down", { switch: "sw", port: "b" }, 0],
];
const kNics: Counter[] = [
  ["tx_bytes", { device: "a" }, 0],
  ["tx_bytes", { device: "a", qpn: "0x000011", flow: "x/a" }, 0],
  ["rx_wire_bytes", { device: "c", qpn: "0x000011", flow: "x/a" }, 0],
  ["cnp_sent", { device: "c", qpn: "0x000011", flow: "x/a" }, 0],
  ["tx_prio_pause", { device: "c", priority: "3" }, 0],
  ["rx_icrc_encapsulated", { device: "c" }, 0],
  ["host_rx_overrun", { device: "c" }, 0],
];

function setting(queues = ["sw:c:3", "sw:a:6"]) {
  const switches = new FakeCounters(kSwitch.map((counter) => [...counter]));
  const nics = new FakeCounters(kNics.map((counter) => [...counter]));
  const lab = new FakeLab(smallScenario(), switches, nics);
  return { lab, switches, nics, frames: new Frames(new LabNetwork(lab, 7, queues)) };
}

it("has every event since the one before, and none from before the first", () => {
  const { lab, switches, nics, frames } = setting();
  switches.count(0, 3);
  switches.count(1, 2);
  switches.count(2, 2);
  switches.count(3, 1);
  switches.count(6, 9);
  switches.count(7, 4);
  switches.count(8, 6);
  nics.count(3, 5);
  nics.count(4, 1);
  nics.count(5, 1);
  nics.count(6, 8);
  lab.time = 1e6;
  const { events, links, run, t_ns, loop_gap_max_us } = frames.take();
  expect({ run, t_ns, loop_gap_max_us }).toEqual({ run: 7, t_ns: 1e6, loop_gap_max_us: 7 });
  expect(events).toHaveLength(10);
  expect(events).toEqual(
    expect.arrayContaining([
      { kind: "mark", where: "sw:c:3", count: 3 },
      { kind: "pfc", where: "sw:a:3", count: 2 },
      { kind: "drop", where: "sw:a:headroom_full", count: 1 },
      { kind: "cnm", where: "sw:c:3", count: 9 },
      { kind: "drop", where: "sw:b:impairment", count: 4 },
      { kind: "drop", where: "sw:b:port_down", count: 6 },
      { kind: "cnp", where: "x/a", count: 5 },
      { kind: "pfc", where: "c:sw:3", count: 1 },
      { kind: "drop", where: "c:sw:wrong_icrc", count: 1 },
      { kind: "drop", where: "c:sw:host_rx_overrun", count: 8 },
    ]),
  );
  expect(links.map(({ marks, forward_pauses, backward_pauses }) => [marks, forward_pauses, backward_pauses])).toEqual([
    [0, 0, 2],
    [0, 0, 0],
    [3, 0, 0],
  ]);
  lab.time = 2e6;
  expect(frames.take().events).toEqual([]);
});

it("has loads of links with all that frames take, and what arrived of each flow, in meant units", () => {
  const { switches, nics, frames } = setting();
  // This is 1 ms of meant time.
  switches.asOf = nics.asOf = 10e6;
  switches.count(4, 1000);
  switches.count(5, 1);
  switches.count(2, 1);
  nics.count(0, 2000);
  nics.count(1, 2000);
  nics.count(2, 1106);
  const { links, flows } = frames.take();
  expect(links.map(({ forward_bps, backward_bps }) => [forward_bps, backward_bps])).toEqual([
    [2000 * 8e3, 84 * 8e3],
    [0, 0],
    [0, 1024 * 8e3],
  ]);
  expect(flows.throughput).toEqual([1106 * 8e3, 0]);
});

it("takes rates from the times that counters are of, however late they are read", () => {
  const { lab, nics, frames } = setting();
  nics.asOf = 10e6;
  nics.count(2, 1000);
  lab.time = 1.4e6;
  expect(frames.take().flows.throughput).toEqual([8e6, 0]);
  // Nothing new was published.
  lab.time = 1.8e6;
  expect(frames.take().flows.throughput).toEqual([0, 0]);
  nics.asOf = 30e6;
  nics.count(2, 2000);
  lab.time = 2.2e6;
  expect(frames.take().flows.throughput).toEqual([8e6, 0]);
});

it("has rates of flows that send, and lengths and peaks of queues", () => {
  const { lab, frames } = setting();
  const words = new Float64Array(3 * kRecordWords);
  words.set([100e6, RecordKind.transmit, 0, 0, 2e9, 3e9, 0.25, 0], 0);
  words.set([100e6, RecordKind.queue, 0, 2 * 8 + 3, 500, 90_000, 0, 0], kRecordWords);
  words.set([200e6, RecordKind.queue, 0, 2 * 8 + 3, 700, 40_000, 0, 0], 2 * kRecordWords);
  lab.recorder.take(words, 3);
  const ports = lab.state.ports;
  if (ports[0] !== undefined) ports[0].queue_bytes[6] = 64;
  if (ports[2] !== undefined) ports[2].queue_bytes[3] = 800;
  lab.state.buffer.occupied = 864;
  const { flows, queues, switches } = frames.take();
  expect(flows).toMatchObject({ rate: [20e9, null], target: [30e9, null], alpha: [0.25, null] });
  expect(queues).toEqual({ bytes: [800, 64], peak: [90_000, 64] });
  expect(switches).toEqual([{ occupied: 864, xoff: 5e5 }]);
  expect(frames.take().queues.peak).toEqual([800, 64]);
});
