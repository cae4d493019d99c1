/**
 * The parts of a lab begin and end together. Each tells its neighbours, on the links that join them, how far it and all others that
 * it has heard of are. The scenario's first part is the root: when all are ready it says when traffic starts, by its clock. The
 * difference to a neighbour's clock is measured as NTP does (RFC 5905, section 8), from the exchange with the shortest round trip; the
 * difference to the root's is the sum along the shortest way. So machines need no common clock, and no network beside these links.
 *
 * This module does no I/O, and reads no clock.
 */
import { type Hello, kStates, type PartState } from "./hello.js";

/** Time from the root's word to the start of traffic, ns: the word reaches all parts, and their threads are waiting by then. */
export const kLeadNs = 1e9;
/** Exchanges before a clock counts as known. */
const kExchanges = 8;
/** Silence after which a neighbour counts as gone, ns. */
const kSilenceNs = 3e9;

export interface MeetingLink {
  /** Position among the scenario's links. */
  link: number;
  /** Position of the part at the other end. */
  far: number;
  interface: string;
}

export interface MeetingPlace {
  digest: string;
  /** Names of the parts in the scenario's order. */
  parts: readonly string[];
  /** Position of this part. */
  own: number;
  links: readonly MeetingLink[];
}

interface Neighbour {
  /** Field `sent` of the neighbour's last hello, and when that came here, ns of our clock. */
  heard: [sent: number, received: number] | null;
  exchanges: number;
  /** Shortest round trip so far, ns. */
  roundTrip: number;
  /** Time by which the neighbour's clock is ahead of ours, ns, by that exchange. */
  ahead: number;
  root: Hello["root"];
  why: string | undefined;
}

const kNobody = (): Neighbour => ({
  heard: null,
  exchanges: 0,
  roundTrip: Number.POSITIVE_INFINITY,
  ahead: 0,
  root: null,
  why: undefined,
});

export class Meeting {
  private readonly neighbours: Neighbour[];
  private states: [state: PartState, version: number][];
  /** Number of the run: see Hello. */
  run: number;
  /** Start of traffic by the root's clock. */
  private start: number | null = null;
  private why: string | undefined;
  private fault: string | undefined;

  /** @param wall ms since 1970. */
  constructor(
    private readonly place: MeetingPlace,
    wall: number,
  ) {
    this.neighbours = place.links.map(kNobody);
    // The number is higher than those of an earlier run of this part, which others may have heard of.
    this.states = place.parts.map((_, i) => ["waiting", i === place.own ? wall : 0]);
    this.run = place.own === 0 ? wall : 0;
  }

  /** Takes this part into a state. */
  enter(state: PartState, why?: string): void {
    const [now, version] = this.states[this.place.own] as [PartState, number];
    if (now === state || now === "ended") return;
    this.states[this.place.own] = [state, version + 1];
    this.why = why;
  }

  /** Returns the hello for the other end of link number `index` of the place. */
  hello(index: number, now: number): Hello {
    const { digest, own, links } = this.place;
    return {
      ...{ digest, part: own, link: links[index]?.link ?? 0, run: this.run, sent: now },
      heard: this.neighbours[index]?.heard ?? null,
      root: this.root(),
      start: this.start,
      states: this.states.map(([state, version]) => [kStates.indexOf(state), version]),
      ...(this.why !== undefined && { why: this.why }),
    };
  }

  /** Takes a hello from the other end of link number `index`, and its time of arrival. */
  hear(index: number, hello: Hello, received: number): void {
    const link = this.place.links[index] as MeetingLink;
    this.fault ??= this.faultOf(link, hello);
    if (this.fault !== undefined || !this.concerns(hello)) return;
    const neighbour = this.neighbours[index] as Neighbour;
    this.measure(neighbour, hello, received);
    neighbour.heard = [hello.sent, received];
    neighbour.root = hello.root;
    neighbour.why = hello.why;
    hello.states.forEach(([number, version], part) => {
      const [known, state] = [this.states[part], kStates[number]];
      if (known === undefined || state === undefined || part === this.place.own || version <= known[1]) return;
      this.states[part] = [state, version];
    });
    this.start ??= hello.start;
  }

  /** Is called now and then. Returns true once traffic has a start. */
  agree(now: number): boolean {
    if (this.place.own === 0 && this.start === null && this.states.every(([state]) => state === "ready")) {
      this.start = now + kLeadNs;
    }
    return this.start !== null && this.root() !== null;
  }

  /** Start of traffic, ns of our clock. */
  get startsAt(): number {
    return (this.start ?? Number.NaN) - (this.root()?.[0] ?? Number.NaN);
  }

  /** Whether the clock of the root is known well enough. */
  get synchronised(): boolean {
    return this.root() !== null;
  }

  /** Reason why there can be no run of all parts. */
  get problem(): string | undefined {
    return this.fault;
  }

  /** Parts that are not as far as ready, by name. */
  get absent(): string[] {
    return this.place.parts.filter((_, i) => this.states[i]?.[0] === "waiting");
  }

  /** Whether traffic is over at all parts, and no frame is under way. */
  get quiet(): boolean {
    return this.states.every(([state]) => state === "calm" || state === "ended");
  }

  /** Names a part that has left a run that is not over, or is not heard any more. */
  lost(now: number): string | undefined {
    for (const [i, { heard, why }] of this.neighbours.entries()) {
      const { far, interface: name } = this.place.links[i] as MeetingLink;
      const part = this.place.parts[far];
      const [state] = this.states[far] as [PartState, number];
      if (state === "ended" && why !== undefined) return `part ${part} has ended: ${why}`;
      const silence = now - (heard?.[1] ?? now);
      if (state !== "ended" && silence > kSilenceNs) return `nothing was heard of part ${part} on ${name} for 3 s`;
    }
    return undefined;
  }

  /** Shortest round trip to the other end of link number `index`, ns. */
  roundTrip(index: number): number {
    return this.neighbours[index]?.roundTrip ?? Number.POSITIVE_INFINITY;
  }

  private faultOf({ link, far, interface: name }: MeetingLink, hello: Hello): string | undefined {
    const { parts, digest } = this.place;
    if (hello.digest !== digest) {
      return `${name} leads to a lab that runs another scenario, or the same with another scale or --set, or by another version of weir`;
    }
    const there = parts[hello.part];
    if (hello.part !== far) return `${name} is to lead to part ${parts[far]}, and leads to part ${there}`;
    if (hello.link !== link) return `${name} is the end of another link at part ${there} than here`;
    return undefined;
  }

  /**
   * Whether a hello concerns us: those of runs that are over, or of a later one than ours, do not; a later run that has not started is
   * ours.
   */
  private concerns(hello: Hello): boolean {
    if (hello.run === this.run) return true;
    if (hello.run < this.run) return hello.run === 0;
    const begun = hello.states.some(([state]) => state > kStates.indexOf("ready"));
    if (this.start !== null || begun || this.place.own === 0) return false;
    // The root has begun anew: the states known of the others are those of the run before.
    const own = this.states[this.place.own] as [PartState, number];
    this.states = this.place.parts.map((_, i) => (i === this.place.own ? own : ["waiting", 0]));
    this.run = hello.run;
    return true;
  }

  private measure(neighbour: Neighbour, { heard, sent }: Hello, received: number): void {
    if (heard === null) return;
    const [ours, arrived] = heard;
    const roundTrip = received - ours - (sent - arrived);
    neighbour.exchanges++;
    if (roundTrip < 0 || roundTrip >= neighbour.roundTrip) return;
    neighbour.roundTrip = roundTrip;
    neighbour.ahead = (arrived - ours + sent - received) / 2;
  }

  /** Time by which the root's clock is ahead of ours, along the shortest way. */
  private root(): [ahead: number, links: number] | null {
    if (this.place.own === 0) return [0, 0];
    let best: [number, number] | null = null;
    for (const { root, ahead, exchanges } of this.neighbours) {
      if (root === null || exchanges < kExchanges) continue;
      const [further, links] = root;
      if (links + 1 < (best?.[1] ?? this.place.parts.length)) best = [Math.round(ahead + further), links + 1];
    }
    return best;
  }
}
