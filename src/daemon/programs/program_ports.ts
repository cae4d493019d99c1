/** Ports of one port space (RDMA_PS_TCP or RDMA_PS_UDP) of a NIC, and their holders. */
import { constants } from "node:os";
import { Refusal } from "./refusal.js";

const { EADDRINUSE, EADDRNOTAVAIL } = constants.errno;
/** Range of Linux' net.ipv4.ip_local_port_range. */
const kFirstEphemeral = 32_768;
const kLastEphemeral = 60_999;

export interface PortHolder {
  readonly sharesPort: boolean;
  readonly listens: boolean;
}

export class PortSpace {
  readonly #holders = new Map<number, Set<PortHolder>>();
  #next = kFirstEphemeral;

  /** @param port 0: any free one. @throws Refusal when somebody has it, or there is none. */
  take(port: number, holder: PortHolder): number {
    const taken = port === 0 ? this.#free() : port;
    const holders = this.#holders.get(taken) ?? new Set();
    if (holders.size > 0 && !(holder.sharesPort && [...holders].every((other) => other.sharesPort && !other.listens))) {
      throw new Refusal(EADDRINUSE);
    }
    this.#holders.set(taken, holders.add(holder));
    return taken;
  }

  /** Tells whether somebody listens at the port. */
  isListenedAt(port: number): boolean {
    return [...(this.#holders.get(port) ?? [])].some(({ listens }) => listens);
  }

  /** Tells whether this one of the port's holders may listen. */
  isAlone(port: number, holder: PortHolder): boolean {
    return [...(this.#holders.get(port) ?? [])].every((other) => other === holder || !other.listens);
  }

  give(port: number, holder: PortHolder): void {
    const holders = this.#holders.get(port);
    holders?.delete(holder);
    if (holders?.size === 0) this.#holders.delete(port);
  }

  #free(): number {
    for (let tried = kFirstEphemeral; tried <= kLastEphemeral; tried++) {
      const port = this.#next;
      this.#next = port === kLastEphemeral ? kFirstEphemeral : port + 1;
      if (!this.#holders.has(port)) return port;
    }
    throw new Refusal(EADDRNOTAVAIL);
  }
}
