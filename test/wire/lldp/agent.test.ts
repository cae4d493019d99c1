/** LLDP at one port, in virtual time. */
import { describe, expect, it } from "vitest";
import { buildEthernet } from "../../../src/wire/ethernet.js";
import { kEthernetHeader, kEtherType } from "../../../src/wire/headers.js";
import { LldpAgent, type Neighbour } from "../../../src/wire/lldp/agent.js";
import { buildLldpdu, kNearestBridge, type Lldpdu, readLldpdu } from "../../../src/wire/lldp/lldpdu.js";
import { FakeClock } from "../cm/fakes.js";

const kMac = 0x02_00_00_00_00_01;
const kPeer = 0x02_00_00_00_00_02;

const pdu = (name: string, ttl = 120): Lldpdu => ({
  chassis: { subtype: 7, id: Buffer.from(name) },
  port: { subtype: 5, id: Buffer.from("p0") },
  ttl,
  systemName: name,
  managementAddresses: [],
  organization: [],
});

function frameOf(payload: Buffer, from = kPeer): Buffer {
  return buildEthernet(kNearestBridge, from, kEtherType.lldp, payload);
}

function rig(msgTxInterval = 30) {
  const clock = new FakeClock();
  const sent: { at: number; pdu: Lldpdu | undefined }[] = [];
  const events: string[] = [];
  const about = (neighbour: Neighbour) => neighbour.pdu.systemName ?? "";
  const link = {
    mac: kMac,
    send: (frame: Buffer) => {
      expect(frame.subarray(0, 12).toString("hex")).toBe("0180c200000e020000000001");
      sent.push({ at: clock.now(), pdu: readLldpdu(frame.subarray(kEthernetHeader)).pdu });
      return true;
    },
  };
  const local = { name: "own" };
  const agent = new LldpAgent(link, clock, { msgTxInterval, msgTxHold: 4 }, () => pdu(local.name), {
    changed: () => events.push("changed"),
    appeared: (neighbour) => events.push(`+${about(neighbour)}`),
    left: (neighbour, why) => events.push(`-${about(neighbour)} ${why}`),
    malformed: (_, why) => events.push(why),
  });
  const hear = (name: string, ttl?: number) => agent.receive(frameOf(buildLldpdu(pdu(name, ttl))));
  return { clock, sent, events, agent, hear, local, times: () => sent.splice(0).map(({ at }) => at / 1000) };
}

describe("an LLDP agent", () => {
  it("sends when the port comes up, then each interval, and tells for how long that counts", async () => {
    const { clock, agent, sent, times } = rig();
    await clock.run(60_000);
    expect(sent).toEqual([]);
    agent.setUp(true);
    await clock.run(0);
    expect(sent[0]?.pdu?.ttl).toBe(121);
    await clock.run(95_000);
    expect(times()).toEqual([60, 90, 120, 150]);
    agent.setUp(false);
    await clock.run(95_000);
    expect(times()).toEqual([]);
  });

  it("sends four in a row, a second apart, when a neighbour appears", async () => {
    const { clock, agent, hear, times } = rig();
    agent.setUp(true);
    await clock.run(10_000);
    times();
    hear("peer");
    await clock.run(40_000);
    expect(times()).toEqual([10, 11, 12, 13, 43]);
    hear("peer");
    await clock.run(10_000);
    expect(times()).toEqual([]);
  });

  it("sends what changes at once, five times in a row at most, then once a second", async () => {
    const { clock, agent, local, sent } = rig();
    agent.setUp(true);
    await clock.run(20_000);
    sent.splice(0);
    for (let i = 0; i < 40; i++) {
      local.name = `own${i}`;
      agent.localChanged();
      await clock.run(100);
    }
    const names = sent.map(({ pdu: told }) => told?.systemName);
    expect(names.slice(0, 5)).toEqual(["own0", "own1", "own2", "own3", "own4"]);
    expect(names.length).toBeLessThanOrEqual(9);
    expect(names.length).toBeGreaterThanOrEqual(8);
    await clock.run(1000);
    expect(sent.at(-1)?.pdu?.systemName).toBe("own39");
  });

  it("knows a neighbour for as long as that says, and who leaves no longer", async () => {
    const { clock, agent, hear, events } = rig();
    agent.setUp(true);
    hear("a", 2);
    hear("b", 100);
    expect(events.splice(0)).toEqual(["+a", "changed", "+b", "changed"]);
    await clock.run(1000);
    hear("a", 2);
    await clock.run(1500);
    expect(agent.neighbours.map(({ pdu: { systemName } }) => systemName)).toEqual(["a", "b"]);
    expect(events.splice(0)).toEqual([]); // nothing new was told
    await clock.run(600);
    expect(events.splice(0)).toEqual(["-a aged out", "changed"]);
    expect(agent.counts.ageouts).toBe(1);
    hear("b", 0);
    expect(events.splice(0)).toEqual(["-b shutdown", "changed"]);
    hear("b", 0);
    hear("c", 1);
    await clock.run(1000);
    expect(events.splice(0)).toEqual(["+c", "changed", "-c aged out", "changed"]);
    hear("d");
    agent.setUp(false);
    expect(events.splice(0)).toEqual(["+d", "changed", "-d port down", "changed"]);
    expect(agent.neighbours).toEqual([]);
  });

  it("counts what is malformed, complains once, and keeps what it knew", () => {
    const { agent, hear, events } = rig();
    agent.setUp(true);
    hear("a");
    events.splice(0);
    for (let i = 0; i < 3; i++) agent.receive(frameOf(Buffer.from("0207", "hex")));
    expect(events).toEqual(["has no port ID behind the chassis ID"]);
    agent.receive(frameOf(Buffer.concat([buildLldpdu(pdu("a")).subarray(0, -2), Buffer.from("0a01ff", "hex")])));
    expect(agent.counts).toMatchObject({ framesIn: 5, framesDiscarded: 3, framesInErrors: 4, tlvsDiscarded: 1 });
    expect(agent.neighbours).toHaveLength(1);
    agent.receive(Buffer.alloc(10));
    agent.receive(buildEthernet(kNearestBridge, kPeer, kEtherType.arp, Buffer.alloc(46)));
    expect(agent.counts.framesIn).toBe(5);
  });

  it("has room for sixteen neighbours, and listens to so many frames in a second", async () => {
    const { clock, agent, hear } = rig();
    agent.setUp(true);
    for (let i = 0; i < 40; i++) hear(`peer${i}`);
    expect(agent.neighbours).toHaveLength(16);
    expect(agent.counts).toMatchObject({ framesIn: 40, framesLimited: 8, tooManyNeighbours: 16 });
    await clock.run(1000);
    hear("peer0", 0);
    hear("peer39");
    expect(agent.neighbours).toHaveLength(16);
    expect(agent.counts).toMatchObject({ framesLimited: 8, tooManyNeighbours: 16 });
  });

  it("leaves with a time to live of 0, once, and then does nothing", async () => {
    const { clock, agent, hear, sent } = rig();
    agent.setUp(true);
    hear("a");
    await clock.run(5000);
    sent.splice(0);
    agent.close();
    agent.close();
    hear("b");
    agent.localChanged();
    await clock.run(100_000);
    expect(sent.map(({ pdu: told }) => [told?.ttl, told?.systemName])).toEqual([[0, undefined]]);
    expect(clock.pending).toBe(0);
  });
});
