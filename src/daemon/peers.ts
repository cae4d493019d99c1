/** MAC addresses of peers whose file does not give them: asked for by ARP until they answer, and from time to time again. */
import { type Clock, type FrameLink, systemClock } from "../wire/cm/link.js";
import { Neighbours } from "../wire/cm/neighbour.js";

export interface PeerEvents {
  /** It answers, for the first time or with another MAC address than `before`. */
  found(address: string, mac: number, before: number | undefined): void;
  /** Three requests had no answer. Told once, until there is one; what was known of it stays. */
  silent(address: string): void;
}

/** Between two looks at what is known; what is older than 45 s is asked for again. */
const kLookMs = 5000;
const kPauseMs = 1000;

export class Peers {
  readonly #neighbours: Neighbours;
  readonly #macs = new Map<string, number>();
  readonly #silent = new Set<string>();
  #closed = false;

  /**
   * @param address Own one; who asks for it is answered elsewhere.
   * @param route The next hop towards an address, whose MAC address is looked for; undefined: all are on the link.
   */
  constructor(
    link: FrameLink,
    address: string,
    route: ((address: string) => string) | undefined,
    wanted: readonly string[],
    private readonly events: PeerEvents,
    private readonly clock: Clock = systemClock,
  ) {
    this.#neighbours = new Neighbours({ link, address, answers: false, clock, ...(route && { route }) });
    for (const peer of new Set(wanted)) void this.#follow(peer);
  }

  /** By address, of those that have answered. */
  get macs(): ReadonlyMap<string, number> {
    return this.#macs;
  }

  /** Idempotent. */
  close(): void {
    this.#closed = true;
    this.#neighbours.close();
  }

  async #follow(address: string): Promise<void> {
    const found = await this.#neighbours.resolve(address).catch(() => undefined);
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
