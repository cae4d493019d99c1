/** LLDP and DCBX of two daemons' ports, joined in virtual time: what each tells, takes over, and complains of. */
import { describe, expect, it } from "vitest";
import { Discovery } from "../../src/daemon/discovery.js";
import { composeSwitchWorker } from "../../src/device/compose.js";
import { schedulerOf } from "../../src/device/ets.js";
import { type DeviceConfig, loadSwitchDaemon, nicFromData } from "../../src/device/file/load.js";
import { FakeClock } from "../wire/cm/fakes.js";

const kMacs = { sw: 0x02_00_00_00_00_10, nic: 0x02_00_00_00_00_20 };

const theSwitch = (more = "dcbx: true") =>
  loadSwitchDaemon("sw.yaml", {
    text: `name: sw\nports: [{ interface: a }, { interface: b }]\n${more}\n`,
    inspect: (name) => ({ mtu: 1500, mac: kMacs.sw + (name === "b" ? 1 : 0) }),
  }).config;
const theNic = (more: object = { dcbx: true }) =>
  nicFromData({ name: "nic", interface: "eth0", address: "10.0.0.1", ...more }, "nic.yaml", {
    inspect: () => ({ mtu: 1500, mac: kMacs.nic }),
  }).config;

type WithLldp = ConstructorParameters<typeof Discovery>[0];

class Daemon {
  readonly log: Record<string, unknown>[] = [];
  readonly discovery: Discovery;
  changes = 0;
  onSend: (port: number, frame: Buffer) => void = () => {};

  constructor(config: DeviceConfig, clock: FakeClock) {
    const say = (level: string) => (fields: object, msg: string) => void this.log.push({ level, msg, ...fields });
    const log = { info: say("info"), warn: say("warn"), error: say("error") };
    this.discovery = new Discovery(config as WithLldp, {
      version: "1.2.3",
      log: log as never,
      clock,
      send: (port, frame) => {
        this.onSend(port, frame);
        return true;
      },
      changed: () => this.changes++,
    });
  }

  warnings() {
    return this.log.filter(({ level }) => level !== "info").map(({ msg }) => msg);
  }
}

/** Port a of the switch, and the NIC's. */
function joined(sw: DeviceConfig, nic: DeviceConfig) {
  const clock = new FakeClock();
  const [a, b] = [new Daemon(sw, clock), new Daemon(nic, clock)];
  a.onSend = (port, frame) => void (port === 0 && clock.after(1, () => b.discovery.receive(0, frame)));
  b.onSend = (_, frame) => void clock.after(1, () => a.discovery.receive(0, frame));
  const up = async () => {
    a.discovery.setUp(0, true);
    b.discovery.setUp(0, true);
    await clock.run(5000);
  };
  return { clock, a, b, up };
}

describe("a switch and a NIC", () => {
  it("know each other, and the NIC does what the switch has", async () => {
    const nic = theNic({ dcbx: true, pfc: { priorities: [5] } });
    const { a, b, up, clock } = joined(theSwitch("dcbx: true\npfc: { priorities: [4, 3] }"), nic);
    expect(b.discovery.adopted()).toEqual({});
    await up();
    expect(b.discovery.adopted()).toMatchObject({
      pfc: { enabled: true, priorities: [3, 4] },
      scheduler: { strict: [6] },
    });
    expect(b.changes).toBeGreaterThan(0);
    expect(a.discovery.adopted()).toEqual({});
    const [neighbour] = b.discovery.lldpReport().ports[0]?.neighbours ?? [];
    expect(neighbour).toMatchObject({
      chassis: "02:00:00:00:00:10",
      port: "a",
      mac: "02:00:00:00:00:10",
      system_name: "sw",
      system_description: "Weir 1.2.3, software switch",
      capabilities: ["bridge"],
      ttl_s: 121,
    });
    expect(a.discovery.lldpReport().ports.map(({ neighbours }) => neighbours.length)).toEqual([1, 0]);
    expect(a.discovery.lldpReport().ports[0]?.neighbours[0]).toMatchObject({
      capabilities: ["station"],
      management_addresses: ["10.0.0.1"],
    });
    // The NIC tells what it does now.
    expect(a.discovery.dcbxReport().ports[0]?.peer?.pfc).toMatchObject({ willing: true, priorities: [3, 4] });
    expect([...a.warnings(), ...b.warnings()]).toEqual([]);

    a.discovery.close();
    await clock.run(10);
    expect(b.discovery.adopted()).toEqual({});
    expect(b.log.at(-1)).toMatchObject({ msg: "DCBX: ETS", of: "local" });
  });

  it("follow another file at once", async () => {
    const { a, b, up, clock } = joined(theSwitch(), theNic());
    await up();
    await clock.run(20_000);
    a.discovery.reconfigure(theSwitch("dcbx: true\npfc: { priorities: [2] }") as WithLldp);
    await clock.run(10);
    expect(b.discovery.adopted().pfc?.priorities).toEqual([2]);
    // Its LLDP alone stays.
    a.discovery.reconfigure(theSwitch("lldp: true") as WithLldp);
    await clock.run(10);
    expect(b.discovery.adopted()).toEqual({});
    expect(a.discovery.dcbxReport()).toEqual({ enabled: false, ports: [] });
    expect(b.discovery.lldpReport().ports[0]?.neighbours).toHaveLength(1);
  });

  it("that both insist on their PFC say so, once, and when it is over", async () => {
    const insists = theNic({ dcbx: { willing: false }, pfc: { priorities: [5] } });
    const { a, b, up, clock } = joined(theSwitch(), insists);
    await up();
    await clock.run(100_000);
    const found = { port: "a", local: [3], peer: [5] };
    expect(a.log.filter(({ level }) => level === "warn")).toMatchObject([found]);
    expect(a.discovery.dcbxReport().ports[0]?.mismatches).toEqual([{ of: "pfc", local: [3], peer: [5] }]);
    expect(b.discovery.dcbxReport().ports[0]?.mismatches).toEqual([{ of: "pfc", local: [5], peer: [3] }]);
    a.discovery.reconfigure(theSwitch("dcbx: true\npfc: { priorities: [5] }") as WithLldp);
    await clock.run(10);
    expect(a.log.at(-1)).toMatchObject({ msg: "DCBX: mismatch is over", of: "pfc" });
  });

  it("the switch does what is behind a port that is willing", async () => {
    const insists = theNic({ dcbx: { willing: false }, pfc: { priorities: [5] }, scheduler: { strict: [] } });
    const { a, b, up } = joined(theSwitch("dcbx: { ports: { a: { willing: true } } }"), insists);
    await up();
    expect(a.discovery.adopted()).toMatchObject({ pfc: { priorities: [5] }, scheduler: { strict: [] } });
    expect(a.discovery.dcbxReport().ports.map(({ willing }) => willing)).toEqual([true, false]);
    expect(b.discovery.adopted()).toEqual({});
    expect([...a.warnings(), ...b.warnings()]).toEqual([]);
  });

  it("tell which priority RoCEv2 has, and complain of another one", async () => {
    const programs = theNic({ dcbx: true, programs: { priority: 5 } });
    const { a, b, up } = joined(theSwitch("dcbx: { roce_priority: 4 }"), programs);
    await up();
    const mismatch = (local: number, peer: number) => [{ of: "roce-priority", local, peer }];
    expect(a.discovery.dcbxReport().ports[0]).toMatchObject({ peer_roce_priority: 5, mismatches: mismatch(4, 5) });
    expect(b.discovery.dcbxReport().ports[0]).toMatchObject({ peer_roce_priority: 4, mismatches: mismatch(5, 4) });
    expect(b.warnings()).toEqual(["DCBX: RoCEv2 has another priority at the peer"]);
  });

  it("one that cannot have what its peer has is willing no more, until its file changes", async () => {
    const { a, b, up, clock } = joined(theSwitch(), theNic({ dcbx: true, pfc: { priorities: [5] } }));
    await up();
    b.discovery.refuse("no room");
    await clock.run(2000);
    expect(b.discovery.adopted()).toEqual({});
    expect(b.discovery.dcbxReport().ports[0]).toMatchObject({ willing: false, mismatches: [{ of: "pfc" }] });
    expect(a.discovery.dcbxReport().ports[0]?.mismatches[0]?.of).toBe("pfc");
    b.discovery.reconfigure(theNic({ dcbx: true, pfc: { priorities: [5] } }) as WithLldp);
    expect(b.discovery.adopted().pfc?.priorities).toEqual([3]);
  });

  it("agree on congestion notification: an edge, until the NIC says that it has reaction points", async () => {
    const qcn = theSwitch("dcbx: true\nqcn: { enabled: true }");
    const defence = (of: Daemon) =>
      composeSwitchWorker(qcn, [], (port, cnpv) => of.discovery.defence(port, cnpv)).switches[0]?.ports.map(
        ({ cn_defence }) => cn_defence?.[3],
      );
    const without = joined(qcn, theNic());
    await without.up();
    expect(defence(without.a)).toEqual(["edge", "edge"]);
    const { a, up } = joined(qcn, theNic({ dcbx: true, congestion: { algorithm: "qcn" } }));
    expect(defence(a)).toEqual(["edge", "edge"]);
    await up();
    expect(defence(a)).toEqual(["interior-ready", "edge"]);
    expect(a.discovery.dcbxReport().ports.map(({ congestion }) => congestion)).toEqual([
      { 3: "interior-ready" },
      { 3: "edge" },
    ]);
    const alone = new Daemon(theSwitch("lldp: true\nqcn: { enabled: true }"), new FakeClock());
    expect(defence(alone)).toEqual(["interior-ready", "interior-ready"]);
  });
});

it("several peers on one link count as none", async () => {
  const clock = new FakeClock();
  const willing = theNic({ dcbx: true, pfc: { priorities: [5] } });
  const nic = new Daemon(willing, clock);
  nic.discovery.setUp(0, true);
  const peers = ["dcbx: true", "dcbx: true\npfc: { priorities: [2] }"].map((more, i) => {
    const config = theSwitch(more);
    const peer = new Daemon({ ...config, ports: config.ports.slice(i) }, clock);
    peer.onSend = (_, frame) => nic.discovery.receive(0, frame);
    return peer;
  });
  peers[0]?.discovery.setUp(0, true);
  await clock.run(10);
  expect(nic.discovery.adopted().pfc?.priorities).toEqual([3]);
  peers[1]?.discovery.setUp(0, true);
  await clock.run(10);
  expect(nic.discovery.adopted()).toEqual({});
  expect(nic.warnings()).toEqual(["DCBX: several peers on one link, none counts"]);
  peers[1]?.discovery.close();
  expect(nic.discovery.adopted().pfc?.priorities).toEqual([3]);
});

it("shares of a recommendation are weights, priorities of one class sharing alike; what is not ETS is strict", () => {
  const scheduler = schedulerOf({
    prio_tc: [0, 0, 0, 1, 2, 2, 3, 4],
    bandwidth: [30, 69, 1, 0, 0, 0, 0, 0],
    tsa: ["ets", "ets", "ets", "strict", "vendor", "ets", "ets", "ets"],
  });
  expect(scheduler).toEqual({ strict: [6, 7], weights: [10, 10, 10, 69, 1, 1, 1, 1] });
});
