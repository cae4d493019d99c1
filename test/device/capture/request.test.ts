/** Arguments of the request `capture`: what is taken, and what is said of what is not. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WeirError } from "../../../src/base/error.js";
import { kindsMask, kKindNames, parseCaptureRequest } from "../../../src/device/capture/request.js";

const parse = (args: object) => parseCaptureRequest({ request: "capture", ...args });

describe("arguments of a capture", () => {
  it("are all ports, all bytes and all kinds unless they say otherwise", () => {
    expect(parse({})).toEqual({ request: "capture", snaplen: 262_144, kinds: kKindNames });
    expect(parse({ ports: ["a"], snaplen: 128, kinds: ["ce", "pfc"] })).toMatchObject({
      ports: ["a"],
      snaplen: 128,
      kinds: ["ce", "pfc"],
    });
  });

  it("make a mask of kinds", () => {
    expect(kindsMask(kKindNames)).toBe(63);
    expect(kindsMask(["pfc", "ce", "pfc"])).toBe(4 + 32);
  });

  it.each([
    [{ snaplen: 127 }, "capture: snaplen is wrong", "must be 128 to 262144 bytes"],
    [{ snaplen: 262_145 }, "capture: snaplen is wrong", "must be 128 to 262144 bytes"],
    [{ snaplen: "128" }, "capture: snaplen is wrong", "must be 128 to 262144 bytes"],
    [{ ports: "a" }, "capture: ports is wrong", "must be a list of names of ports"],
    [{ ports: [] }, "capture: ports is wrong", "must be a list of names of ports"],
    [{ ports: ["x".repeat(256)] }, "capture: ports is wrong", "must be a list of names of ports"],
    [{ kinds: ["udp"] }, "capture: kinds is wrong", "must be a list of some of roce, cnp, pfc, cnm, other, ce"],
    [{ kinds: [] }, "capture: kinds is wrong", "must be a list of some of roce, cnp, pfc, cnm, other, ce"],
    [{ file: "/etc/passwd" }, "capture: there is no argument file", "known: ports, snaplen, kinds"],
  ])("are refused: %j", (args, message, hint) => {
    expect(() => parse(args)).toThrow(expect.objectContaining({ message, hint }));
  });

  it("are parsed or refused, whatever they are", () => {
    fc.assert(
      fc.property(fc.object({ key: fc.constantFrom("ports", "snaplen", "kinds", "x"), maxDepth: 2 }), (args) => {
        try {
          expect(parse(args).snaplen).toBeGreaterThanOrEqual(128);
        } catch (error) {
          expect(error).toBeInstanceOf(WeirError);
        }
      }),
    );
  });
});
