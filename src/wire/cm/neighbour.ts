/** Finds the MAC address behind an IP address of the link, by ARP or by neighbour discovery; answers those that ask for ours, and ping. */
import { WeirError } from "../../base/error.js";
import { addressBytes, canonicalAddress, isGroup, isStation, macOfGroup } from "../address.js";
import { readEthernet } from "../ethernet.js";
import { arpReply, arpRequest, readArp } from "./arp.js";
import { EchoResponder } from "./echo.js";
import { type Clock, type FrameLink, systemClock } from "./link.js";
import { kUnspecified, neighbourAdvertisement, neighbourSolicitation, readNeighbourMessage } from "./ndp.js";

/** Values of Linux: mcast_solicit, retrans_time_ms, and the longest reachable time. */
const kTries = 3;
const kRetryMs = 1000;
const kLifetimeMs = 45_000;
const kMostEntries = 1024;

export interface NeighbourOptions {
  link: FrameLink;
  /** Our own address, IPv4 or IPv6. */
  address: string;
  /** True if the kernel does not have the address: requests for it and pings are answered here. */
  answers: boolean;
  /** Returns the next hop towards an address; without it every address is on the link. */
  route?: (address: string) => string;
  clock?: Clock;
}

interface Search {
  promise: Promise<number>;
  found(mac: number): void;
  failed(error: WeirError): void;
}

export class Neighbours {
  readonly echo: EchoResponder;
  readonly #link: FrameLink;
  readonly #clock: Clock;
  readonly #address: string;
  readonly #isIpv6: boolean;
  readonly #answers: boolean;
  readonly #route: (address: string) => string;
  readonly #unsubscribe: () => void;
  /** Entries are in the order in which they were learnt. */
  readonly #known = new Map<string, { mac: number; until: number }>();
  readonly #searches = new Map<string, Search>();

  constructor({ link, address, answers, route, clock }: NeighbourOptions) {
    this.#link = link;
    this.#clock = clock ?? systemClock;
    this.#address = canonicalAddress(address);
    this.echo = new EchoResponder(link.mac, this.#address, this.#clock);
    this.#isIpv6 = addressBytes(address).length === 16;
    this.#answers = answers;
    this.#route = route ?? ((destination) => destination);
    this.#unsubscribe = link.onFrame((frame) => this.#receive(frame));
  }

  /** MAC address of the next hop towards `address`, or of the group that it is. Fails with a WeirError when nobody answers within three seconds. */
  async resolve(address: string): Promise<number> {
    const hop = this.#nextHop(address);
    if (hop === this.#address) return this.#link.mac;
    if (isGroup(hop)) return macOfGroup(hop);
    const known = this.#known.get(hop);
    if (known !== undefined && known.until > this.#clock.now()) return known.mac;
    return (this.#searches.get(hop) ?? this.#search(hop)).promise;
  }

  /** Fails searches that are under way. Idempotent. */
  close(): void {
    this.#unsubscribe();
    for (const [hop, { failed }] of this.#searches)
      failed(new WeirError(`${hop} was not resolved: the device was closed`));
  }

  #nextHop(address: string): string {
    let destination: string;
    try {
      destination = canonicalAddress(address);
    } catch (cause) {
      throw new WeirError(`${address} is not an IP address`, { cause, hint: "give an address, not a name" });
    }
    const hop = isGroup(destination) ? destination : canonicalAddress(this.#route(destination));
    if (hop.includes(":") !== this.#isIpv6) {
      throw new WeirError(`${address} cannot be reached from ${this.#address}`, {
        hint: "both must be IPv4 addresses, or both IPv6",
      });
    }
    return hop;
  }

  #search(hop: string): Search {
    const search = {} as Search;
    const ask = this.#isIpv6 ? neighbourSolicitation : arpRequest;
    search.promise = new Promise((resolve, reject) => {
      let cancel = () => {};
      const end = () => {
        cancel();
        this.#searches.delete(hop);
      };
      search.found = (mac) => {
        end();
        resolve(mac);
      };
      search.failed = (error) => {
        end();
        reject(error);
      };
      const attempt = (left: number) => {
        if (left === 0) return search.failed(this.#unanswered(hop));
        cancel = this.#clock.after(kRetryMs, () => attempt(left - 1));
        this.#link.send(ask(this.#link.mac, this.#address, hop));
      };
      this.#searches.set(hop, search);
      attempt(kTries);
    });
    return search;
  }

  #unanswered(hop: string): WeirError {
    const what = this.#isIpv6 ? "neighbour solicitations" : "ARP requests";
    return new WeirError(`${hop} does not answer ${what} from ${this.#address}`, {
      hint: "check that it is up, has this address, and is on the same link (or that the route to it names a gateway)",
    });
  }

  #receive(frame: Buffer): void {
    const source = readEthernet(frame)?.source;
    if (source === undefined || source === this.#link.mac) return;
    if (this.#isIpv6) this.#receiveNeighbourMessage(frame);
    else this.#receiveArp(frame);
    if (this.#answers) this.#answer(this.echo.reply(frame));
  }

  /** Follows RFC 826, "Packet Reception": a known address is brought up to date, that of a host that asks for us is learnt. */
  #receiveArp(frame: Buffer): void {
    const arp = readArp(frame);
    if (arp === undefined) return;
    const asksUs = arp.operation === "request" && arp.targetAddress === this.#address;
    if (asksUs || this.#isWanted(arp.senderAddress)) this.#learn(arp.senderAddress, arp.senderMac);
    if (asksUs) this.#answer(arpReply(frame, this.#address, this.#link.mac));
  }

  /** Follows RFC 4861, 7.2.3 and 7.2.5. */
  #receiveNeighbourMessage(frame: Buffer): void {
    const message = readNeighbourMessage(frame);
    if (message === undefined) return;
    if (message.kind === "advertisement") {
      const isNews = message.override || !this.#known.has(message.target);
      if (message.mac !== undefined && isNews && this.#isWanted(message.target))
        this.#learn(message.target, message.mac);
    } else if (message.target === this.#address) {
      if (message.mac !== undefined) this.#learn(message.source, message.mac);
      this.#answer(neighbourAdvertisement(frame, this.#address, this.#link.mac));
    }
  }

  #answer(reply: Buffer | undefined): void {
    if (this.#answers && reply !== undefined) this.#link.send(reply);
  }

  #isWanted(address: string): boolean {
    return this.#searches.has(address) || this.#known.has(address);
  }

  #learn(address: string, mac: number): void {
    if (!isStation(mac) || address === this.#address || address === "0.0.0.0" || address === kUnspecified) return;
    this.#known.delete(address);
    this.#known.set(address, { mac, until: this.#clock.now() + kLifetimeMs });
    const [oldest] = this.#known.keys();
    if (this.#known.size > kMostEntries && oldest !== undefined) this.#known.delete(oldest);
    this.#searches.get(address)?.found(mac);
  }
}
