import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildProbe, describeFrame, type ProbeFrame, readFrame, readUnreachable } from "../../src/probe/roce_frame.js";
import { packets } from "./captures.js";

const kProbe: ProbeFrame = {
  source: "10.0.0.1",
  destination: "10.0.0.2",
  sourcePort: 0xc123,
  identification: 0x1234,
  dscp: 26,
  ecn: "ce",
  qpn: 0x11,
  psn: 0xc0_0001,
};

describe("readFrame on captures of Linux rxe", () => {
  it.each(["ops_rc", "ops_uc", "ops_ud", "nak_access", "ce_marked", "cnp_injected"])(
    "agrees with every ICRC of %s",
    (name) => {
      const frames = packets(name).flatMap((packet) => readFrame(packet) ?? []);
      expect(frames.length).toBeGreaterThan(0);
      expect(frames.filter((frame) => !frame.icrcOk)).toEqual([]);
    },
  );

  it("sees marks, CNPs and NAKs", () => {
    const frames = (name: string) => packets(name).flatMap((packet) => readFrame(packet) ?? []);
    expect(frames("ce_marked").map(({ ecn }) => ecn)).toEqual(Array(8).fill("ce"));
    expect(frames("cnp_injected").filter((frame) => describeFrame(frame) === "CNP")).toHaveLength(10);
    expect(frames("nak_access").map(describeFrame)).toContain("NAK, remote access error");
  });
});

describe("buildProbe", () => {
  it("makes the frame byte by byte", () => {
    expect(buildProbe(kProbe).toString("hex")).toBe(
      [
        "456b003c12344000401114100a0000010a000002", // IPv4: DSCP 26 with CE, 60 bytes, don't fragment
        "c12312b700280000", // UDP to 4791, no checksum
        "0a00ffff0000001180c00001", // BTH: RC WRITE ONLY, QP 0x11, acknowledge, PSN
        "00".repeat(16), // RETH
        "ICRC",
      ]
        .join("")
        .replace("ICRC", buildProbe(kProbe).subarray(-4).toString("hex")),
    );
  });

  it("is read back, with a right ICRC whatever routers change, and a wrong one for the rest", () => {
    const packet = buildProbe(kProbe);
    expect(readFrame(packet)).toEqual({
      source: "10.0.0.1",
      destination: "10.0.0.2",
      ttl: 64,
      dscp: 26,
      ecn: "ce",
      opcode: 0x0a,
      qpn: 0x11,
      psn: 0xc0_0001,
      icrcOk: true,
    });
    // Type of service, TTL, header checksum, UDP checksum, FECN and BECN.
    const mutable = new Set([1, 8, 10, 11, 26, 27, 32]);
    for (let at = 0; at < packet.length; at++) {
      const changed = Buffer.from(packet);
      changed[at] = (changed[at] as number) ^ 0x01;
      const frame = readFrame(changed);
      if (frame !== undefined) expect([at, frame.icrcOk]).toEqual([at, mutable.has(at)]);
    }
  });
});

describe("readUnreachable", () => {
  const quoting = (packet: Buffer, code = 3) => {
    const icmp = Buffer.from(buildProbe({ ...kProbe, source: "10.0.0.2", destination: "10.0.0.1" }).subarray(0, 28));
    icmp[9] = 1;
    icmp.set([3, code, 0, 0, 0, 0, 0, 0], 20);
    return Buffer.concat([icmp, packet]);
  };

  it("reads what a kernel quotes of the packet that it refused", () => {
    expect(readUnreachable(quoting(buildProbe(kProbe).subarray(0, 28)))).toEqual({
      source: "10.0.0.2",
      code: 3,
      destination: "10.0.0.2",
      sourcePort: 0xc123,
      ecn: "ce",
    });
  });

  it("leaves other ports and other messages alone", () => {
    const dns = buildProbe(kProbe);
    dns.writeUInt16BE(53, 22);
    expect(readUnreachable(quoting(dns))).toBeUndefined();
    const echo = quoting(buildProbe(kProbe));
    echo[20] = 8;
    expect(readUnreachable(echo)).toBeUndefined();
  });
});

describe("hostile bytes", () => {
  it("are read or refused, never thrown at", () => {
    const mutated = fc
      .tuple(fc.nat(buildProbe(kProbe).length), fc.array(fc.tuple(fc.nat(59), fc.nat(255)), { maxLength: 8 }))
      .map(([length, changes]) => {
        const packet = buildProbe(kProbe);
        for (const [at, value] of changes) packet[at] = value;
        return packet.subarray(0, length);
      });
    fc.assert(
      fc.property(
        fc.oneof(
          mutated,
          fc.uint8Array({ maxLength: 120 }).map((bytes) => Buffer.from(bytes)),
        ),
        (packet) => {
          readFrame(packet);
          readUnreachable(packet);
          readUnreachable(
            Buffer.concat([Buffer.from("4500001c00000000400100000a0000020a0000010303000000000000", "hex"), packet]),
          );
        },
      ),
    );
  });
});
