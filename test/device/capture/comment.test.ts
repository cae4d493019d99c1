/** Comments on the frames of captures. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CommentRate, commentOn } from "../../../src/device/capture/comment.js";
import { kFrameKinds, kRefusals } from "../../../src/device/capture/frames.js";
import { type FrameFields, framesOf } from "./frames.js";

const kUntold: CommentRate = { rate: 0, meant: false };
const k40Meant: CommentRate = { rate: 40e9, meant: true };

function comment(frame: FrameFields, rate = kUntold): string {
  const frames = framesOf(frame);
  frames.read();
  return commentOn(frames, rate);
}

/** Quanta by priority; priorities without are not enabled. */
function pfcFrame(quanta: readonly (number | undefined)[]): Buffer {
  const frame = Buffer.alloc(60);
  frame.write("0180c2000001020000000001880801010000", "hex");
  for (const [p, value = 0] of quanta.entries()) frame.writeUInt16BE(value, 18 + 2 * p);
  frame[17] = quanta.reduce<number>((mask, value, p) => mask | (value === undefined ? 0 : 1 << p), 0);
  return frame;
}

function pauseFrame(quanta: number): Buffer {
  const frame = Buffer.alloc(60);
  frame.write("0180c200000102000000000188080001", "hex");
  frame.writeUInt16BE(quanta, 16);
  return frame;
}

/** See native/wire/qcn.h. */
function cnmFrame(...tags: string[]): Buffer {
  const head = `020000000001020000000002${tags.join("")}22e7`;
  const pdu = "0017" + "0011223344556677" + "0064" + "fffe" + "6000" + "020000000002" + "0000";
  return Buffer.concat([Buffer.from(head + pdu, "hex"), Buffer.alloc(24)]);
}
const kCnm =
  "CNM for priority 3: fb 23 of 63 (reaction point cuts), queue 6400 B above its set point, 128 B less than at the " +
  "sample before, congestion point 0011223344556677";

describe("a comment", () => {
  it("on PFC says which priorities pause for how long, and which may send", () => {
    const pfc = (quanta: (number | undefined)[], rate?: CommentRate) =>
      comment({ kind: "pfc", bytes: pfcFrame(quanta) }, rate);
    const none = undefined;
    expect(pfc([none, none, none, 65_535], k40Meant)).toBe(
      "PFC: priority 3 paused for 65535 quanta = 838.8 us at 40 Gb/s (meant)",
    );
    expect(pfc([none, none, none, 65_535], { rate: 1e9, meant: false })).toBe(
      "PFC: priority 3 paused for 65535 quanta = 33.55 ms at 1 Gb/s",
    );
    expect(pfc([none, none, none, 65_535])).toBe("PFC: priority 3 paused for 65535 quanta");
    expect(pfc([none, none, none, 0], k40Meant)).toBe("PFC: priority 3 may send");
    expect(pfc([none, 1, none, 1, 0, none, 0], { rate: 100e9, meant: false })).toBe(
      "PFC: priorities 1, 3 paused for 1 quanta = 5.12 ns at 100 Gb/s, priorities 4, 6 may send",
    );
    expect(pfc([], k40Meant)).toBe("PFC: no priority");
    const longest = pfc([65_527, 65_528, 65_529, 65_530, 65_531, 65_532, 65_533, 65_534], {
      rate: 123_456_789_123,
      meant: true,
    });
    expect(longest).toMatch(/priority 7 paused for 65534 quanta = 271\.8 us at 123\.5 Gb\/s \(meant\)$/);
  });

  it("on PAUSE, and on MAC control of another kind", () => {
    const slow = { rate: 100e6, meant: false };
    expect(comment({ kind: "pause", bytes: pauseFrame(100) }, slow)).toBe(
      "PAUSE: the link paused for 100 quanta = 512 us at 100 Mb/s",
    );
    expect(comment({ kind: "pause", bytes: pauseFrame(0) }, slow)).toBe("PAUSE: the link may send");
    expect(comment({ kind: "mac_control", bytes: pauseFrame(0) })).toBe("MAC control of an unknown kind");
  });

  it.each([[], ["81006003"], ["22e90007"], ["81006003", "22e90007"]])(
    "on CNMs tells feedback, queue and congestion point, behind tags %s",
    (...tags) => {
      expect(comment({ kind: "cnm", bytes: cnmFrame(...tags) })).toBe(kCnm);
    },
  );

  it("on IP packets tells the mark, and of RoCEv2 also that there can be none", () => {
    const bytes = Buffer.alloc(60);
    expect([0, 1, 2, 3].map((ecn) => comment({ kind: "roce", bytes, ecn }))).toEqual([
      "Not-ECT: cannot be marked",
      "ECT(1)",
      "ECT(0)",
      "CE: congestion experienced",
    ]);
    expect([0, 3].map((ecn) => comment({ kind: "other", bytes, ecn }))).toEqual(["", "CE: congestion experienced"]);
    expect(comment({ bytes })).toBe("");
    expect(comment({ kind: "cnp", bytes, ecn: 0, destinationQp: 0xabc })).toBe(
      "CNP for QP 0xabc (reaction point cuts)",
    );
  });

  it("tells of refused frames and unfinished work of senders", () => {
    const bytes = Buffer.alloc(60);
    expect(comment({ bytes, refusal: "bad_ip_header" })).toBe("not understood: bad_ip_header");
    expect(comment({ bytes, needsChecksum: true })).toBe("checksum left to the interface");
    expect(comment({ bytes, needsChecksum: true, segmentSize: 1448, ecn: 2 })).toBe(
      "ECT(0); super-frame: the interface cuts it into segments of 1448 bytes",
    );
  });

  it("tells less of a frame that was cut short", () => {
    const pfc = pfcFrame([1]);
    expect(comment({ kind: "pfc", bytes: pfc.subarray(0, 33) })).toBe("");
    expect(comment({ kind: "pfc", bytes: pfc.subarray(0, 34) })).toBe("PFC: priority 0 paused for 1 quanta");
    expect(comment({ kind: "pause", bytes: pauseFrame(1).subarray(0, 17) })).toBe("");
    expect(comment({ kind: "cnm", bytes: cnmFrame().subarray(0, 37) })).toBe("");
    expect(comment({ kind: "cnm", bytes: cnmFrame().subarray(0, 38) })).toBe(kCnm);
  });

  it("on any bytes is short plain text", () => {
    const frame = fc.record({
      bytes: fc.uint8Array({ maxLength: 130 }),
      kind: fc.constantFrom(...kFrameKinds),
      refusal: fc.constantFrom(...kRefusals),
      ecn: fc.option(fc.nat({ max: 3 }), { nil: undefined }),
      segmentSize: fc.nat({ max: 65_535 }),
      needsChecksum: fc.boolean(),
      destinationQp: fc.nat({ max: 0xff_ffff }),
    });
    fc.assert(
      fc.property(frame, fc.nat({ max: 2 ** 31 - 1 }), ({ ecn, ...fields }, rate) => {
        const text = comment({ ...fields, ...(ecn !== undefined && { ecn }) }, { rate, meant: true });
        expect(text).toMatch(/^[ -~]{0,1024}$/);
      }),
    );
  });
});
