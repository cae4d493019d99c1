/** A protection domain: queue pairs reach memory of their own domain only. */
import { MemoryRegion } from "./memory_region.js";
import { type DeviceCore, QueuePair, type QueuePairOptions } from "./queue_pair.js";
import type { Access } from "./types.js";

const kAllAccess: readonly Access[] = ["local_write", "remote_write", "remote_read", "remote_atomic"];

export class ProtectionDomain {
  /** Use Device.allocateProtectionDomain(). */
  constructor(
    readonly device: DeviceCore,
    private readonly number: number,
  ) {}

  /** Registers zeroed memory of `byteLength` bytes, by default with all rights but remote_invalidate. @throws WeirError without room. */
  registerMemory(byteLength: number, access: readonly Access[] = kAllAccess): MemoryRegion {
    this.device.requireOpen();
    return new MemoryRegion(this.device, byteLength, this.number, access);
  }

  /** Makes a queue pair in state reset. @throws WeirError when the device has no place left. */
  createQueuePair(options: QueuePairOptions): QueuePair {
    this.device.requireOpen();
    return new QueuePair(this.device, this.number, options);
  }
}
