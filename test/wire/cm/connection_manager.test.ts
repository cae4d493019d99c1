import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WeirError } from "../../../src/base/error.js";
import { guidOfMac } from "../../../src/wire/address.js";
import type { IncomingRequest } from "../../../src/wire/cm/connection_manager.js";
import { buildMessage, type Message, type MessageKind } from "../../../src/wire/cm/messages.js";
import type { Established } from "../../../src/wire/cm/parameters.js";
import { ConnectionRejected, kReject } from "../../../src/wire/cm/reject.js";
import {
  connected,
  endsOf,
  failureOf,
  hostile,
  kAddresses,
  kMacs,
  kPort,
  kResponseMs,
  kRetries,
  setUp,
} from "./pair.js";

describe("a connection", () => {
  it("tells each side about the other", async () => {
    const net = setUp();
    const privateData = Buffer.from("from the client");
    const connecting = net.connect({
      privateData,
      responderResources: 16,
      initiatorDepth: 4,
      rnrRetryCount: 3,
      retryCount: 5,
      pathMtu: 4096,
      ackTimeout: 16,
      trafficClass: 0x6a,
    });
    await net.clock.run(10);
    const [request] = net.requests as [IncomingRequest];
    expect(request).toMatchObject({
      port: kPort,
      remoteAddress: kAddresses[0],
      remoteMac: kMacs[0],
      remoteQpn: 17,
      remoteStartingPsn: 100,
      // Seen from here: the client's depth is what we have to serve.
      responderResources: 4,
      initiatorDepth: 16,
      rnrRetryCount: 3,
      retryCount: 5,
      pathMtu: 4096,
      ackTimeout: 16,
      trafficClass: 0x6a,
    });
    expect(request.privateData.subarray(0, privateData.length)).toEqual(privateData);
    const accepting = request.accept({
      qpn: 18,
      startingPsn: 200,
      privateData: Buffer.from("from the server"),
      // Less than the client asks for, and more than it offers.
      responderResources: 2,
      initiatorDepth: 128,
      rnrRetryCount: 2,
    });
    await net.clock.run(10);
    const client = await connecting;
    expect(client).toMatchObject({
      remoteAddress: kAddresses[1],
      remoteMac: kMacs[1],
      remoteQpn: 18,
      remoteStartingPsn: 200,
      responderResources: 16,
      initiatorDepth: 2,
      rnrRetryCount: 2,
      retryCount: 5,
      pathMtu: 4096,
      trafficClass: 0x6a,
      // The server's delay of 2^15 is no more than half of 2^16: one more step.
      ackTimeout: 17,
      flowLabel: request.flowLabel,
    });
    expect(client.privateData.subarray(0, 16).toString()).toBe("from the server\0");
    client.ready();
    await net.clock.run(10);
    expect(await accepting).toMatchObject({ remoteQpn: 17, responderResources: 2, initiatorDepth: 16 });
    expect(net.kinds()).toEqual(["REQ", "REP", "RTU"]);
  });

  it.each(["client", "server"] as const)("is ended by the %s, and both are told once", async (who) => {
    const net = setUp();
    const ends = await connected(net);
    const told: string[] = [];
    ends.client.onDisconnected(({ reason }) => told.push(`client: ${reason}`));
    ends.server.onDisconnected(({ reason }) => told.push(`server: ${reason}`));
    const done = ends[who].disconnect();
    void ends[who].disconnect();
    await net.clock.run(10);
    await done;
    const by = (side: string) => `${side}: ${side === who ? "own" : "peer"}`;
    expect(told.sort()).toEqual([by("client"), by("server")]);
    expect(net.kinds().slice(3)).toEqual(["DREQ", "DREP"]);
    let late = 0;
    ends.client.onDisconnected(() => late++);
    expect(late).toBe(1);
    // Nothing is kept for ever.
    await net.clock.run(3000);
    expect(net.clock.pending).toBe(0);
  });

  it("is ended by both at once", async () => {
    const net = setUp();
    const ends = await connected(net);
    const how = endsOf(ends);
    const done = [ends.client.disconnect(), ends.server.disconnect()];
    await net.clock.run(10);
    await Promise.all(done);
    // Each hears of the other's before its own is answered, as on Linux.
    expect(how).toEqual({ client: { reason: "peer" }, server: { reason: "peer" } });
    expect(net.kinds().slice(3)).toEqual(["DREQ", "DREQ", "DREP", "DREP"]);
  });

  it("is one of many, each to its own", async () => {
    const net = setUp();
    const connecting = Array.from({ length: 20 }, (_, i) => net.connect({ qpn: 100 + i }));
    await net.clock.run(10);
    const accepting = net.requests.map((request) => request.accept({ qpn: request.remoteQpn + 1000, startingPsn: 0 }));
    await net.clock.run(10);
    const clients = await Promise.all(connecting);
    for (const client of clients) client.ready();
    await net.clock.run(10);
    expect(clients.map(({ remoteQpn }) => remoteQpn)).toEqual(clients.map((_, i) => 1100 + i));
    expect((await Promise.all(accepting)).map(({ remoteQpn }) => remoteQpn)).toEqual(clients.map((_, i) => 100 + i));
  });

  it("is rejected by the application, with its words", async () => {
    const net = setUp();
    const failing = failureOf(net.connect());
    await net.clock.run(10);
    net.requests[0]?.reject(Buffer.from("full"));
    await net.clock.run(10);
    const error = (await failing) as ConnectionRejected;
    expect(error).toBeInstanceOf(ConnectionRejected);
    expect(error.message).toContain("consumer reject (28)");
    expect(error.privateData.subarray(0, 5).toString()).toBe("full\0");
  });
});

describe("a lost message", () => {
  // Numbers of REQ, REP and DREQ that it takes. For a lost REP the REQ comes again, and the REP both for it and by itself.
  it.each<[MessageKind, number[]]>([
    ["REQ", [2, 1, 1]],
    ["REP", [2, 3, 1]],
    ["RTU", [1, 2, 1]],
    ["DREQ", [1, 1, 2]],
    ["DREP", [1, 1, 2]],
  ])("%s is made up for", async (lost, counts) => {
    const net = setUp((message, count) => message.kind === lost && count === 1);
    const connecting = net.connect();
    // Long enough for one message more, where one was lost.
    const step = (kinds: MessageKind[]) => net.clock.run(kinds.includes(lost) ? kResponseMs + 10 : 10);
    await step(["REQ"]);
    const accepting = (net.requests[0] as IncomingRequest).accept({ qpn: 18, startingPsn: 200 });
    await step(["REP"]);
    const client = await connecting;
    client.ready();
    await step(["RTU"]);
    const server = await accepting;
    expect(net.requests).toHaveLength(1);
    const done = client.disconnect();
    let isEnded = false;
    server.onDisconnected(() => {
      isEnded = true;
    });
    await step(["DREQ", "DREP"]);
    await done;
    expect(isEnded).toBe(true);
    const count = (kind: MessageKind) => net.kinds().filter((other) => other === kind).length;
    expect([count("REQ"), count("REP"), count("DREQ")]).toEqual(counts);
  });

  it("of any kind, any number of them: both are connected, or neither", async () => {
    await fc.assert(
      fc.asyncProperty(fc.infiniteStream(fc.nat(99)), fc.constantFrom(10, 30, 60, 90), async (dice, loss) => {
        const net = setUp(() => (dice.next().value as number) < loss);
        const accepting: Promise<unknown>[] = [];
        const listener = net.requests;
        const connecting = failureOf(
          net.connect().then((client) => {
            client.ready();
            return client;
          }),
        );
        let served: Established | undefined;
        for (let i = 0; i < 60; i++) {
          await net.clock.run(kResponseMs);
          for (const request of listener.splice(0)) {
            const accepted = request.accept({ qpn: 18, startingPsn: 200 });
            const serve = async () => {
              served = await accepted;
            };
            accepting.push(failureOf(serve()));
          }
        }
        // Everything has settled by now.
        await connecting;
        await Promise.all(accepting);
        if (served !== undefined) {
          let isEnded = false;
          served.onDisconnected(() => {
            isEnded = true;
          });
          const done = served.disconnect();
          for (let i = 0; i < 40; i++) await net.clock.run(kResponseMs);
          await done;
          expect(isEnded).toBe(true);
        }
        net.client.cm.close();
        net.server.cm.close();
        await net.clock.run(10); // Frames that are on their way arrive meanwhile.
        expect(net.clock.pending).toBe(0);
      }),
      { numRuns: 40 },
    );
  });
});

describe("who does not answer", () => {
  it("is asked sixteen times; then the failure says so, and the peer is told", async () => {
    const net = setUp((message) => message.kind === "REQ");
    const failing = failureOf(net.connect());
    await net.clock.run(kResponseMs * (kRetries + 1) - 10);
    expect(net.kinds()).toEqual(Array(kRetries + 1).fill("REQ"));
    await net.clock.run(20);
    expect((await failing)?.message).toBe("10.9.0.2 port 7174 does not answer connection requests");
    expect((await failing)?.hint).toContain("4791");
    const last = net.seen.at(-1) as Message<"REJ">;
    expect(last).toMatchObject({ kind: "REJ", fields: { reason: kReject.timeout, infoLength: 8 } });
    expect(last.fields.info.subarray(0, 8)).toEqual(guidOfMac(kMacs[0]));
  });

  it("is not asked at all where it is a multicast group", async () => {
    const net = setUp();
    const failing = failureOf(net.connect({ destination: "239.1.2.3" }));
    await net.clock.run(100);
    expect((await failing)?.message).toBe("239.1.2.3 is a multicast group");
    expect(net.kinds()).toEqual([]);
  });

  it("is asked for as long as the caller wants; its application learns that it is too late", async () => {
    const net = setUp();
    const failing = failureOf(net.connect({ timeoutMs: 500 }));
    await net.clock.run(600);
    expect((await failing)?.message).toContain("does not answer");
    const [request] = net.requests as [IncomingRequest];
    expect((await failureOf(request.accept({ qpn: 18, startingPsn: 0 })))?.message).toContain("ended meanwhile");
    request.reject();
    await net.clock.run(5000);
    expect(net.kinds()).toEqual(["REQ", "REJ"]);
    expect(net.clock.pending).toBe(0);
  });

  it("is not waited for any more when whoever asked goes, and the peer hears that", async () => {
    const net = setUp();
    const gone = new AbortController();
    const connecting = failureOf(net.connect({ signal: gone.signal, sourcePort: 40_000 }));
    await net.clock.run(10);
    const [request] = net.requests as [IncomingRequest];
    expect(request.remotePort).toBe(40_000);
    const accepting = failureOf(request.accept({ qpn: 18, startingPsn: 200 }));
    gone.abort();
    await net.clock.run(10);
    expect((await connecting)?.message).toContain("does not answer");
    expect(await accepting).toBeInstanceOf(ConnectionRejected);
    await expect(net.connect({ signal: gone.signal })).rejects.toThrow();
  });

  it("may be taken back after it was accepted, until the peer is ready", async () => {
    const net = setUp();
    const connecting = net.connect();
    await net.clock.run(10);
    const [request] = net.requests as [IncomingRequest];
    const accepting = failureOf(request.accept({ qpn: 18, startingPsn: 200 }));
    await net.clock.run(10);
    const ended: string[] = [];
    (await connecting).onDisconnected(() => ended.push("client"));
    request.reject(Buffer.from("changed my mind"));
    await net.clock.run(10);
    expect((await accepting)?.message).toContain("has ended meanwhile");
    expect(ended).toEqual(["client"]);
  });

  it("to an acceptance fails it, and no old message brings the connection back", async () => {
    const net = setUp((message) => message.kind === "RTU" || message.kind === "MRA");
    const connecting = net.connect();
    await net.clock.run(10);
    const failing = failureOf((net.requests[0] as IncomingRequest).accept({ qpn: 18, startingPsn: 0 }));
    const client = await Promise.race([connecting, net.clock.run(10).then(() => connecting)]);
    await net.clock.run(kResponseMs * (kRetries + 1) + 10);
    expect((await failing)?.message).toContain("the acceptance of its connection request");
    await net.clock.run(10);
    expect(() => client.ready()).toThrow("ended meanwhile");
  });

  it("but asks for patience gets it: an application may think for a minute", async () => {
    const net = setUp();
    const connecting = net.connect();
    await net.clock.run(60_000);
    expect(net.kinds()).toEqual(["REQ", "REQ", "MRA"]);
    const accepting = (net.requests[0] as IncomingRequest).accept({ qpn: 18, startingPsn: 0 });
    await net.clock.run(10);
    const client = await connecting;
    // The client's queue pair may take its time, too.
    await net.clock.run(60_000);
    expect(net.kinds().slice(3)).toEqual(["REP", "REP", "MRA"]);
    client.ready();
    await net.clock.run(10);
    await accepting;
    expect(net.requests).toHaveLength(1);
  });

  it("to a DREQ is left alone after sixteen", async () => {
    const net = setUp((message) => message.kind === "DREQ");
    const { client, server } = await connected(net);
    const how = endsOf({ client, server });
    const done = client.disconnect();
    await net.clock.run(kResponseMs * kRetries);
    expect(how.client).toBeUndefined();
    await net.clock.run(kResponseMs + 10);
    await done;
    expect(net.kinds().filter((kind) => kind === "DREQ")).toHaveLength(kRetries + 1);
    expect(how).toEqual({ client: { reason: "timeout" } });
  });
});

it("a connection that is up and is rejected ends so, with the peer's reason and words", async () => {
  const net = setUp();
  const { client, server } = await connected(net);
  const how = endsOf({ client, server });
  const [req] = net.seen as [Message<"REQ">];
  const [rep] = net.seen.filter(({ kind }) => kind === "REP") as [Message<"REP">];
  const ids = { localId: req.fields.localId, remoteId: rep.fields.localId };
  const refusal = { ...ids, answered: 1, reason: kReject.timeout, privateData: Buffer.from("late") };
  hostile(net).send(buildMessage("REJ", 1n, refusal));
  expect(how.client).toBeUndefined();
  expect(how.server).toMatchObject({ reason: "rejected", code: kReject.timeout });
  expect(how.server?.reason === "rejected" && how.server.privateData.toString("latin1", 0, 5)).toBe("late\0");
});

describe("data before RTU", () => {
  it("is as good as RTU", async () => {
    const net = setUp((message) => message.kind === "RTU");
    const connecting = net.connect();
    await net.clock.run(10);
    const [request] = net.requests as [IncomingRequest];
    const accepting = request.accept({ qpn: 18, startingPsn: 0 });
    await net.clock.run(10);
    (await connecting).ready();
    request.dataReceived();
    expect((await accepting).remoteQpn).toBe(17);
    await net.clock.run(10_000);
    expect(net.kinds()).toEqual(["REQ", "REP", "RTU"]);
  });
});

describe("a port", () => {
  it("has one listener, and none after it is closed", async () => {
    const net = setUp();
    expect(() => net.server.cm.listen(kPort, () => {})).toThrow(WeirError);
    const listener = net.server.cm.listen(5000, () => {});
    listener.close();
    const failing = failureOf(net.connect({ port: 5000 }));
    await net.clock.run(10);
    expect(await failing).toMatchObject({ reason: kReject.invalidServiceId });
  });

  it.each([0, 65536, 1.5])("is not %s", async (port) => {
    const net = setUp();
    await expect(net.connect({ port })).rejects.toThrow(WeirError);
    expect(() => net.server.cm.listen(port, () => {})).toThrow(WeirError);
  });

  it("takes no more private data than fits, and no odd MTU", async () => {
    const net = setUp();
    await expect(net.connect({ privateData: Buffer.alloc(57) })).rejects.toThrow("57 bytes of private data");
    await expect(net.connect({ pathMtu: 1500 as 1024 })).rejects.toThrow("1500 bytes");
    expect(net.seen).toEqual([]);
  });
});

describe("close", () => {
  it("tells peers, fails what waits, leaves no timer", async () => {
    const net = setUp();
    const { client, server } = await connected(net);
    const how = endsOf({ client, server });
    const failing = failureOf(net.connect({ qpn: 99 }));
    await net.clock.run(10);
    net.client.cm.close();
    net.client.cm.close();
    expect((await failing)?.message).toContain("the device was closed");
    await net.clock.run(10);
    expect(how).toEqual({ client: { reason: "closed" }, server: { reason: "peer" } });
    net.server.cm.close();
    await net.clock.run(10);
    expect(net.clock.pending).toBe(0);
  });
});
