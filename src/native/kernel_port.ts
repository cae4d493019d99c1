/** Keeps the kernel from answering RoCEv2 packets with ICMP "port unreachable" at an address that it has too. */
import { closeSync } from "node:fs";
import { asWeirError } from "../base/error.js";
import { kRocePort } from "../wire/headers.js";
import type { NativeAddon } from "./types.js";

export class KernelPort {
  #descriptor: number;

  /**
   * Holds the port with a socket whose filter throws away what comes, in the network namespace at a path or in our own.
   * @throws WeirError if the port is taken, by rxe for one.
   */
  constructor(addon: NativeAddon, address: string, namespace: string | undefined) {
    this.#descriptor = asWeirError(() => addon.holdUdpPort(address, kRocePort, namespace));
  }

  /** Lets go of the port. Idempotent. */
  close(): void {
    if (this.#descriptor >= 0) closeSync(this.#descriptor);
    this.#descriptor = -1;
  }
}
