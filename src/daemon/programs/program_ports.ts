/** Ports of one port space (RDMA_PS_TCP or RDMA_PS_UDP) of a NIC, and their holders. */
import { constants } from "node:os";
import { isAny, isIpv6 } from "./nic_address.js";
import { Refusal } from "./refusal.js";

const { EADDRINUSE, EADDRNOTAVAIL } = constants.errno;
/** Range of Linux' net.ipv4.ip_local_port_range. */
const kFirstEphemeral = 32_768;
const kLastEphemeral = 60_999;

export interface PortHolder {
  /** One of the NIC's, or all of them. */
  readonly address: string;
  /** It is no holder of the other family's addresses; those of IPv4 never are. */
  readonly onlyItsFamily: boolean;
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
    const shares = (other: PortHolder) => holder.sharesPort && other.sharesPort && !other.listens;
    if ([...holders].some((other) => meet(holder, other) && !shares(other))) throw new Refusal(EADDRINUSE);
    this.#holders.set(taken, holders.add(holder));
    return taken;
  }

  /** Tells whether somebody listens at the port. */
  isListenedAt(port: number): boolean {
    return [...(this.#holders.get(port) ?? [])].some(({ listens }) => listens);
  }

  /** Tells whether this one of the port's holders may listen. */
  isAlone(port: number, holder: PortHolder): boolean {
    return [...(this.#holders.get(port) ?? [])].every(
      (other) => other === holder || !other.listens || !meet(holder, other),
    );
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

/** Tells whether two holders of a port have an address in common, as Linux sees it (cma_check_port() of rdma_cm). */
function meet(one: PortHolder, other: PortHolder): boolean {
  const apart = isIpv6(one.address) !== isIpv6(other.address) && one.onlyItsFamily && other.onlyItsFamily;
  return !apart && (isAny(one.address) || isAny(other.address) || one.address === other.address);
}
