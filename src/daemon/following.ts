/** Follows the addresses that the kernel has on the interface of a NIC, for as long as the NIC runs. */
import { closeSync } from "node:fs";
import { asWeirError } from "../base/error.js";
import type { AddressSockets } from "../native/types.js";
import type { NicAddresses } from "./kinds.js";
import type { Log } from "./log.js";

/** Interval at which the kernel's news are read. */
const kLookMs = 250;
/** Pause after a look, in multiples of its own time: routes of others may change all the time. */
const kPauses = 8;

export class AddressFollower {
  #watch = -1;
  #timer: NodeJS.Timeout | undefined;
  #due = 0;
  #news = true;
  #complained = "";

  /** @param take Called when they are others than `known`. What it throws is logged, and it is called again. */
  constructor(
    private readonly sockets: AddressSockets,
    private readonly read: () => NicAddresses,
    private known: NicAddresses,
    private readonly take: (found: NicAddresses) => void,
    private readonly log: Log,
  ) {}

  /** @throws WeirError if the kernel tells no news. */
  begin(): void {
    this.#watch = asWeirError(() => this.sockets.openAddressWatch());
    this.#timer = setInterval(() => this.#look(), kLookMs).unref();
  }

  /** Idempotent. */
  close(): void {
    clearInterval(this.#timer);
    if (this.#watch >= 0) closeSync(this.#watch);
    this.#watch = -1;
  }

  #look(): void {
    if (this.sockets.takeRouteNews(this.#watch) !== 0) this.#news = true;
    const began = performance.now();
    if (!this.#news || began < this.#due) return;
    try {
      const found = this.read();
      if (JSON.stringify(found) !== JSON.stringify(this.known)) {
        this.take(found);
        this.known = found;
      }
      this.#news = false;
      this.#complained = "";
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.#complained) this.log.warn({ error: message }, "addresses not followed, tried again");
      this.#complained = message;
    }
    const now = performance.now();
    this.#due = now + kPauses * (now - began);
  }
}
