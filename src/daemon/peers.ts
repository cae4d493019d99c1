/** Follows MAC addresses of peers whose file does not give them: has them looked for until they answer, and from time to time again. */
import { type Clock, type Resolver, systemClock } from "../wire/cm/link.js";

export interface PeerEvents {
  /** Called when it answers, for the first time or with another MAC address than `before`. */
  found(address: string, mac: number, before: number | undefined): void;
  /** Called when three requests had no answer: once, until there is one. A MAC address that was known stays. */
  silent(address: string): void;
}

/** Interval between two looks at known addresses; the core asks for those again that it has not heard of for 30 s. */
const kLookMs = 5000;
const kPauseMs = 1000;

export class Peers {
  readonly #macs = new Map<string, number>();
  readonly #silent = new Set<string>();
  #closed = false;

  constructor(
    private readonly neighbours: Resolver,
    wanted: readonly string[],
    private readonly events: PeerEvents,
    private readonly clock: Clock = systemClock,
  ) {
    for (const peer of new Set(wanted)) void this.#follow(peer);
  }

  /** MAC addresses of peers that have answered, by IP address. */
  get macs(): ReadonlyMap<string, number> {
    return this.#macs;
  }

  /** Idempotent. */
  close(): void {
    this.#closed = true;
  }

  async #follow(address: string): Promise<void> {
    const found = await this.neighbours.resolve(address).catch(() => undefined);
    if (this.#closed) return;
    if (found === undefined) {
      if (!this.#silent.has(address)) this.events.silent(address);
      this.#silent.add(address);
    } else {
      this.#silent.delete(address);
      const before = this.#macs.get(address);
      this.#macs.set(address, found);
      if (found !== before) this.events.found(address, found, before);
    }
    this.clock.after(found === undefined ? kPauseMs : kLookMs, () => {
      if (!this.#closed) void this.#follow(address);
    });
  }
}
