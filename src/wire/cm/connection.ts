/**
 * One connection on either side: IBTA volume 1, 12.9. This class decides what it sends and when; the manager decides who a
 * message is for, and whether it may be answered at all.
 */
import { WeirError } from "../../base/error.js";
import type { Clock } from "./link.js";
import { buildMessage, kAnswered, type Message } from "./messages.js";
import type { Local } from "./negotiation.js";
import type { Disconnection, Established, PeerParameters } from "./parameters.js";
import type { CmCounters, Peer } from "./port.js";
import { ConnectionRejected, kReject } from "./reject.js";
import { Retransmission, timeOfCode } from "./retransmission.js";

/**
 * States of the side that asks: requesting (REQ sent), replied (REP received, our queue pair is not ready). States of the side
 * that is asked: requested (the application decides), replying (REP sent). States of both: established, disconnecting (DREQ
 * sent), ended (old messages are still answered).
 */
export type State = "requesting" | "replied" | "requested" | "replying" | "established" | "disconnecting" | "ended";

/** Services of the manager for its connections. */
export interface Host extends Local {
  readonly clock: Clock;
  readonly counters: CmCounters;
  send(to: Peer, mad: Buffer): void;
  forget(connection: Connection): void;
}

/** Time that the peer has to confirm what was accepted, ms, whatever its messages say of that; a minute may come of MRA. */
const kConfirmMs = 90_000;
/** Longest interval between our replies to a REQ, whatever it asks for: Linux asks for 4.3 s. ms. */
const kLongestReplyMs = 4300;
/** Code for "I am busy with it": about a minute more, as Linux asks for. */
const kServiceTimeout = 24;

/** Error of requests that a host refuses by ICMP. */
export function noResponder(address: string): WeirError {
  return new WeirError(`no RoCEv2 responder at ${address}: port unreachable`, {
    hint: "RDMA is not up there: start Weir (weir ping -s, weir perf) or rxe (rdma link), or give the address that it has",
  });
}

interface Outcome {
  resolve(): void;
  reject(error: Error): void;
}

export class Connection {
  state: State;
  readonly wasAsked: boolean;
  /** Communication ID of the peer; 0 until it is known. */
  remoteId = 0;
  remoteGuid = Buffer.alloc(0);
  remoteQpn = 0;
  localQpn = 0;
  /** Transaction ID of the messages that are sent: that of the REQ that began the connection. */
  transaction: bigint;
  readonly #timer: Retransmission;
  #outcome: Outcome | undefined;
  #cancelDeadline = () => {};
  #agree: ((rep: Message<"REP">) => PeerParameters) | undefined;
  #parameters: PeerParameters | undefined;
  /** Answers a repeated message of the peer. */
  #answer: Buffer | undefined;
  #end: Disconnection | undefined;
  #listeners: ((end: Disconnection) => void)[] = [];
  #disconnected: Promise<void> | undefined;
  #onDrep = () => {};

  constructor(
    private readonly host: Host,
    readonly localId: number,
    readonly peer: Peer,
    /** Names the connection in messages to people. */
    readonly name: string,
    state: "requesting" | "requested",
  ) {
    this.#timer = new Retransmission(host.clock);
    this.state = state;
    this.wasAsked = state === "requested";
    this.transaction = BigInt(localId);
  }

  /** Tells whether both queue pairs may be in use for it. */
  get isConnected(): boolean {
    return this.state === "replied" || this.state === "replying" || this.state === "established";
  }

  /** Tells whether the peer has asked and not confirmed yet: anybody can make us have such connections. */
  get isHalfOpen(): boolean {
    return this.state === "requested" || this.state === "replying";
  }

  /** Sends a REQ until it is answered; `agree` tells what a REP amounts to. Gives up after `deadline` ms if there is one. */
  request(req: Buffer, agree: (rep: Message<"REP">) => PeerParameters, deadline?: number): Promise<Established> {
    this.#agree = agree;
    const { responseTimeout, maxRetries, clock } = this.host;
    return new Promise((resolve, reject) => {
      this.#outcome = { resolve: () => resolve(this.#established()), reject };
      const giveUp = () => this.#giveUp(kAnswered.REQ);
      if (deadline !== undefined) this.#cancelDeadline = clock.after(deadline, giveUp);
      this.#repeat(req, timeOfCode(responseTimeout), maxRetries, giveUp);
    });
  }

  /** Sends a REP until it is answered with RTU, 90 s at most. Interval in ms. */
  reply(
    rep: Buffer,
    localQpn: number,
    parameters: PeerParameters,
    interval: number,
    retries: number,
  ): Promise<Established> {
    if (this.state !== "requested") return Promise.reject(this.#gone());
    this.localQpn = localQpn;
    this.state = "replying";
    this.#answer = rep;
    this.#parameters = parameters;
    return new Promise((resolve, reject) => {
      this.#outcome = { resolve: () => resolve(this.#established()), reject };
      const giveUp = () => {
        this.host.counters.unconfirmed++;
        this.#giveUp(kAnswered.REP);
      };
      this.#cancelDeadline = this.host.clock.after(kConfirmMs, giveUp);
      this.#repeat(rep, Math.min(interval, kLongestReplyMs), retries, giveUp);
    });
  }

  /** Refuses the request, or takes its acceptance back before the peer has confirmed it; nothing if the peer has given up. */
  refuse(reason: number, privateData: Buffer): void {
    if (!this.isHalfOpen) return;
    const answered = this.state === "requested" ? kAnswered.REQ : kAnswered.REP;
    this.#answer = buildMessage("REJ", this.transaction, { ...this.#ids(), answered, reason, privateData });
    this.host.send(this.peer, this.#answer);
    this.#settle()?.reject(this.#gone());
    this.#over({ reason: "own" });
  }

  /** Ends the request: our application does not wait for the answer any more. */
  withdraw(): void {
    if (this.state === "requesting") this.#giveUp(kAnswered.REQ);
  }

  /** Ends a half open connection, which makes room for a newer one; the peer is told. */
  giveWay(): void {
    const answered = this.state === "requested" ? kAnswered.REQ : kAnswered.REP;
    this.host.counters.evicted++;
    const refusal = { ...this.#ids(), answered, reason: kReject.noResources };
    this.host.send(this.peer, buildMessage("REJ", this.transaction, refusal));
    this.#fail(
      new WeirError(`${this.name} was given up: newer requests needed its room, and it was not confirmed yet`, {
        hint: "accept or reject requests soon; when nobody connects so often, somebody may be flooding the port",
      }),
    );
    this.#timer.stop();
    this.host.forget(this);
  }

  /** Called when the peer's host says that nothing there takes RoCEv2 packets. */
  unreachable(): void {
    if (this.state !== "requesting") return;
    this.#fail(noResponder(this.peer.address));
    this.#timer.stop();
    this.host.forget(this);
  }

  /** Called when RTU has come, or data, which says the same. */
  establish(): void {
    if (this.state !== "replying") return;
    this.#timer.stop();
    this.#answer = undefined;
    this.state = "established";
    this.#settle()?.resolve();
  }

  /** Called when a REQ with the communication ID of this connection has come again. */
  repeatedRequest(): void {
    this.host.counters.duplicates++;
    if (this.state === "requested") this.#sendMra(kAnswered.REQ);
    else if (this.#answer !== undefined) this.host.send(this.peer, this.#answer);
  }

  receive(message: Message<"REP" | "MRA" | "REJ" | "RTU" | "DREQ" | "DREP">): void {
    const { counters } = this.host;
    switch (message.kind) {
      case "REP":
        this.#receiveRep(message);
        return;
      case "MRA": {
        const about =
          this.state === "requesting" ? kAnswered.REQ : this.state === "replying" ? kAnswered.REP : undefined;
        if (about !== message.fields.answered) counters.unexpected++;
        else this.#timer.postpone(timeOfCode(message.fields.serviceTimeout));
        return;
      }
      case "REJ":
        if (this.state === "ended") counters.duplicates++;
        else this.#fail(new ConnectionRejected(this.name, message.fields.reason, message.fields.privateData));
        return;
      case "RTU":
        if (this.state === "replying") this.establish();
        else if (this.state === "established") counters.duplicates++;
        else counters.unexpected++;
        return;
      case "DREQ":
        this.#receiveDreq(message);
        return;
      case "DREP":
        if (this.state === "disconnecting") this.#over({ reason: "own" });
        else counters.unexpected++;
    }
  }

  ready(): void {
    if (this.state === "established") return;
    if (this.state !== "replied") throw this.#gone();
    this.state = "established";
    this.#answer = buildMessage("RTU", this.transaction, this.#ids());
    this.host.send(this.peer, this.#answer);
  }

  /** Called when the peer's queue pair has begun anew: the connection is gone, and the peer hears so in case it thinks otherwise. */
  superseded(): void {
    this.#settle()?.reject(this.#gone());
    this.host.send(this.peer, this.#dreq());
    this.#over({ reason: "peer" });
  }

  disconnect(): Promise<void> {
    this.#disconnected ??= new Promise((resolve) => {
      if (!this.isConnected) return resolve();
      this.#settle()?.reject(this.#gone());
      this.state = "disconnecting";
      this.#onDrep = resolve;
      const { responseTimeout, maxRetries } = this.host;
      this.#repeat(this.#dreq(), timeOfCode(responseTimeout), maxRetries, () => this.#over({ reason: "timeout" }));
    });
    return this.#disconnected;
  }

  /** Called when the device goes away: nobody waits for anything any more. */
  close(): void {
    void this.disconnect();
    this.#fail(new WeirError(`the connection with ${this.name} was given up: the device was closed`));
    this.#timer.stop();
    this.host.forget(this);
  }

  #receiveRep(rep: Message<"REP">): void {
    const { fields } = rep;
    if (this.state === "requesting" && this.#agree !== undefined) {
      this.#timer.stop();
      this.remoteId = fields.localId;
      this.remoteGuid = Buffer.from(fields.localGuid);
      this.remoteQpn = fields.localQpn;
      this.state = "replied";
      this.#parameters = this.#agree(rep);
      this.#settle()?.resolve();
      return;
    }
    const isRepeated = this.#agree !== undefined && fields.localId === this.remoteId;
    this.host.counters[isRepeated ? "duplicates" : "unexpected"]++;
    if (!isRepeated) return;
    if (this.state === "replied") this.#sendMra(kAnswered.REP);
    else if (this.state === "established" && this.#answer !== undefined) this.host.send(this.peer, this.#answer);
  }

  #receiveDreq({ transaction, fields }: Message<"DREQ">): void {
    const isOpen = this.isConnected || this.state === "disconnecting";
    if (fields.remoteQpn !== this.localQpn || !(isOpen || this.state === "ended")) {
      this.host.counters.unexpected++;
      return;
    }
    // A peer that disconnects has seen our REP: its RTU was lost.
    this.establish();
    this.host.send(this.peer, buildMessage("DREP", transaction, this.#ids()));
    if (isOpen) this.#over({ reason: "peer" });
    else this.host.counters.duplicates++;
  }

  #dreq(): Buffer {
    return buildMessage("DREQ", BigInt(this.localId), { ...this.#ids(), remoteQpn: this.remoteQpn });
  }

  #repeat(mad: Buffer, interval: number, retries: number, giveUp: () => void): void {
    const send = (isAgain: boolean) => {
      if (isAgain) this.host.counters.retransmitted++;
      this.host.send(this.peer, mad);
    };
    this.#timer.start(interval, retries, send, giveUp);
  }

  #sendMra(answered: number): void {
    const fields = { ...this.#ids(), answered, serviceTimeout: kServiceTimeout };
    this.host.send(this.peer, buildMessage("MRA", this.transaction, fields));
  }

  /** Tells the peer that it has not answered, by the name of our adapter since it may not know our communication ID. */
  #giveUp(answered: number): void {
    const { guid } = this.host;
    const reason = { answered, infoLength: guid.length, reason: kReject.timeout, info: guid };
    this.host.send(this.peer, buildMessage("REJ", this.transaction, { ...this.#ids(), ...reason }));
    const what = answered === kAnswered.REQ ? "connection requests" : "the acceptance of its connection request";
    this.#fail(
      new WeirError(`${this.name} does not answer ${what}`, {
        hint: "check that RDMA is up there and that no firewall drops UDP port 4791",
      }),
    );
  }

  #fail(error: Error): void {
    if (this.state === "ended") return;
    this.#answer = undefined;
    this.#settle()?.reject(error);
    const isRejected = error instanceof ConnectionRejected;
    this.#over(
      isRejected ? { reason: "rejected", code: error.reason, privateData: error.privateData } : { reason: "closed" },
    );
  }

  /** Keeps the connection known for as long as the peer may repeat what it sent. */
  #over(end: Disconnection): void {
    this.state = "ended";
    this.#end = end;
    this.#timer.start(
      2 * timeOfCode(this.host.responseTimeout),
      0,
      () => {},
      () => this.host.forget(this),
    );
    this.#onDrep();
    for (const listener of this.#listeners.splice(0)) listener(end);
  }

  #settle(): Outcome | undefined {
    this.#cancelDeadline();
    const outcome = this.#outcome;
    this.#outcome = undefined;
    return outcome;
  }

  #established(): Established {
    return {
      ...(this.#parameters as PeerParameters),
      ready: () => this.ready(),
      disconnect: () => this.disconnect(),
      onDisconnected: (listener) => {
        if (this.#end !== undefined) listener(this.#end);
        else this.#listeners.push(listener);
      },
    };
  }

  #ids(): { localId: number; remoteId: number } {
    return { localId: this.localId, remoteId: this.remoteId };
  }

  #gone(): WeirError {
    return new WeirError(`the connection with ${this.name} has ended meanwhile`, { hint: "connect again" });
  }
}
