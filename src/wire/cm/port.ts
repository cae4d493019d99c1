/** The general services interface of a device: sends MADs to queue pair 1 of others and delivers those that come to ours. */
import { canonicalAddress, isStation } from "../address.js";
import { kEthernetHeader, kRocePort } from "../headers.js";
import { readUnreachable } from "../icmp.js";
import { buildMadFrame, kMadSourcePort, readMadFrame } from "./frame.js";
import type { FrameLink } from "./link.js";
import { type Message, readMessage } from "./messages.js";

/** Sender of a message, or its destination. */
export interface Peer {
  address: string;
  mac: number;
}

/** Counters of one address of a device, at zero; each counts messages, but the last three count requests. */
const kNoCounts = {
  received: 0,
  sent: 0,
  /** Sent again because no answer came in time. */
  retransmitted: 0,
  /** Received again, and answered again where an answer is due. */
  duplicates: 0,
  /** Messages that are not known, or contradict themselves. */
  malformed: 0,
  /** Messages about no connection that there is, or out of turn. */
  unexpected: 0,
  /** Half open requests of others that were given up for newer ones. */
  evicted: 0,
  /** Requests of others that were accepted, and given up because the peer did not say in time that it is ready. */
  unconfirmed: 0,
  /** Requests of others that were refused because there are too many connections. */
  refused: 0,
};
export type CmCounters = typeof kNoCounts;

export interface GsiEvents {
  message(message: Message, from: Peer): void;
  /** Called when the host at the address is there, and nothing has the port that RoCEv2 uses. */
  unreachable(address: string): void;
}

export class GsiPort {
  readonly address: string;
  readonly counters: CmCounters = { ...kNoCounts };
  readonly #unsubscribe: () => void;
  #psn = 0;
  #identification = 0;

  constructor(
    private readonly link: FrameLink,
    address: string,
    events: GsiEvents,
  ) {
    this.address = canonicalAddress(address);
    this.#unsubscribe = link.onFrame((bytes) => {
      const frame = readMadFrame(bytes);
      if (frame === undefined) this.#receiveRefusal(bytes, events);
      if (frame?.destination !== this.address || !isStation(frame.sourceMac)) return;
      const message = readMessage(frame.mad);
      if (message === undefined) {
        this.counters.malformed++;
      } else {
        this.counters.received++;
        events.message(message, { address: frame.source, mac: frame.sourceMac });
      }
    });
  }

  send(to: Peer, mad: Buffer): void {
    this.#identification = (this.#identification % 0xffff) + 1; // never 0
    const frame = {
      destinationMac: to.mac,
      sourceMac: this.link.mac,
      source: this.address,
      destination: to.address,
      psn: this.#psn,
      mad,
    };
    this.#psn = (this.#psn + 1) & 0xff_ffff;
    // A frame that the link refuses is lost like one on the wire: messages that matter are sent again.
    if (this.link.send(buildMadFrame(frame, this.#identification))) this.counters.sent++;
  }

  /** Takes ICMP about one of our messages. */
  #receiveRefusal(bytes: Buffer, events: GsiEvents): void {
    if (bytes.length < kEthernetHeader) return;
    const refusal = readUnreachable(bytes.subarray(kEthernetHeader));
    if (refusal === undefined || !refusal.isPort) return;
    const { source, destination, sourcePort, destinationPort } = refusal.quoted;
    const isOurs = source === this.address && sourcePort === kMadSourcePort && destinationPort === kRocePort;
    if (isOurs) events.unreachable(destination);
  }

  close(): void {
    this.#unsubscribe();
  }
}
