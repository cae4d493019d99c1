/** Peers without a MAC address in the file: asked for, followed, and told to the native core. */
import { describe, expect, it } from "vitest";
import { Peers } from "../../src/daemon/peers.js";
import { FakeClock } from "../wire/cm/fakes.js";

const kPeer = 0x02_00_00_00_00_02;
const kOther = 0x02_00_00_00_00_03;

/** Hosts at some addresses, which can be changed; who is not there is given up after three seconds. */
function rig(hosts: Map<string, number>, wanted: readonly string[]) {
  const clock = new FakeClock();
  const asked: string[] = [];
  const resolve = async (address: string) => {
    asked.push(address);
    const mac = hosts.get(address);
    if (mac === undefined) {
      await new Promise<void>((end) => void clock.after(3000, end));
      throw new Error("nobody answers");
    }
    return mac;
  };
  const told: unknown[] = [];
  const events = { found: (...news: unknown[]) => void told.push(news), silent: (one: string) => void told.push(one) };
  return { clock, asked, peers: new Peers({ resolve }, wanted, events, clock), told };
}

describe("peers of a NIC", () => {
  it("are asked for at once, each once", async () => {
    const { clock, asked, peers, told } = rig(new Map([["10.0.0.2", kPeer]]), ["10.0.0.2", "10.0.0.2"]);
    expect(asked).toEqual(["10.0.0.2"]);
    await clock.run(10);
    expect(told).toEqual([["10.0.0.2", kPeer, undefined]]);
    expect([...peers.macs]).toEqual([["10.0.0.2", kPeer]]);
    peers.close();
  });

  it("are asked for until they answer; that they do not is told once", async () => {
    const hosts = new Map<string, number>();
    const { clock, asked, peers, told } = rig(hosts, ["10.0.0.2"]);
    await clock.run(60_000);
    expect(told).toEqual(["10.0.0.2"]);
    // Three seconds each, and a second of rest.
    expect(asked.length).toBeGreaterThan(13);
    expect(asked.length).toBeLessThan(17);
    hosts.set("10.0.0.2", kPeer);
    await clock.run(4000);
    expect(told).toEqual(["10.0.0.2", ["10.0.0.2", kPeer, undefined]]);
    peers.close();
    expect(clock.pending).toBeLessThanOrEqual(1);
  });

  it("are followed to another MAC address", async () => {
    const hosts = new Map([["10.0.0.2", kPeer]]);
    const { clock, asked, peers, told } = rig(hosts, ["10.0.0.2"]);
    await clock.run(600_000);
    expect(told).toHaveLength(1);
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
    const before = asked.length;
    await clock.run(600_000);
    expect(asked).toHaveLength(before);
  });
});
