/** Registered memory: allocated by Weir, seen as an ArrayBuffer; the NIC reads and writes it in place. */

import { constants } from "node:buffer";
import { markAsUntransferable } from "node:worker_threads";
import { WeirError } from "../base/error.js";
import type { DeviceCore } from "./queue_pair.js";
import { type Access, accessBits } from "./types.js";

/** @throws WeirError unless an ArrayBuffer may have this length. */
function checkedLength(bytes: number): number {
  if (!Number.isSafeInteger(bytes) || bytes < 1) {
    throw new WeirError(`byteLength: ${bytes} is not a whole number of bytes, at least 1`, { field: "byteLength" });
  }
  if (bytes <= constants.MAX_LENGTH) return bytes;
  throw new WeirError(`byteLength: ${bytes} bytes are more than a memory region has: ${constants.MAX_LENGTH} at most`, {
    field: "byteLength",
    hint: `that is the longest ArrayBuffer of Node.js ${process.version}: register several regions`,
  });
}

export class MemoryRegion {
  /** The memory itself; it cannot be transferred to another thread, nor is it ever copied. */
  readonly buffer: ArrayBuffer;
  /** Local key and remote key in one. */
  readonly key: number;
  /** Address of the first byte; peers know it as `address`. */
  readonly start: number;
  readonly byteLength: number;
  #registered = true;

  /** Use ProtectionDomain.registerMemory(). */
  constructor(
    private readonly device: DeviceCore,
    byteLength: number,
    domain: number,
    access: readonly Access[],
  ) {
    const { addon, worker } = device.native;
    const memory = new addon.Memory(checkedLength(byteLength));
    this.key = worker.registerMemory(0, memory, accessBits(access), domain);
    if (this.key === 0) {
      throw new WeirError("no memory region is left on this device", { hint: "deregister regions that are not used" });
    }
    this.buffer = memory.buffer();
    markAsUntransferable(this.buffer);
    this.start = memory.address();
    this.byteLength = byteLength;
  }

  /** Address and key that a peer needs to reach byte `offset`. */
  remote(offset = 0): { address: bigint; key: number } {
    return { address: BigInt(this.start + offset), key: this.key };
  }

  /** Makes its key void; the buffer stays usable here. Idempotent. */
  deregister(): void {
    if (!this.#registered) return;
    this.#registered = false;
    if (this.device.works) this.device.native.worker.deregisterMemory(0, this.key);
  }
}
