/**
 * LLDP at one port (IEEE 802.1AB-2016, clauses 9.2.8 to 9.2.10): when to send, credit by which changes cannot flood a link, fast
 * start for new neighbours, and what neighbours have told, kept for as long as they said.
 */
import type { Clock } from "../cm/link.js";
import { buildEthernet, readEthernet } from "../ethernet.js";
import { kEtherType } from "../headers.js";
import { buildLldpdu, chassisText, kNearestBridge, type Lldpdu, portText, readLldpdu } from "./lldpdu.js";

/** Names are those of clause 9.2.5; times in seconds. */
export interface LldpTimes {
  msgTxInterval: number;
  /** A neighbour keeps what it was told for so many intervals. */
  msgTxHold: number;
}

const kFastTx = 1;
const kFastInit = 4;
const kCreditMax = 5;
const kMostTtl = 65_535;
/** Neighbours at one port, as many as a shared medium may have by mistake; and LLDPDUs of all of them in a second. */
const kMostNeighbours = 16;
const kMostFrames = 2 * kMostNeighbours;

export interface AgentLink {
  /** 48 bits. */
  readonly mac: number;
  /** Sends an Ethernet frame without FCS; false: it was not taken. */
  send(frame: Buffer): boolean;
}

/** Names are those of clause 9.2.6. */
export interface AgentCounts {
  framesOut: number;
  /** Frames that could not be handed to the port. */
  framesOutRefused: number;
  framesIn: number;
  /** Frames that were left alone: more than 32 in a second. */
  framesLimited: number;
  framesDiscarded: number;
  framesInErrors: number;
  tlvsDiscarded: number;
  tlvsUnrecognized: number;
  ageouts: number;
  /** Frames of neighbours for which there was no room. */
  tooManyNeighbours: number;
}

export interface Neighbour {
  /** Source address of the frame. */
  mac: number;
  pdu: Lldpdu;
  /** Time by the clock, ms. */
  expiresAt: number;
}

export interface AgentEvents {
  /** Called when there are other neighbours than before, or they tell other things. */
  changed(): void;
  appeared(neighbour: Neighbour): void;
  left(neighbour: Neighbour, why: "shutdown" | "aged out" | "port down"): void;
  /** Called once, until a whole LLDPDU comes. */
  malformed(mac: number, why: string): void;
}

interface Known extends Neighbour {
  bytes: Buffer;
  cancel: () => void;
}

const kNothing = () => {};

export class LldpAgent {
  readonly counts: AgentCounts = {
    framesOut: 0,
    framesOutRefused: 0,
    framesIn: 0,
    framesLimited: 0,
    framesDiscarded: 0,
    framesInErrors: 0,
    tlvsDiscarded: 0,
    tlvsUnrecognized: 0,
    ageouts: 0,
    tooManyNeighbours: 0,
  };
  readonly #known = new Map<string, Known>();
  #up = false;
  #closed = false;
  #credit = kCreditMax;
  /** Time at which the credit was that: it grows by one each second. */
  #creditAt: number;
  #fastLeft = 0;
  #cancel: () => void = kNothing;
  #nextAt = Number.POSITIVE_INFINITY;
  #complained = false;
  /** Start of this second of received frames, and how many there were. */
  #secondAt = Number.NEGATIVE_INFINITY;
  #heardInSecond = 0;

  /** @param local Returns what this port tells, but for the time to live. */
  constructor(
    private readonly link: AgentLink,
    private readonly clock: Clock,
    private times: LldpTimes,
    private readonly local: () => Omit<Lldpdu, "ttl">,
    private readonly events: AgentEvents,
  ) {
    this.#creditAt = clock.now();
  }

  get neighbours(): readonly Neighbour[] {
    return [...this.#known.values()];
  }

  /** Says whether the port can be used; if it cannot any more, neighbours are forgotten. */
  setUp(up: boolean): void {
    if (this.#closed || up === this.#up) return;
    this.#up = up;
    if (up) {
      this.#transmitSoon();
      return;
    }
    this.#cancel();
    this.#nextAt = Number.POSITIVE_INFINITY;
    this.#fastLeft = 0;
    for (const key of [...this.#known.keys()]) this.#forget(key, "port down");
  }

  setTimes(times: LldpTimes): void {
    this.times = times;
    this.localChanged();
  }

  /** Called when `local` returns something else (somethingChangedLocal). */
  localChanged(): void {
    if (this.#up && !this.#closed) this.#transmitSoon();
  }

  /** Tells neighbours that this port leaves. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#cancel();
    if (this.#up) this.#send(0);
    this.#closed = true;
    for (const { cancel } of this.#known.values()) cancel();
    this.#known.clear();
  }

  /** @param frame With its Ethernet header, untagged. */
  receive(frame: Buffer): void {
    if (!this.#up || this.#closed) return;
    const ethernet = readEthernet(frame);
    if (ethernet?.etherType !== kEtherType.lldp) return;
    this.counts.framesIn++;
    if (this.#isFlooded()) {
      this.counts.framesLimited++;
      return;
    }
    const { source: mac, payload: bytes } = ethernet;
    const { pdu, tlvsDiscarded, tlvsUnrecognized, error } = readLldpdu(bytes);
    this.counts.tlvsDiscarded += tlvsDiscarded;
    this.counts.tlvsUnrecognized += tlvsUnrecognized;
    if (error !== undefined) {
      this.counts.framesInErrors++;
      if (!this.#complained) this.events.malformed(mac, error);
    }
    this.#complained = error !== undefined;
    if (pdu === undefined) this.counts.framesDiscarded++;
    else this.#hear(mac, pdu, Buffer.from(bytes));
  }

  /** Counts TLVs of an organization that its reader refused. */
  countDiscarded(tlvs: number): void {
    this.counts.tlvsDiscarded += tlvs;
  }

  #isFlooded(): boolean {
    const now = this.clock.now();
    if (now - this.#secondAt >= 1000) {
      this.#secondAt = now;
      this.#heardInSecond = 0;
    }
    return ++this.#heardInSecond > kMostFrames;
  }

  #hear(mac: number, pdu: Lldpdu, bytes: Buffer): void {
    const { chassis, port } = pdu;
    const key = `${chassis.subtype} ${chassis.id.toString("hex")} ${port.subtype} ${port.id.toString("hex")}`;
    const before = this.#known.get(key);
    if (pdu.ttl === 0) {
      if (before !== undefined) this.#forget(key, "shutdown");
      return;
    }
    if (before === undefined && this.#known.size >= kMostNeighbours) {
      this.counts.tooManyNeighbours++;
      return;
    }
    before?.cancel();
    const lifetime = pdu.ttl * 1000;
    const cancel = this.clock.after(lifetime, () => {
      this.counts.ageouts++;
      this.#forget(key, "aged out");
    });
    const neighbour = { mac, pdu, bytes, cancel, expiresAt: this.clock.now() + lifetime };
    this.#known.set(key, neighbour);
    if (before === undefined) {
      this.#fastLeft = kFastInit;
      this.#transmitSoon();
      this.events.appeared(neighbour);
    }
    if (before === undefined || before.mac !== mac || !before.bytes.equals(bytes)) this.events.changed();
  }

  #forget(key: string, why: Parameters<AgentEvents["left"]>[1]): void {
    const neighbour = this.#known.get(key);
    if (neighbour === undefined) return;
    neighbour.cancel();
    this.#known.delete(key);
    this.events.left(neighbour, why);
    this.events.changed();
  }

  #transmitSoon(): void {
    this.#transmitAt(this.clock.now());
  }

  /** Transmits no later than `at`; without credit, as soon as there is some. */
  #transmitAt(at: number): void {
    const when = this.#creditNow() > 0 ? at : Math.max(at, this.#creditAt + 1000);
    if (when >= this.#nextAt) return;
    this.#cancel();
    this.#nextAt = when;
    this.#cancel = this.clock.after(when - this.clock.now(), () => this.#transmit());
  }

  #creditNow(): number {
    const seconds = Math.floor((this.clock.now() - this.#creditAt) / 1000);
    this.#creditAt += seconds * 1000;
    this.#credit = Math.min(kCreditMax, this.#credit + seconds);
    return this.#credit;
  }

  #transmit(): void {
    this.#nextAt = Number.POSITIVE_INFINITY;
    if (this.#creditNow() === 0) {
      this.#transmitSoon();
      return;
    }
    const { msgTxInterval, msgTxHold } = this.times;
    this.#send(Math.min(kMostTtl, msgTxInterval * msgTxHold + 1));
    this.#credit--;
    if (this.#fastLeft > 0) this.#fastLeft--;
    this.#transmitAt(this.clock.now() + 1000 * (this.#fastLeft > 0 ? kFastTx : msgTxInterval));
  }

  #send(ttl: number): void {
    const { chassis, port } = this.local();
    // A shutdown has the mandatory TLVs alone (8.2.2).
    const pdu =
      ttl === 0 ? { chassis, port, ttl, managementAddresses: [], organization: [] } : { ...this.local(), ttl };
    const frame = buildEthernet(kNearestBridge, this.link.mac, kEtherType.lldp, buildLldpdu(pdu));
    if (this.link.send(frame)) this.counts.framesOut++;
    else this.counts.framesOutRefused++;
  }
}

/** Names a neighbour as logs do. */
export function neighbourText({ pdu }: Pick<Neighbour, "pdu">) {
  return { neighbour: pdu.systemName ?? chassisText(pdu.chassis), its_port: portText(pdu.port) };
}
