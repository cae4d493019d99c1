/** Peers without a MAC address in the file: asked for by ARP, followed, and told to the native core. */
import { describe, expect, it } from "vitest";
import { Peers } from "../../src/daemon/peers.js";
import { arpReply, readArp } from "../../src/wire/cm/arp.js";
import { Neighbours } from "../../src/wire/cm/neighbour.js";
import { FakeClock, FakeLink } from "../wire/cm/fakes.js";

const kMac = 0x02_00_00_00_00_01;
const kPeer = 0x02_00_00_00_00_02;
const kOther = 0x02_00_00_00_00_03;

/** A link with hosts at some addresses, which can be changed. */
function rig(hosts: Map<string, number>, wanted: readonly string[]) {
  const clock = new FakeClock();
  const link = new FakeLink(kMac);
  link.onSend = (frame) => {
    const asked = readArp(frame)?.targetAddress ?? "";
    const mac = hosts.get(asked);
    const reply = mac === undefined ? undefined : arpReply(frame, asked, mac);
    if (reply !== undefined) clock.after(0, () => link.receive(reply));
  };
  const told: unknown[] = [];
  const peers = new Peers(
    new Neighbours({ link, address: "10.0.0.1", answers: false, clock }),
    wanted,
    { found: (...news) => void told.push(news), silent: (address) => void told.push(address) },
    clock,
  );
  return { clock, link, peers, told };
}

describe("peers of a NIC", () => {
  it("are asked for at once, each once", async () => {
    const { clock, link, peers, told } = rig(new Map([["10.0.0.2", kPeer]]), ["10.0.0.2", "10.0.0.2"]);
    expect(link.sent).toHaveLength(1);
    expect(readArp(link.sent[0] as Buffer)).toMatchObject({
      operation: "request",
      senderMac: kMac,
      senderAddress: "10.0.0.1",
      targetAddress: "10.0.0.2",
    });
    await clock.run(10);
    expect(told).toEqual([["10.0.0.2", kPeer, undefined]]);
    expect([...peers.macs]).toEqual([["10.0.0.2", kPeer]]);
    peers.close();
  });

  it("are asked for until they answer; that they do not is told once", async () => {
    const hosts = new Map<string, number>();
    const { clock, link, peers, told } = rig(hosts, ["10.0.0.2"]);
    await clock.run(60_000);
    expect(told).toEqual(["10.0.0.2"]);
    // Three requests, a second apart, and a second of rest.
    expect(link.sent.length).toBeGreaterThan(40);
    expect(link.sent.length).toBeLessThan(61);
    hosts.set("10.0.0.2", kPeer);
    await clock.run(4000);
    expect(told).toEqual(["10.0.0.2", ["10.0.0.2", kPeer, undefined]]);
    peers.close();
    expect(clock.pending).toBeLessThanOrEqual(1);
  });

  it("are followed to another MAC address, and asked rarely as long as they stay", async () => {
    const hosts = new Map([["10.0.0.2", kPeer]]);
    const { clock, link, peers, told } = rig(hosts, ["10.0.0.2"]);
    await clock.run(600_000);
    expect(told).toHaveLength(1);
    expect(link.sent.length).toBeLessThan(20);
    hosts.set("10.0.0.2", kOther);
    await clock.run(60_000);
    expect(told.slice(1)).toEqual([["10.0.0.2", kOther, kPeer]]);
    // The peer is gone: its MAC address stays, and its return is told if that is another.
    hosts.clear();
    await clock.run(120_000);
    expect(told.slice(2)).toEqual(["10.0.0.2"]);
    expect(peers.macs.get("10.0.0.2")).toBe(kOther);
    hosts.set("10.0.0.2", kOther);
    await clock.run(60_000);
    expect(told).toHaveLength(3);
    peers.close();
    const sent = link.sent.length;
    await clock.run(600_000);
    expect(link.sent).toHaveLength(sent);
  });
});
