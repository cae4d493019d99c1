/** Answers of a device, whoever runs it. */
import { expect, it } from "vitest";
import { Device, type DeviceSource, type NicSetting } from "../../src/device/device.js";
import { CounterTable } from "../../src/native/counters.js";
import type { ProgramState, QueuePairState } from "../../src/native/types.js";
import type { TrafficClasses } from "../../src/scenario/types.js";
import { describedAs } from "../native/counters.js";

const kPair: QueuePairState = {
  name: "to-b",
  qpn: 17,
  remote_qpn: 17,
  state: "ready",
  connecting: false,
  stage: "fast_recovery",
  rate: 1e9,
  target_rate: 1e9,
  alpha: 0.5,
  window: 0,
  limited: true,
  transport: "stream",
  priority: 3,
  program: 0,
  direct: false,
};

/** A NIC beside another one, both counted by one worker. */
function nic(
  algorithm: NicSetting["congestion"]["algorithm"],
  scale = 1,
  used: {
    pairs: QueuePairState[];
    states: ProgramState[];
    programs: ReturnType<NonNullable<DeviceSource["programs"]>>;
  } = {
    pairs: [kPair],
    states: [],
    programs: new Map(),
  },
): Device {
  const counts = [
    { labels: { device: "a" }, unit: "packets", value: 7 },
    { labels: { device: "b" }, unit: "packets", value: 9 },
    { labels: { device: "a", priority: "3" }, unit: "ns", value: 800 },
  ];
  const table = new CounterTable({
    manifest: () => counts.map(({ labels, unit }) => ({ ...describedAs("tx", labels), unit })),
    readCounters: (target) => {
      target.set(counts.map(({ value }) => value));
      return 4e9;
    },
  });
  table.refresh();
  const classes = { pfc: { enabled: true, priorities: [3] } } as unknown as TrafficClasses;
  const source: Partial<DeviceSource> = {
    kind: "nic",
    name: "a",
    scale,
    index: 0,
    worker: { queuePairs: () => used.pairs, programs: () => used.states } as unknown as DeviceSource["worker"],
    programs: () => used.programs,
    counted: () => table,
    switchSetting: () => undefined,
    nicSetting: () => ({
      classes,
      receiveBuffer: 1000,
      congestion: { algorithm, variant: "qcn", parameters: { rpgGd: 7 } } as unknown as NicSetting["congestion"],
      qcn: {
        priorities: [4, 3],
        reaction_points: 100,
        groups: new Map([[4, { rpgGd: 8 }]]),
      } as unknown as NicSetting["qcn"],
      pairs: [{ peer: "b", priority: 3 }],
    }),
  };
  const status = { uptime_s: 5, control: "/run/a.sock", metrics: null, dashboard: null };
  return new Device(source as DeviceSource, { version: "1.2.3", status: () => status });
}

it.each([
  ["dcqcn", 0.5],
  ["qcn", null],
  ["none", null],
] as const)("under %s alpha is %s", (algorithm, alpha) => {
  expect(nic(algorithm).queuePairs()[0]?.alpha).toBe(alpha);
});

it("tells what reaction points of each priority run on, under QCN", () => {
  expect(nic("qcn").reactionPoints()).toEqual([
    { priority: 3, variant: "qcn", most: 100, rpgGd: 7 },
    { priority: 4, variant: "qcn", most: 100, rpgGd: 8 },
  ]);
  expect(nic("dcqcn").reactionPoints()).toEqual([]);
});

it("tells that a peer does not acknowledge a reliable stream", () => {
  const pairs = [{ ...kPair, state: "idle" as const, connecting: true }];
  const [pair] = nic("none", 1, { pairs, states: [], programs: new Map() }).queuePairs();
  expect(pair?.state).toBe("connecting");
  expect(pair).not.toHaveProperty("connecting");
});

it("tells whose queue pairs are, and who the programs are", () => {
  const drops = { drop_busy: 1, drop_packet: 2 };
  const own: QueuePairState = {
    ...kPair,
    name: "",
    qpn: 99,
    transport: "rc",
    program: 7,
    qp_state: "rts",
    peer: "10.0.0.2",
  };
  const device = nic("dcqcn", 1, {
    pairs: [kPair, own],
    states: [
      { number: 7, queue_pairs: 1, ...drops, counters: { tx_packets: 5, tx_bytes: 500, rx_packets: 6, rx_bytes: 600 } },
    ],
    programs: new Map([[7, { pid: 4711, uid: 1000, command: "ib_write_bw" }]]),
  });
  expect(device.queuePairs().map(({ name, peer, program }) => [name, peer, program?.pid])).toEqual([
    ["to-b", "b", undefined],
    ["ib_write_bw/99", "10.0.0.2", 4711],
  ]);
  expect(device.programs()).toEqual([
    {
      ...{ pid: 4711, uid: 1000, command: "ib_write_bw", queue_pairs: 1 },
      ...{ tx_packets: 5, tx_bytes: 500, rx_packets: 6, rx_bytes: 600 },
      ...{ drop_program_busy: 1, drop_program_packet: 2 },
    },
  ]);
  expect(nic("dcqcn").programs()).toEqual([]);
});

it("tells what is its own, in meant units", () => {
  const device = nic("dcqcn", 40);
  const { at_ns, counters } = device.counters();
  expect(at_ns).toBe(1e8);
  expect(counters.map(({ labels, value }) => [labels.device, value])).toEqual([
    ["a", 7],
    ["a", 20],
  ]);
  expect(device.queuePairs()).toMatchObject([{ rate: 40e9, target_rate: 40e9, peer: "b", priority: 3 }]);
  expect(device.qos()).toMatchObject({ pfc_priorities: [3], headroom: [1000, 0, 0, 0, 0, 0, 0, 0] });
});

it("counts from the last clear on", () => {
  const device = nic("none");
  device.clear();
  expect(device.counters().counters.map(({ value }) => value)).toEqual([0, 0]);
});

it("answers requests by their names, and refuses what it does not have", () => {
  const device = nic("none");
  expect(Object.keys(device.answer({ request: "status" }) as object)).toEqual([
    "kind",
    "name",
    "version",
    "pid",
    "uptime_s",
    "scale",
    "control",
    "metrics",
    "dashboard",
  ]);
  expect(() => device.answer({ request: "switch" })).toThrow("a is a NIC: it has no queues or buffer of a switch");
  expect(() => device.answer({ request: "fdb" })).toThrow("a is a NIC: it has no forwarding table");
  expect(() => device.answer({ request: "constructor" })).toThrow("unknown request constructor");
});
