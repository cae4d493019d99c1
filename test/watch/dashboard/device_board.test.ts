/** A daemon behind a dashboard: its session and frames, and when they are made. */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Device } from "../../../src/device/device.js";
import type { DeviceConfig } from "../../../src/device/file/load.js";
import { loadNicDaemon, loadSwitchDaemon } from "../../../src/device/file/load.js";
import { DeviceBoard } from "../../../src/watch/dashboard/device_board.js";
import type { Frame, Session } from "../../../src/watch/dashboard/protocol.js";
import type { Counter } from "../../clocks/lab/evidence.js";
import { FakeCounters } from "./fake_lab.js";

const kSwitch = `
name: sw0
ports: [{ interface: a, rate: 1Gbps }, { interface: b, rate: 1Gbps }]
ecn: { kmin: 20KB, kmax: 200KB }
`;
const kNic = `
name: roce0
interface: eth1
address: 10.0.0.1
peers: [{ name: b, address: 10.0.0.2, mac: "02:00:00:00:00:02" }]
queue_pairs: [{ name: to-b, peer: b, send: {} }, { name: back, peer: b }]
`;
const zeros = [0, 0, 0, 0, 0, 0, 0, 0];

function board(config: DeviceConfig, own: Counter[], device: Partial<Device> = {}) {
  const counters = new FakeCounters(own);
  const told: (Session | Frame)[] = [];
  const audience = {
    watched: true,
    session: (session: Session) => void told.push(structuredClone(session)),
    frame: (frame: Frame) => void told.push(structuredClone(frame)),
  };
  const changed: (readonly string[])[] = [];
  let kmin: string | undefined;
  const set = () => (kmin === undefined ? [] : [`ecn.kmin=${kmin}`]);
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  const one = new DeviceBoard(audience, {
    version: "1.2.3",
    device: { counted: () => counters.table, loopGap: () => 3000, ...device } as Device,
    config: () => config,
    file: () => ({
      kind: config.kind,
      path: "x.yaml",
      text: config.kind === "switch" ? kSwitch : kNic,
      set: set(),
      warnings: [],
    }),
    change: (set) => {
      changed.push(set);
      kmin = "1KB";
    },
  });
  onTestFinished(() => {
    one.close();
    vi.useRealTimers();
  });
  const reload = (value: string) => {
    kmin = value;
    one.told();
  };
  return { board: one, counters, told, changed, reload, audience };
}

describe("a switch's dashboard", () => {
  const { config } = loadSwitchDaemon("sw0.yaml", { text: kSwitch });
  const port = { up: true, ingress_bytes: zeros, headroom_bytes: zeros, paused: 0, pausing: 0 };
  const ports = ["a", "b"].map((name) => ({ ...port, name, queue_bytes: [0, 0, 0, 700, 0, 0, 0, 0] }));
  const buffer = { total: 12e6, shared: 11e6, occupied: 700, watermark: 700, pfc_threshold: 9e6 };
  const device = { switchReport: () => ({ buffer, ports }) } as unknown as Device;
  const own = (): Counter[] => [
    ["queue_packets", { switch: "sw0", port: "b", priority: "3" }, 10],
    ["queue_packets", { switch: "sw0", port: "a", priority: "6" }, 0],
    ["rx_bytes", { switch: "sw0", port: "a" }, 0],
    ["tx_bytes", { switch: "sw0", port: "a" }, 0],
    ["wred_ecn_marked_packets", { switch: "sw0", port: "b", priority: "3" }, 0],
  ];

  it("shows ports as links, and queues from the first frame that they carry on", () => {
    const { board: one, counters, told } = board(config, own(), device);
    expect(one.session()).toMatchObject({
      kind: "switch",
      name: "sw0",
      scale: 1,
      duration_ns: null,
      topology: { links: [{ from: "a", to: "sw0", rate_bps: 1e9 }, { from: "b" }] },
      flows: [],
      runs: [],
      queues: [{ name: "sw0:b:3", switch: "sw0", port: "b", priority: 3, kmin: 20_000, kmax: 200_000, qeq: null }],
    });
    one.watched(true);
    counters.asOf = 50e6;
    counters.count(2, 1000);
    counters.count(3, 500);
    counters.count(4, 6);
    vi.advanceTimersByTime(50);
    expect(told.at(-1)).toMatchObject({
      run: 0,
      since_ns: 0,
      t_ns: 50e6,
      queues: { bytes: [700], peak: [700] },
      switches: [{ occupied: 700, xoff: 9e6 }],
      links: [
        { forward_bps: 160_000, backward_bps: 80_000, marks: 0 },
        { forward_bps: 0, backward_bps: 0, marks: 6 },
      ],
      events: [{ kind: "mark", where: "sw0:b:3", count: 6 }],
      loop_gap_max_us: 3,
    });
    counters.count(1, 1);
    vi.advanceTimersByTime(50);
    const [session, frame] = told.slice(-2) as [Session, Frame];
    expect(session.queues.map(({ name }) => name)).toEqual(["sw0:b:3", "sw0:a:6"]);
    expect(session.queues[1]).toMatchObject({ kmin: null });
    expect(frame.queues.bytes).toEqual([700, 0]);
  });

  it("makes 20 frames a second while somebody looks on, otherwise one, each from where the last ended", () => {
    const { board: one, told } = board(config, own(), device);
    const times = () => told.splice(0).map((frame) => ["since_ns", "t_ns"].map((key) => frame[key as never] / 1e6));
    one.watched(false);
    vi.advanceTimersByTime(2000);
    expect(times()).toEqual([
      [0, 1000],
      [1000, 2000],
    ]);
    one.watched(true);
    vi.advanceTimersByTime(1000);
    expect(times()).toEqual(Array.from({ length: 20 }, (_, i) => [2000 + 50 * i, 2050 + 50 * i]));
    one.watched(false);
    vi.advanceTimersByTime(1000);
    expect(times()).toEqual([[3000, 4000]]);
    one.close();
    // A page that goes with the server.
    one.watched(false);
    vi.advanceTimersByTime(9000);
    expect(told).toEqual([]);
  });

  it.each([
    ["congestion.algorithm=library", "congestion.algorithm"],
    ["congestion.library.file=/tmp/evil.so", "congestion.library.file"],
    ["congestion.library={file: /tmp/evil.so}", "congestion.library"],
    ["control=/tmp/other.sock", "control"],
    ["dashboard.address=0.0.0.0", "dashboard.address"],
    ["ports.0.interface=eth0", "ports.0.interface"],
  ])("refuses what a page has no business with, before anything reads it: %s", (assignment, field) => {
    const { board: one, changed } = board(config, own(), device);
    expect(() => one.change(["ecn.kmin=1KB", assignment])).toThrow(expect.objectContaining({ field }));
    expect(changed).toEqual([]);
  });

  it("composes no session for nobody", () => {
    const { board: one, told, audience, reload } = board(config, own(), device);
    audience.watched = false;
    one.change(["ecn.kmin=1KB"]);
    reload("2KB");
    expect(told).toEqual([]);
  });

  it("hands on changes, and tells of them and of those in the file, with their times", () => {
    const { board: one, told, changed, reload } = board(config, own(), device);
    vi.advanceTimersByTime(70);
    one.change(["ecn.kmin=1KB"]);
    expect(changed).toEqual([["ecn.kmin=1KB"]]);
    const [session] = told as [Session];
    expect(session).toMatchObject({ kind: "switch", changes: [{ t_ns: 70e6, set: ["ecn.kmin=1KB"] }] });
    vi.advanceTimersByTime(30);
    reload("20KB");
    reload("20KB");
    const changes = [...session.changes, { t_ns: 100e6, set: ["ecn.kmin=20KB"] }];
    expect(told.slice(1)).toMatchObject([{ changes }, { changes }]);
  });

  it("tells of what has happened in the words that it is given", () => {
    const { board: one } = board(config, own(), device);
    one.told(["drop at eth1 begins"]);
    expect(one.session().changes).toMatchObject([{ set: ["drop at eth1 begins"] }]);
  });

  it("tells of the latest 100 changes", () => {
    const { board: one } = board(config, own(), device);
    for (let i = 0; i < 105; i++) one.change([`ecn.kmin=${i}KB`]);
    const { changes } = one.session();
    expect([changes.length, changes[0]?.set, changes.at(-1)?.set]).toEqual([100, ["ecn.kmin=5KB"], ["ecn.kmin=104KB"]]);
  });
});

it("a NIC's dashboard shows queue pairs as flows", () => {
  const { config } = loadNicDaemon("roce0.yaml", { text: kNic });
  const pair = { name: "to-b", peer: "b", rate: 4e9, target_rate: 5e9, alpha: 0.5, limited: true };
  const idle = { ...pair, name: "back", rate: 0, limited: false };
  const device = { queuePairs: () => [pair, idle] } as unknown as Device;
  const own: Counter[] = [
    ["tx_bytes", { device: "roce0" }, 0],
    ["tx_wire_bytes", { device: "roce0", qpn: "0x000011", flow: "to-b" }, 0],
    ["rx_bytes", { device: "roce0" }, 0],
    ["tx_bytes", { device: "roce0", qpn: "0x000011", flow: "to-b" }, 0],
    ["cnp_handled", { device: "roce0", qpn: "0x000011", flow: "to-b" }, 0],
    ["rx_prio_pause", { device: "roce0", priority: "3" }, 0],
    ["rx_wire_bytes", { device: "roce0", qpn: "0x000011", flow: "to-b" }, 0],
    ["rx_wire_bytes", { device: "roce0", qpn: "0x000012", flow: "back" }, 0],
  ];
  const { board: one, counters, told } = board(config, own, device);
  one.watched(true);
  counters.asOf = 50e6;
  for (const place of [0, 1, 3]) counters.count(place, 1000);
  counters.count(4, 7);
  counters.count(5, 2);
  // A queue pair that sends is not there for what it hears.
  counters.count(6, 500);
  counters.count(7, 3000);
  vi.advanceTimersByTime(50);
  expect([one.session(), ...told]).toMatchObject([
    {
      kind: "nic",
      congestion_control: "dcqcn",
      topology: { links: [{ from: "roce0", to: "network" }] },
      flows: [
        { id: "to-b", from: "roce0", to: "b", priority: 3 },
        { id: "back", from: "b", to: "roce0", priority: 3 },
      ],
      queues: [],
    },
    {
      flows: { rate: [4e9, null], target: [5e9, null], alpha: [0.5, null], throughput: [160_000, 480_000] },
      switches: [],
      links: [{ forward_bps: 160_000, backward_bps: 0 }],
      // These events are the other end's, which sent them.
      events: [
        { kind: "cnp", where: "to-b", count: 7 },
        { kind: "pfc", where: "network:roce0:3", count: 2 },
      ],
    },
  ]);
});

describe("dashboard: in a daemon's file", () => {
  const at = (dashboard: string) =>
    loadSwitchDaemon("s", { text: `${kSwitch}\ndashboard: ${dashboard}` }).config.dashboard;

  it("is off, on, or somewhere", () => {
    expect(loadSwitchDaemon("s", { text: kSwitch }).config.dashboard).toBeUndefined();
    expect(at("false")).toBeUndefined();
    expect(at("true")).toEqual({ address: "127.0.0.1", port: 9466 });
    expect(loadNicDaemon("n", { text: `${kNic}\ndashboard: true` }).config.dashboard?.port).toBe(9467);
    expect(at("{ address: 0.0.0.0, token: 0123456789abcdef }")).toEqual({
      address: "0.0.0.0",
      port: 9466,
      token: "0123456789abcdef",
    });
  });

  it.each([
    ["{ token: short }", /16 to 128/],
    ["{ port: 0 }", /too small/],
    ["9466", /not expected here|true or false/],
    ["{ tokn: x }", /unknown field/],
  ])("%s is refused", (text, message) => expect(() => at(text)).toThrow(message));
});
