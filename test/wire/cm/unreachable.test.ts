/** Hosts that refuse RoCEv2 by ICMP. */
import { afterEach, describe, expect, it } from "vitest";
import { addressBytes } from "../../../src/wire/address.js";
import { internetChecksum } from "../../../src/wire/checksum.js";
import { ConnectionManager } from "../../../src/wire/cm/connection_manager.js";
import { readMadFrame } from "../../../src/wire/cm/frame.js";
import { buildEthernet } from "../../../src/wire/ethernet.js";
import { kEthernetHeader, kEtherType } from "../../../src/wire/headers.js";
import { FakeClock, FakeLink } from "./fakes.js";
import { failureOf } from "./pair.js";

const kOurs = 0x0200_0000_0001;
const kTheirs = 0x0200_0000_0002;
const kFamilies = [
  { family: "IPv4", ours: "10.9.0.1", theirs: "10.9.0.2", refusal: [3, 3] },
  { family: "IPv6", ours: "fd99::1", theirs: "fd99::2", refusal: [1, 4] },
] as const;

/** A frame with an ICMP message, from `theirs` to `ours`. */
function icmpFrame(from: string, to: string, message: Buffer, destinationMac = kOurs): Buffer {
  const isIpv6 = from.includes(":");
  const header = isIpv6 ? 40 : 20;
  const type = isIpv6 ? kEtherType.ipv6 : kEtherType.ipv4;
  const frame = buildEthernet(destinationMac, kTheirs, type, Buffer.alloc(header + message.length));
  const ip = frame.subarray(kEthernetHeader);
  if (isIpv6) {
    ip.set([0x60, 0, 0, 0, message.length >> 8, message.length & 255, 58, 64]);
    ip.set(addressBytes(from), 8);
    ip.set(addressBytes(to), 24);
    const pseudo = Buffer.from([0, 0, message.length >> 8, message.length & 255, 0, 0, 0, 58]);
    message.writeUInt16BE(internetChecksum(ip.subarray(8, 40), pseudo, message), 2);
  } else {
    ip.set([0x45, 0, (20 + message.length) >> 8, (20 + message.length) & 255, 0, 0, 0, 0, 64, 1]);
    ip.set(addressBytes(from), 12);
    ip.set(addressBytes(to), 16);
    ip.writeUInt16BE(internetChecksum(ip.subarray(0, 20)), 10);
    message.writeUInt16BE(internetChecksum(message), 2);
  }
  ip.set(message, header);
  return frame;
}

const closing: { close(): void }[] = [];
afterEach(() => {
  for (const each of closing.splice(0)) each.close();
});

describe.each(kFamilies)("a host without RDMA, $family", ({ ours, theirs, refusal }) => {
  function setUp() {
    const clock = new FakeClock();
    const link = new FakeLink(kOurs);
    const neighbours = { resolve: () => Promise.resolve(kTheirs) };
    const cm = new ConnectionManager({ link, address: ours, clock, neighbours });
    closing.push(cm);
    /** Has a kernel refuse a frame of ours. */
    const refuse = (frame: Buffer, change: (quoted: Buffer) => void = () => {}) => {
      const quoted = Buffer.from(frame.subarray(kEthernetHeader, kEthernetHeader + (ours.includes(":") ? 48 : 28)));
      change(quoted);
      link.receive(icmpFrame(theirs, ours, Buffer.concat([Buffer.from([...refusal, 0, 0, 0, 0, 0, 0]), quoted])));
    };
    return { clock, link, cm, refuse };
  }
  const options = { destination: theirs, port: 7174, qpn: 17, startingPsn: 1, pathMtu: 1024 as const };

  it("ends a request at once: no RoCEv2 responder", async () => {
    const { clock, link, cm, refuse } = setUp();
    const failing = failureOf(cm.connect(options));
    await clock.run(1);
    const [frame] = link.take() as [Buffer];
    expect(readMadFrame(frame)).toBeDefined();
    refuse(frame);
    const failure = await failing;
    expect(failure?.message).toBe(`no RoCEv2 responder at ${theirs}: port unreachable`);
    expect(failure?.hint).toContain("rxe");
    expect(clock.pending).toBe(0);
    expect(link.take()).toEqual([]);
  });

  it("ends the search for a datagram service, too", async () => {
    const { clock, link, cm, refuse } = setUp();
    const failing = failureOf(cm.services.resolve(theirs, 7174));
    await clock.run(1);
    refuse((link.take() as [Buffer])[0]);
    expect((await failing)?.message).toBe(`no RoCEv2 responder at ${theirs}: port unreachable`);
    expect(clock.pending).toBe(0);
  });

  it("is believed only about what was sent", async () => {
    const { clock, link, cm, refuse } = setUp();
    const failing = failureOf(cm.connect(options));
    await clock.run(1);
    const [frame] = link.take() as [Buffer];
    const ports = ours.includes(":") ? 40 : 20;
    const [source, destination] = ours.includes(":") ? [8, 24] : [12, 16];
    // Another port there, another of ours, other hosts.
    for (const at of [ports + 3, ports + 1, source + 3, destination + 3]) {
      refuse(frame, (quoted) => {
        quoted[at] = (quoted[at] as number) ^ 1;
      });
    }
    await clock.run(1100);
    expect(link.take()).toHaveLength(1); // sent again
    cm.close();
    expect((await failing)?.message).toContain("was closed");
  });
});
