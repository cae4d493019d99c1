/** Registered memory: allowed lengths, and that the memory behind an ArrayBuffer is given back exactly once. */
import { constants } from "node:buffer";
import { readFileSync } from "node:fs";
import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { WeirError } from "../../src/base/error.js";
import type { NativeAddon } from "../../src/native/types.js";
import type { Device } from "../../src/verbs/device.js";
import { MemoryRegion } from "../../src/verbs/memory_region.js";
import { nativeCore } from "../obstacles.js";

const addon = nativeCore<NativeAddon>();
/** The part of a device that a region needs. */
const device = {
  works: true,
  native: { addon, worker: { registerMemory: () => 7, deregisterMemory: () => true } },
} as unknown as Device;
const register = (bytes: number) => new MemoryRegion(device, bytes, 1, []);

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Memory that this process has mapped, bytes. */
function mapped(): number {
  const [, kilobytes] = /^VmSize:\s+(\d+) kB/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
  return Number(kilobytes) * 1024;
}

/** Finalizers run between two turns of the event loop. */
async function collected(): Promise<void> {
  for (let i = 0; i < 5; i++) {
    collectGarbage();
    await turn();
  }
}

describe("a memory region", () => {
  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])("of %s bytes is refused", (bytes) => {
    expect(() => register(bytes)).toThrow(WeirError);
    expect(() => register(bytes)).toThrow(/byteLength: .* is not a whole number of bytes, at least 1/);
  });

  it("longer than an ArrayBuffer can be is refused, and the limit named; or there is no such memory", async () => {
    const bytes = constants.MAX_LENGTH + 1;
    const refusal = Number.isSafeInteger(bytes) ? `: ${constants.MAX_LENGTH} at most` : "is not a whole number";
    expect(() => register(bytes)).toThrow(refusal);
    await collected();
  });

  it("of an ArrayBuffer that Node.js does not make is given back once, and the process goes on", async () => {
    const before = mapped();
    for (let i = 0; i < 3; i++) {
      expect(() => new addon.Memory(constants.MAX_LENGTH + 1).buffer()).toThrow();
      await collected();
    }
    expect(mapped() - before).toBeLessThan(2 ** 31);
  });

  it("lives as long as one of its buffers, and is given back once", async () => {
    const bytes = 2 ** 31;
    const before = mapped();
    let held: ArrayBuffer | undefined;
    (() => {
      const memory = new addon.Memory(bytes);
      held = memory.buffer();
      new Uint8Array(memory.buffer())[5] = 77;
    })();
    await collected();
    expect(mapped() - before).toBeGreaterThan(bytes / 2);
    expect(new Uint8Array(held as ArrayBuffer)[5]).toBe(77);
    held = undefined;
    await collected();
    expect(mapped() - before).toBeLessThan(bytes / 2);
  });
});
