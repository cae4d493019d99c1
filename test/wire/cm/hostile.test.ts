/** A connection manager gets messages that it should not get. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { WeirError } from "../../../src/base/error.js";
import type { IncomingRequest } from "../../../src/wire/cm/connection_manager.js";
import { buildMadFrame, readMadFrame } from "../../../src/wire/cm/frame.js";
import { buildMessage, kAnswered, type Message, readMessage } from "../../../src/wire/cm/messages.js";
import { kReject } from "../../../src/wire/cm/reject.js";
import { connected, failureOf, gid, hostile, kAddresses, kMacs, kPort, setUp } from "./pair.js";

describe("a request", () => {
  it.each([
    ["another transport", { transportService: 1 }, kReject.invalidTransportService],
    ["XRC", { transportService: 3, extendedTransport: 1 }, kReject.invalidTransportService],
    ["no MTU", { pathMtu: 0 }, kReject.invalidPathMtu],
    ["an MTU of the future", { pathMtu: 6 }, kReject.invalidPathMtu],
    ["another space of ports", { serviceId: (0x0111n << 16n) | BigInt(kPort) }, kReject.invalidServiceId],
    ["somebody else", { remoteGid: gid(3) }, kReject.invalidRemoteGid],
    ["no header of RDMA CM", { privateData: Buffer.alloc(92, 0xff) }, kReject.unsupportedRequest],
  ] as const)("for %s is rejected", (_, fields, reason) => {
    const net = setUp();
    hostile(net).request(fields);
    expect(net.server.link.takeMessages()).toMatchObject([{ kind: "REJ", fields: { remoteId: 5, reason } }]);
    expect(net.requests).toEqual([]);
    expect(net.clock.pending).toBe(1); // That is the frame on its way: nothing is kept.
  });

  it("that says another source than its packet is dropped and counted", () => {
    const net = setUp();
    const peer = hostile(net);
    peer.request({ localGid: gid(7) });
    peer.request({ localId: 0 });
    expect(net.server.link.sent).toEqual([]);
    expect(net.server.cm.counters.malformed).toBe(2);
  });

  it("on a queue pair that is connected ends that connection first", async () => {
    const net = setUp();
    const { server } = await connected(net);
    let isEnded = false;
    server.onDisconnected(() => {
      isEnded = true;
    });
    net.server.link.take();
    hostile(net).request({});
    expect(net.server.link.takeMessages()).toMatchObject([
      { kind: "DREQ" },
      { kind: "REJ", fields: { remoteId: 5, reason: kReject.staleConnection } },
    ]);
    expect(isEnded).toBe(true);
  });

  it("that is refused anyway ends no connection", async () => {
    const net = setUp();
    const { server } = await connected(net);
    let isEnded = false;
    server.onDisconnected(() => {
      isEnded = true;
    });
    hostile(net).request({ serviceId: (0x0106n << 16n) | 5000n });
    expect(net.server.link.takeMessages().at(-1)).toMatchObject({ fields: { reason: kReject.invalidServiceId } });
    expect(isEnded).toBe(false);
  });

  it("too many of one peer make its oldest give way, and each hears of it", async () => {
    const net = setUp();
    const peer = hostile(net);
    for (let i = 1; i <= 1281; i++) peer.request({ localId: i, localQpn: i });
    expect(net.requests).toHaveLength(1281);
    const refusal = { remoteId: 1, answered: kAnswered.REQ, reason: kReject.noResources };
    expect(net.server.link.takeMessages()).toMatchObject([{ kind: "REJ", fields: refusal }]);
    expect(net.server.cm.counters.evicted).toBe(1);
    const failure = await failureOf((net.requests[0] as IncomingRequest).accept({ qpn: 18, startingPsn: 0 }));
    expect(failure?.message).toContain("ended meanwhile");
    // Nothing of it is kept: the same request is a new one.
    peer.request({ localId: 1, localQpn: 1 });
    expect(net.requests).toHaveLength(1282);
  });

  it("of forged peers, however many, keep nobody out: the oldest half-open ones give way", async () => {
    const net = setUp();
    const accepted: Promise<WeirError | undefined>[] = [];
    const forge = (from: number, count: number) => {
      const peer = hostile(net);
      for (let i = from; i < from + count; i++) {
        peer.request({ localId: i, localQpn: i }, `10.8.${i >> 8}.${i & 0xff}`);
        const request = net.requests.at(-1) as IncomingRequest;
        accepted.push(failureOf(request.accept({ qpn: i, startingPsn: 0 })));
      }
    };
    forge(1, 4200);
    expect(net.requests).toHaveLength(4200);
    expect(net.server.cm.counters).toMatchObject({ evicted: 4200 - 2048, refused: 0 });
    expect((await accepted[0])?.message).toContain("newer requests needed its room");
    // An honest client, in the middle of more of them.
    const connecting = net.connect();
    await net.clock.run(1);
    forge(5000, 100);
    await net.clock.run(1);
    const request = net.requests.find(({ remoteAddress }) => remoteAddress === kAddresses[0]) as IncomingRequest;
    const accepting = request.accept({ qpn: 18, startingPsn: 200 });
    await net.clock.run(1);
    forge(6000, 100);
    await net.clock.run(1);
    (await connecting).ready();
    await net.clock.run(1);
    expect((await accepting).remoteQpn).toBe(17);
    net.server.cm.close();
  });

  it("that is accepted and never confirmed is given up in time, whatever time it asks for", async () => {
    const net = setUp();
    const { request, send } = hostile(net);
    const forged = "10.8.0.1";
    // Hours for each answer, and 16 of them; and then an hour more, again and again.
    request({ localId: 5, localResponseTimeout: 31, maxRetries: 15 }, forged);
    const failing = failureOf((net.requests[0] as IncomingRequest).accept({ qpn: 18, startingPsn: 0 }));
    const [rep] = net.server.link.takeMessages() as [Message<"REP">];
    const patience = { localId: 5, remoteId: rep.fields.localId, answered: kAnswered.REP, serviceTimeout: 31 };
    for (let i = 0; i < 9; i++) {
      send(buildMessage("MRA", 1n, patience), forged);
      await net.clock.run(9_999);
    }
    expect(net.server.cm.counters.unconfirmed).toBe(0);
    await net.clock.run(20);
    expect(net.server.cm.counters.unconfirmed).toBe(1);
    expect((await failing)?.message).toContain("does not answer the acceptance of its connection request");
    await net.clock.run(3000);
    expect(net.clock.pending).toBe(0);
  });

  it("is refused where all that there may be are connected", async () => {
    const net = setUp();
    const peer = hostile(net);
    for (let i = 1; i <= 4096; i++) {
      peer.request({ localId: i, localQpn: i });
      const request = net.requests.at(-1) as IncomingRequest;
      void request.accept({ qpn: i, startingPsn: 0 });
      request.dataReceived();
    }
    await net.clock.run();
    net.server.link.take();
    peer.request({ localId: 4097, localQpn: 4097 });
    expect(net.requests).toHaveLength(4096);
    const refusal = { remoteId: 4097, reason: kReject.noResources };
    expect(net.server.link.takeMessages()).toMatchObject([{ kind: "REJ", fields: refusal }]);
    expect(net.server.cm.counters).toMatchObject({ evicted: 0, refused: 1 });
    net.server.cm.close();
  });
});

describe("stale and hostile messages", () => {
  it("about no connection change nothing; a DREQ is answered so that the peer can forget", () => {
    const net = setUp();
    const { send } = hostile(net);
    for (const kind of ["REP", "MRA", "REJ", "RTU", "DREP"] as const) {
      send(buildMessage(kind, 1n, { localId: 1, remoteId: 2 }));
    }
    expect(net.server.link.sent).toEqual([]);
    send(buildMessage("DREQ", 9n, { localId: 1, remoteId: 2 }));
    expect(net.server.link.takeMessages()).toMatchObject([
      { kind: "DREP", transaction: 9n, fields: { localId: 2, remoteId: 1 } },
    ]);
    expect(net.server.cm.counters.unexpected).toBe(6);
  });

  it("with a right ID, but from elsewhere, about another connection or queue pair, end nothing", async () => {
    const net = setUp();
    const { server } = await connected(net);
    let isEnded = false;
    server.onDisconnected(() => {
      isEnded = true;
    });
    const { localId, remoteId } = (net.seen[2] as Message<"RTU">).fields;
    const { send } = hostile(net);
    const dreq = { localId, remoteId, remoteQpn: 18 };
    send(buildMessage("DREQ", 1n, dreq), "10.9.0.3");
    send(buildMessage("DREQ", 1n, { ...dreq, remoteQpn: 19 }));
    send(buildMessage("DREQ", 1n, { ...dreq, localId: (localId ^ 1) >>> 0 }));
    send(buildMessage("REJ", 1n, { localId: (localId ^ 1) >>> 0, remoteId, reason: kReject.staleConnection }));
    send(buildMessage("DREP", 1n, { localId, remoteId }));
    send(buildMessage("MRA", 1n, { localId, remoteId, answered: kAnswered.REP, serviceTimeout: 31 }));
    send(buildMessage("REP", 1n, { localId, remoteId }));
    expect(isEnded).toBe(false);
    expect(net.server.cm.counters.unexpected).toBe(7);
    send(buildMessage("DREQ", 1n, dreq));
    expect(isEnded).toBe(true);
  });

  it("of whatever bytes are never a reason to fail", async () => {
    const net = setUp();
    await connected(net);
    const mads = net.client.link.sent.concat(net.server.link.sent).map((frame) => readMadFrame(frame)?.mad as Buffer);
    const { send } = hostile(net);
    fc.assert(
      fc.property(
        fc.constantFrom(...mads),
        fc.integer({ min: 0x0f, max: 0x1a }),
        fc.array(fc.tuple(fc.nat(255), fc.nat(255)), { maxLength: 6 }),
        (template, attribute, changes) => {
          const mad = Buffer.from(template);
          mad[17] = attribute;
          for (const [at, value] of changes) mad[at] = value;
          void readMessage(mad);
          send(mad);
        },
      ),
      { numRuns: 500 },
    );
  });

  it("from a group's MAC address are not answered to the group", () => {
    const net = setUp();
    const mad = buildMessage("DREQ", 9n, { localId: 1, remoteId: 2 });
    const [source, destination] = kAddresses;
    for (const sourceMac of [0, 0xffff_ffff_ffff, 0x3333_0000_0001]) {
      const frame = { destinationMac: kMacs[1], sourceMac, source, destination, psn: 0, mad };
      net.server.link.receive(buildMadFrame(frame, 1));
    }
    expect(net.server.link.sent).toEqual([]);
  });

  it("for queue pair 1 that are nothing we know are counted", () => {
    const net = setUp();
    hostile(net).send(Buffer.alloc(256));
    expect(net.server.cm.counters).toMatchObject({ malformed: 1, received: 0 });
  });
});
