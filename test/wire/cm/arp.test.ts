import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { arpReply } from "../../../src/wire/cm/arp.js";

const kMac = 0x02_00_00_00_00_01;
/** The frame asks: who has 10.99.0.1? Tell 10.99.0.2, at 02:00:00:00:00:02. */
const kRequest = Buffer.from(
  ["ffffffffffff", "020000000002", "0806", "0001", "0800", "06", "04", "0001", "020000000002", "0a630002"].join("") +
    ["000000000000", "0a630001"].join(""),
  "hex",
);

describe("arpReply", () => {
  it("answers the asker, with our address", () => {
    const reply = arpReply(kRequest, "10.99.0.1", kMac) ?? Buffer.alloc(0);
    expect(reply.subarray(0, 42).toString("hex")).toBe(
      ["020000000002", "020000000001", "0806", "0001", "0800", "06", "04", "0002"].join("") +
        ["020000000001", "0a630001", "020000000002", "0a630002"].join(""),
    );
    // The least that Ethernet carries, without FCS.
    expect(reply.length).toBe(60);
  });

  it("answers for no other address", () => expect(arpReply(kRequest, "10.99.0.3", kMac)).toBeUndefined());

  it("does not answer answers", () => {
    const reply = Buffer.from(kRequest);
    reply[21] = 2;
    expect(arpReply(reply, "10.99.0.1", kMac)).toBeUndefined();
  });

  it("never fails, whatever comes, and answers only whole requests", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 80 }),
        (frame) => arpReply(Buffer.from(frame), "10.99.0.1", kMac) === undefined,
      ),
    );
    for (let length = 0; length < kRequest.length; length++) {
      expect(arpReply(kRequest.subarray(0, length), "10.99.0.1", kMac)).toBeUndefined();
    }
  });
});
