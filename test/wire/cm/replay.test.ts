/** The other side is a capture of Linux: its frames are fed in, and the frames that it got are compared with those that we send. */
import { describe, expect, it } from "vitest";
import { ConnectionManager, type IncomingRequest } from "../../../src/wire/cm/connection_manager.js";
import { readMadFrame } from "../../../src/wire/cm/frame.js";
import { kMadHeader } from "../../../src/wire/cm/mad.js";
import type { Established } from "../../../src/wire/cm/parameters.js";
import { ConnectionRejected } from "../../../src/wire/cm/reject.js";
import { capturedMads, FakeClock, FakeLink, messageIn } from "./fakes.js";

const kServer = 0x52540a4d0001;
const kClient = 0x52540a4d0002;
const kFamilies = [
  { name: "rping", server: "10.77.0.1", client: "10.77.0.2", sourcePort: 0xe9b2 },
  { name: "rping6", server: "fd77::1", client: "fd77::2", sourcePort: 0xf6f6 },
];

function manager(mac: number, address: string, peer: number, randoms: number[]) {
  const clock = new FakeClock();
  const link = new FakeLink(mac);
  const cm = new ConnectionManager({
    link,
    address,
    clock,
    neighbours: { resolve: () => Promise.resolve(peer) },
    responseTimeout: 20,
    random: () => randoms.shift() ?? 1,
  });
  return { clock, link, cm };
}

/** MADs that were sent, without the headers around them. */
const sentMads = (link: FakeLink) => link.take().map((frame) => readMadFrame(frame)?.mad.toString("hex"));
const mad = (frame: Buffer | undefined) => readMadFrame(frame as Buffer)?.mad as Buffer;
/** Content of a MAD without the transaction ID, which the sender of a request makes up. */
const content = (bytes: Buffer) => Buffer.concat([bytes.subarray(0, 8), bytes.subarray(16)]).toString("hex");
const sentContent = (link: FakeLink) => link.take().map((frame) => content(mad(frame)));

describe.each(kFamilies)("against Linux, $name", ({ name, server, client, sourcePort }) => {
  const [req, rep, rtu, dreq, drep] = capturedMads(name) as [Buffer, Buffer, Buffer, Buffer, Buffer];

  it("the side that is asked answers as Linux did", async () => {
    const { fields } = messageIn(rep) as Extract<ReturnType<typeof messageIn>, { kind: "REP" }>;
    const { link, cm } = manager(kServer, server, kClient, [fields.localId]);
    const requests: IncomingRequest[] = [];
    cm.listen(0x1c06, (request) => requests.push(request));
    link.receive(req);
    const [request] = requests as [IncomingRequest];
    expect(request).toMatchObject({
      port: 7174,
      remoteAddress: client,
      remoteMac: kClient,
      remoteStartingPsn: name === "rping" ? 0x4d0179 : 0xc83d50,
      privateData: Buffer.alloc(56),
      responderResources: 1,
      initiatorDepth: 1,
      pathMtu: 1024,
      retryCount: 7,
      rnrRetryCount: 7,
      ackTimeout: 19,
    });
    const accepted = request.accept({ qpn: fields.localQpn, startingPsn: fields.startingPsn });
    await Promise.resolve();
    expect(sentMads(link)).toEqual([mad(rep).toString("hex")]);
    link.receive(rtu);
    const established = await accepted;
    expect(established.remoteQpn).toBe(request.remoteQpn);
    let ended = 0;
    established.onDisconnected(() => ended++);
    link.receive(dreq);
    expect(sentMads(link)).toEqual([mad(drep).toString("hex")]);
    expect(ended).toBe(1);
    expect(cm.counters).toMatchObject({ received: 3, sent: 2, duplicates: 0, malformed: 0, unexpected: 0 });
  });

  it("the side that asks asks as Linux did", async () => {
    const sent = messageIn(req) as Extract<ReturnType<typeof messageIn>, { kind: "REQ" }>;
    const { link, cm, clock } = manager(kClient, client, kServer, [sent.fields.localId, sourcePort]);
    const connecting = cm.connect({
      destination: server,
      port: 7174,
      qpn: sent.fields.localQpn,
      startingPsn: sent.fields.startingPsn,
      pathMtu: 1024,
    });
    await clock.run();
    const expected = Buffer.from(mad(req));
    if (name === "rping6") {
      // Linux took a port of its own range, and the flow label that follows from it.
      const flowLabel = (sourcePort * 31 + 7174) & 0xf_ffff;
      expected.writeUIntBE(flowLabel * 16, kMadHeader + 88, 3);
      expected.writeUInt16BE(sourcePort, kMadHeader + 142);
    }
    expect(sentContent(link)).toEqual([content(expected)]);
    link.receive(rep);
    const established: Established = await connecting;
    expect(established).toMatchObject({
      remoteAddress: server,
      remoteMac: kServer,
      remoteQpn: name === "rping" ? 0x11 : 0x12,
      remoteStartingPsn: name === "rping" ? 0x64aaa9 : 0x37828b,
      responderResources: 1,
      initiatorDepth: 1,
      rnrRetryCount: 7,
      ackTimeout: 19,
      privateData: Buffer.alloc(196),
    });
    expect(link.sent).toEqual([]);
    established.ready();
    expect(sentContent(link)).toEqual([content(mad(rtu))]);
    const done = established.disconnect();
    expect(sentContent(link)).toEqual([content(mad(dreq))]);
    link.receive(drep);
    await done;
  });
});

describe("against Linux, ucmatose", () => {
  it("two connections at once are kept apart, and ended by the side that was asked", async () => {
    const frames = capturedMads("ucmatose");
    const of = (kind: string) => frames.filter((frame) => messageIn(frame)?.kind === kind);
    const ids = of("REP").map((frame) => mad(frame).readUInt32BE(kMadHeader));
    const { link, cm } = manager(kServer, "10.77.0.1", kClient, [...ids]);
    const requests: IncomingRequest[] = [];
    cm.listen(0x1d2f, (request) => requests.push(request));
    for (const frame of of("REQ")) link.receive(frame);
    const accepted = requests.map((request, i) =>
      request.accept({ qpn: [0x13, 0x14][i] as number, startingPsn: [0x53fafd, 0xfa8351][i] as number }),
    );
    await Promise.resolve();
    expect(sentMads(link)).toEqual(of("REP").map((frame) => mad(frame).toString("hex")));
    for (const frame of of("RTU")) link.receive(frame);
    const done = (await Promise.all(accepted)).map((established) => established.disconnect());
    expect(sentContent(link)).toEqual(of("DREQ").map((frame) => content(mad(frame))));
    for (const frame of of("DREP")) link.receive(frame);
    await Promise.all(done);
  });
});

describe("against Linux, cm_reject", () => {
  const [req, rej] = capturedMads("cm_reject") as [Buffer, Buffer];

  it("a port where nothing listens is rejected as Linux did", () => {
    const { link } = manager(kServer, "10.77.0.1", kClient, []);
    link.receive(req);
    expect(sentMads(link)).toEqual([mad(rej).toString("hex")]);
  });

  it("the rejection is told with its reason and a remedy", async () => {
    const { link, cm, clock } = manager(kClient, "10.77.0.2", kServer, [0x4247f45b, 0xa223]);
    const failure = cm
      .connect({ destination: "10.77.0.1", port: 9999, qpn: 0x16, startingPsn: 0x96043f, pathMtu: 1024 })
      .catch((error: unknown) => error);
    await clock.run();
    link.receive(rej);
    const error = (await failure) as ConnectionRejected;
    expect(error).toBeInstanceOf(ConnectionRejected);
    expect(error.reason).toBe(8);
    expect(error.message).toBe("10.77.0.1 port 9999 rejected the connection: invalid service ID (8)");
    expect(error.hint).toContain("start the server");
  });
});
