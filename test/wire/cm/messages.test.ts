import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readMadFrame } from "../../../src/wire/cm/frame.js";
import {
  buildIpHeader,
  buildMessage,
  kAnswered,
  type Message,
  type MessageKind,
  portOfService,
  readIpHeader,
  readMessage,
  serviceId,
} from "../../../src/wire/cm/messages.js";
import { kReject } from "../../../src/wire/cm/reject.js";
import { capturedMads, messageIn } from "./fakes.js";

const messages = (name: string): Message[] => capturedMads(name).flatMap((frame) => messageIn(frame) ?? []);

/** The first of a kind. */
function find<K extends MessageKind>(name: string, kind: K): Message<K> {
  return messages(name).find((message) => message.kind === kind) as Message<K>;
}

describe("messages of Linux", () => {
  it.each(["rping", "rping6", "ucmatose", "cm_reject"])("in %s are built again to the last byte", (name) => {
    const mads = capturedMads(name).map((frame) => readMadFrame(frame)?.mad);
    expect(mads.length).toBeGreaterThan(0);
    for (const mad of mads) {
      const message = readMessage(mad as Buffer) as Message;
      expect(buildMessage(message.kind, message.transaction, message.fields, message.modifier)).toEqual(mad);
    }
  });

  it("come in the order of a connection's life", () => {
    expect(messages("rping").map(({ kind }) => kind)).toEqual(["REQ", "REP", "RTU", "DREQ", "DREP"]);
  });

  /** Values as tshark 4.0 shows them, but for the flow label, which it shows shifted. */
  it("say what tshark says", () => {
    const { fields: req, transaction } = find("rping", "REQ");
    const { privateData, alternatePath, ...rest } = req;
    expect(transaction).toBe(0x0000_0002_5bf4_4747n);
    expect({ ...rest, localGid: req.localGid.toString("hex"), remoteGid: req.remoteGid.toString("hex") }).toEqual({
      localId: 0x4747f45b,
      vendorId: 0,
      serviceId: 0x0000_0000_0106_1c06n,
      localGuid: Buffer.from("50540afffe4d0002", "hex"),
      localQkey: 0,
      localQpn: 0x11,
      responderResources: 1,
      localEecn: 0,
      initiatorDepth: 1,
      remoteEecn: 0,
      remoteResponseTimeout: 20,
      transportService: 0,
      flowControl: 0,
      startingPsn: 0x4d0179,
      localResponseTimeout: 20,
      retryCount: 7,
      partition: 0xffff,
      pathMtu: 3,
      rdcExists: 0,
      rnrRetryCount: 7,
      maxRetries: 15,
      sharedReceiveQueue: 0,
      extendedTransport: 0,
      localLid: 0xffff,
      remoteLid: 0xffff,
      localGid: "00000000000000000000ffff0a4d0002",
      remoteGid: "00000000000000000000ffff0a4d0001",
      flowLabel: (0xe9b2 * 31 + 0x1c06) & 0xf_ffff,
      packetRate: 0,
      trafficClass: 0,
      hopLimit: 0x40,
      serviceLevel: 0,
      subnetLocal: 0,
      localAckTimeout: 0x13,
    });
    expect(alternatePath).toEqual(Buffer.alloc(44));
    expect(readIpHeader(privateData)).toEqual({
      sourcePort: 0xe9b2,
      source: "10.77.0.2",
      destination: "10.77.0.1",
      privateData: Buffer.alloc(56),
    });

    expect(find("rping", "REP").fields).toMatchObject({
      localId: 0x61d6e66e,
      remoteId: 0x4747f45b,
      localQpn: 0x11,
      startingPsn: 0x64aaa9,
      responderResources: 1,
      initiatorDepth: 1,
      targetAckDelay: 15,
      failoverAccepted: 0,
      rnrRetryCount: 7,
      sharedReceiveQueue: 0,
      localGuid: Buffer.from("50540afffe4d0001", "hex"),
    });
    expect(find("rping", "DREQ").fields.remoteQpn).toBe(0x11);
    expect(find("cm_reject", "REJ").fields).toMatchObject({
      localId: 0,
      remoteId: 0x4247f45b,
      answered: kAnswered.REQ,
      infoLength: 0,
      reason: kReject.invalidServiceId,
    });
    expect(readIpHeader(find("rping6", "REQ").fields.privateData)).toMatchObject({
      sourcePort: 0xb6f6,
      source: "fd77::2",
      destination: "fd77::1",
    });
  });
});

describe("messages without a capture", () => {
  it("have their fields where IBTA has them", () => {
    const mra = buildMessage("MRA", 1n, { localId: 1, remoteId: 2, answered: kAnswered.REP, serviceTimeout: 24 });
    expect(mra.subarray(16, 36).toString("hex")).toBe("0011000000000000000000010000000240c00000");
    const sidr = buildMessage("SIDR_REQ", 1n, {
      requestId: 7,
      partition: 0xffff,
      serviceId: serviceId("datagram", 7174),
    });
    expect(sidr.subarray(16, 40).toString("hex")).toBe("001700000000000000000007ffff00000000000001111c06");
    const reply = buildMessage("SIDR_REP", 1n, {
      requestId: 7,
      status: 1,
      qpn: 0x123456,
      serviceId: 9n,
      qkey: 0x1234567,
    });
    expect(reply.subarray(16, 48).toString("hex")).toBe(
      "0018000000000000000000070100000012345600000000000000000901234567",
    );
  });

  it("are read as they were built", () => {
    fc.assert(
      fc.property(fc.nat(0xffff_ffff), fc.nat(31), fc.nat(0xff_ffff), fc.nat(0xf_ffff), (id, code, qpn, flowLabel) => {
        const fields = {
          localId: id,
          localQpn: qpn,
          responderResources: 255,
          localResponseTimeout: code,
          retryCount: 5,
        };
        const req = { ...fields, startingPsn: qpn, flowLabel, packetRate: 63, localAckTimeout: code };
        expect(readMessage(buildMessage("REQ", 5n, req))).toMatchObject({ kind: "REQ", transaction: 5n, fields: req });
      }),
    );
  });

  it("refuse values that do not fit", () => {
    expect(() => buildMessage("REQ", 0n, { localQpn: 1 << 24 })).toThrow(RangeError);
    expect(() => buildMessage("REQ", 0n, { retryCount: -1 })).toThrow(RangeError);
    expect(() => buildMessage("REQ", 0n, { privateData: Buffer.alloc(93) })).toThrow(RangeError);
  });
});

describe("readMessage", () => {
  it("reads or refuses whatever comes", () => {
    const mad = readMadFrame(capturedMads("rping")[0] as Buffer)?.mad as Buffer;
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 240, maxLength: 260 }), fc.boolean(), fc.nat(255), (bytes, isCm, kind) => {
        const noise = Buffer.from(bytes);
        if (isCm) mad.copy(noise, 0, 0, 17);
        if (isCm) noise[17] = kind;
        const message = readMessage(noise);
        if (noise.length !== 256) expect(message).toBeUndefined();
        if (message?.kind === "REQ") void readIpHeader(message.fields.privateData);
        if (isCm && noise.length === 256 && kind >= 0x10 && kind <= 0x18) expect(message).toBeDefined();
      }),
    );
    for (const at of [0, 1, 2, 3]) {
      const other = Buffer.from(mad);
      other[at] = 0x42;
      expect(readMessage(other)).toBeUndefined();
    }
  });
});

describe("the header with IP addresses", () => {
  it("is of versions that are known", () => {
    const header = buildIpHeader({ sourcePort: 1, source: "10.0.0.1", destination: "10.0.0.2" }, Buffer.from("hello"));
    expect(readIpHeader(header)?.privateData.toString()).toBe("hello");
    for (const [at, value] of [
      [0, 0x10],
      [1, 0x50],
    ] as const) {
      const other = Buffer.from(header);
      other[at] = value;
      expect(readIpHeader(other)).toBeUndefined();
    }
  });

  it("names ports of one space", () => {
    expect(portOfService("connected", serviceId("connected", 7174))).toBe(7174);
    expect(portOfService("connected", serviceId("datagram", 7174))).toBeUndefined();
    expect(portOfService("connected", 1n << 40n)).toBeUndefined();
  });
});
