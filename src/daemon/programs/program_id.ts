/**
 * One of the ids by which a program of librdmacm has connections (struct rdma_cm_id): its commands, and the events that come of
 * them. The connection manager (src/wire/cm/) has the connections themselves; errors are those of Linux.
 */
import { constants } from "node:os";
import { isGroup } from "../../wire/address.js";
import type { IncomingRequest } from "../../wire/cm/connection_manager.js";
import { kPathMtus, kPrivateData, type PathMtu } from "../../wire/cm/messages.js";
import type { Disconnection, Established, PeerParameters } from "../../wire/cm/parameters.js";
import { ConnectionRejected, kReject } from "../../wire/cm/reject.js";
import { timeOfCode } from "../../wire/cm/retransmission.js";
import { type ServiceAnswer, ServiceRefused, type ServiceRequest } from "../../wire/cm/service_resolution.js";
import type { IdHost } from "./id_host.js";
import { isAny, isIpv6, type NicAddress, sourceTowards } from "./nic_address.js";
import { Refusal } from "./refusal.js";
import {
  attributesAnswer,
  type ConnectionEvent,
  type ConnectionParameters,
  kCommunicationEstablished,
  kEvent,
  kOption,
  kPortSpace,
  routeAnswer,
  type SocketAddress,
  type Way,
} from "./ucma.js";

const { EADDRINUSE, EADDRNOTAVAIL, EINVAL, ENETUNREACH, ENOMEM, ENOPROTOOPT, ETIMEDOUT } = constants.errno;
/** RDMA_UDP_QKEY, for datagrams that name no other. */
const kUdpQkey = 0x0123_4567;
/** Destination of datagrams to a group: all of its members. */
const kGroupQpn = 0xff_ffff;
const kPsns = 2 ** 24;
/** Default of Linux for net.rdma_ucm.max_backlog. */
const kMostBacklog = 1024;
/** Time for which numbers of a connection rest after its end: Linux derives it from the local ACK timeout, ms. */
const kTimewaitMs = timeOfCode(19);
/** Interval at which a peer that is not found is looked for again, ms. */
const kFindAgainMs = 1000;
const kState = { init: 1, rtr: 2, rts: 3 };
const kAccess = { remoteWrite: 2, remoteRead: 4, remoteAtomic: 8 };

/** The program that an id belongs to. */
export interface IdOwner {
  event(id: ProgramId, event: ConnectionEvent): void;
  /** Called when a peer wants to connect to `listener`. @throws Refusal when the program has no room for one more. */
  connectRequest(listener: ProgramId, event: ConnectionEvent): ProgramId;
  mayNameQueuePair(qpn: number): boolean;
}

/**
 * bound: has an address; resolved: knows where its peer is, and the way to it; waiting: connect or accept were called; asked: a peer
 * wants to connect; closing: the program has disconnected, and the peer has not answered.
 */
type State =
  | "idle"
  | "bound"
  | "resolving"
  | "resolved"
  | "routed"
  | "listening"
  | "waiting"
  | "asked"
  | "up"
  | "closing"
  | "over";

export class ProgramId {
  /** For a listener, room for requests that the program has not been told of. */
  backlog = 0;
  sharesPort = false;
  #state: State = "idle";
  #source: SocketAddress | undefined;
  /** NIC address of `#source`, unless that is all addresses. */
  #own: NicAddress | undefined;
  /** Set for a "::" that takes no connections of IPv4. */
  #onlyItsFamily = false;
  #destination: SocketAddress | undefined;
  /** True if the source port is its own, not a listener's. */
  #holdsPort = false;
  #trafficClass = 0;
  #ackTimeout: number | undefined;
  readonly #gone = new AbortController();
  /** Parameters of the peer; those of a request are an offer. */
  #peer: PeerParameters | undefined;
  #request: IncomingRequest | undefined;
  #established: Established | undefined;
  #answerService: ((answer: ServiceAnswer | undefined) => void) | undefined;
  /** Listeners at the addresses that it listens at. */
  readonly #listeners = new Map<NicAddress, { close(): void }>();
  #cancelTimewait = () => {};

  constructor(
    private readonly host: IdHost,
    public owner: IdOwner,
    readonly number: number,
    readonly space: number,
    /** The program's name of it; 0 until it has accepted. */
    public uid: bigint,
    private psn = host.random() % kPsns,
  ) {}

  get isDatagram(): boolean {
    return this.space === kPortSpace.udp;
  }

  get address(): string {
    return this.#source?.address ?? "::";
  }

  get onlyItsFamily(): boolean {
    return this.#onlyItsFamily || !isIpv6(this.address);
  }

  get listens(): boolean {
    return this.#state === "listening";
  }

  /** @param address An address; port 0: any. @throws Refusal, like all that follow. */
  bind(address: SocketAddress | undefined): void {
    this.#require("idle");
    if (address === undefined) throw new Refusal(EINVAL);
    const own = this.host.addresses.find((one) => one.address === address.address);
    if (!isAny(address.address) && own === undefined) throw new Refusal(EADDRNOTAVAIL);
    this.#own = own;
    this.#takePort(address);
    this.#state = "bound";
  }

  /** Looks for the peer; an event tells that it is found, or that it is not. */
  resolveAddress(source: SocketAddress | undefined, destination: SocketAddress | undefined, timeoutMs: number): void {
    const { addresses, clock } = this.host;
    if (destination === undefined) throw new Refusal(EINVAL);
    const nowhere = isAny(destination.address);
    const own = sourceTowards(addresses, destination.address) ?? (nowhere ? addresses[0] : undefined);
    if (own === undefined) throw new Refusal(ENETUNREACH);
    if (this.#state === "idle") this.bind(source ?? { address: own.address, port: 0 });
    this.#require("bound");
    this.#own ??= own;
    // An unspecified destination means this host.
    const address = nowhere ? this.#own.address : destination.address;
    if (isIpv6(address) !== isIpv6(this.#own.address)) throw new Refusal(EINVAL);
    this.#source = { address: this.#own.address, port: this.#source?.port ?? 0 };
    this.#destination = { address, port: destination.port };
    this.#state = "resolving";
    let isOver = false;
    const end = (state: State, event: ConnectionEvent) => {
      cancel();
      if (isOver || this.#state !== "resolving") return;
      isOver = true;
      this.#state = state;
      this.#tell(event);
    };
    const cancel = clock.after(timeoutMs, () => end("bound", { event: kEvent.addressError, status: -ETIMEDOUT }));
    // As on Linux, a peer that is not found is looked for again for as long as the program waits.
    const { find } = this.#own;
    const look = () => {
      if (isOver || this.#state !== "resolving") return;
      find(address).then(
        () => end("resolved", { event: kEvent.addressResolved }),
        () => void clock.after(kFindAgainMs, look),
      );
    };
    look();
  }

  resolveRoute(): void {
    this.#require("resolved");
    this.#state = "routed";
    this.#tell({ event: kEvent.routeResolved });
  }

  route(): Buffer {
    return routeAnswer({
      // A listener on all addresses is on no NIC in particular.
      guid: isAny(this.#source?.address ?? "") ? Buffer.alloc(8) : this.host.guid,
      source: this.#source,
      destination: this.#destination,
      isResolved: this.#destination !== undefined && this.#state !== "resolving" && this.#state !== "resolved",
      pathMtu: codeOf(this.host.pathMtu),
      trafficClass: this.#trafficClass,
    });
  }

  /** @param backlog Most requests that wait; 0 or less: as many as there may be. */
  listen(backlog: number): void {
    if (this.#state === "idle") this.bind({ address: "::", port: 0 });
    this.#require("bound");
    if (!this.host.ports[this.space]?.isAlone(this.#source?.port ?? 0, this)) throw new Refusal(EADDRINUSE);
    this.backlog = backlog > 0 ? Math.min(backlog, kMostBacklog) : kMostBacklog;
    this.#state = "listening";
    for (const own of this.host.addresses) this.#listenAt(own);
  }

  /** The NIC has other addresses: who has one that went is told. */
  takeAddresses(came: readonly NicAddress[], went: readonly NicAddress[]): void {
    for (const own of went) {
      this.#listeners.get(own)?.close();
      this.#listeners.delete(own);
    }
    if (this.listens) for (const own of came) this.#listenAt(own);
    if (went.some((own) => this.has(own))) this.#tell({ event: kEvent.addressChange });
  }

  has(address: NicAddress): boolean {
    return this.#own === address;
  }

  connect(parameters: ConnectionParameters): void {
    this.#require("routed");
    const { address = "", port = 0 } = this.#destination ?? {};
    const manager = this.#own?.manager;
    if (port === 0 || manager === undefined || isGroup(address)) throw new Refusal(EINVAL);
    const most = this.isDatagram ? kPrivateData.SIDR_REQ : kPrivateData.REQ;
    if (parameters.privateData.length > most) throw new Refusal(EINVAL);
    const common = { sourcePort: this.#source?.port ?? 0, signal: this.#gone.signal };
    this.#state = "waiting";
    if (this.isDatagram) {
      manager.services.resolve(address, port, parameters.privateData, common).then(
        ({ remoteQpn, qkey, privateData }) => {
          if (this.#state !== "waiting") return;
          this.#state = "up";
          const datagram = { ...this.#way(0), qpn: remoteQpn, qkey };
          this.#tell({ event: kEvent.established, privateData, datagram });
        },
        (error) => this.#failed(error),
      );
      return;
    }
    this.#checkQueuePair(parameters.qpn);
    const { responderResources, initiatorDepth, retryCount, rnrRetryCount, privateData, qpn } = parameters;
    const options = {
      ...{ destination: address, port, qpn, startingPsn: this.psn, pathMtu: this.host.pathMtu, privateData },
      ...{ responderResources, initiatorDepth, retryCount, rnrRetryCount, trafficClass: this.#trafficClass, ...common },
      ...(this.#ackTimeout !== undefined && { ackTimeout: this.#ackTimeout }),
    };
    manager.connect(options).then(
      (established) => {
        if (this.#state !== "waiting") return void established.disconnect();
        this.#peer = established;
        this.#established = established;
        this.#tell({ event: kEvent.connectResponse, ...told(established) });
        established.onDisconnected((end) => this.#disconnected(end));
      },
      (error) => this.#failed(error),
    );
  }

  /** @returns the event for the program, and a function that ends the membership. */
  joinGroup(group: SocketAddress | undefined): { event: ConnectionEvent; leave(): void } {
    const own = this.#own;
    if (own === undefined || !this.isDatagram || this.#state === "listening") throw new Refusal(EINVAL);
    const { address = "" } = group ?? {};
    if (address === "" || !isGroup(address) || isIpv6(address) !== isIpv6(own.address)) throw new Refusal(EINVAL);
    const leave = this.host.groups.join(address);
    if (leave === undefined) throw new Refusal(ENOMEM);
    const way = { address, sourceIndex: own.index, trafficClass: this.#trafficClass, flowLabel: 0 };
    return { event: { event: kEvent.groupJoined, datagram: { ...way, qpn: kGroupQpn, qkey: kUdpQkey } }, leave };
  }

  /** Accepts a request; on the side that asked, and was answered, says that it is ready. */
  accept(uid: bigint, parameters: ConnectionParameters): void {
    if (this.#established !== undefined && this.#state === "waiting") {
      try {
        this.#established.ready();
      } catch {
        throw new Refusal(EINVAL);
      }
      this.#state = "up";
      return;
    }
    this.#require("asked");
    const { qpn, qkey, privateData, responderResources, initiatorDepth, rnrRetryCount } = parameters;
    if (privateData.length > (this.isDatagram ? kPrivateData.SIDR_REP : kPrivateData.REP)) throw new Refusal(EINVAL);
    this.#checkQueuePair(qpn);
    this.uid = uid;
    if (this.#answerService !== undefined) {
      this.#state = "up";
      this.#answerService({ qpn, qkey: qkey === 0 ? kUdpQkey : qkey, privateData });
      return;
    }
    this.#state = "waiting";
    const own = { qpn, startingPsn: this.psn, privateData, responderResources, initiatorDepth, rnrRetryCount };
    this.#request?.accept(own).then(
      (established) => {
        if (this.#state !== "waiting") return void established.disconnect();
        this.#established = established;
        this.#state = "up";
        this.#tell({ event: kEvent.established });
        established.onDisconnected((end) => this.#disconnected(end));
      },
      (error) => this.#failed(error),
    );
  }

  /** @param reason One of IBTA's; 0: the application's own. */
  reject(privateData: Buffer, reason: number): void {
    this.#require("asked");
    if (privateData.length > (this.isDatagram ? kPrivateData.SIDR_REP : kPrivateData.REJ)) throw new Refusal(EINVAL);
    this.#state = "over";
    this.#answerService?.(undefined);
    this.#request?.reject(privateData, reason === 0 ? undefined : reason);
  }

  disconnect(): void {
    if (this.#established === undefined) throw new Refusal(EINVAL);
    if (this.#state !== "up" && this.#state !== "waiting") return;
    this.#state = "closing";
    void this.#established.disconnect();
  }

  /** Attributes that the program's queue pair needs to be modified to `state`. */
  attributes(state: number): Buffer {
    const peer = this.#peer;
    if (this.#own === undefined) throw new Refusal(EINVAL);
    if (this.isDatagram || peer === undefined) {
      const first = { state, partition: true, port: true } as const;
      return attributesAnswer(this.isDatagram ? { ...first, qkey: kUdpQkey } : { ...first, access: 0 });
    }
    const { responderResources, initiatorDepth, retryCount, rnrRetryCount } = peer;
    switch (state) {
      case kState.init: {
        const reads = responderResources > 0 ? kAccess.remoteRead | kAccess.remoteAtomic : 0;
        return attributesAnswer({ state, partition: true, port: true, access: kAccess.remoteWrite | reads });
      }
      case kState.rtr:
        return attributesAnswer({
          ...{ state, way: this.#way(peer.flowLabel), pathMtu: codeOf(peer.pathMtu), rnrTimer: 0, responderResources },
          ...{ remoteQpn: peer.remoteQpn, receivePsn: this.psn },
        });
      case kState.rts:
        return attributesAnswer({
          ...{ state, sendPsn: peer.remoteStartingPsn, retryCount, rnrRetryCount, initiatorDepth },
          timeout: this.#ackTimeout ?? peer.ackTimeout,
        });
      default:
        throw new Refusal(EINVAL);
    }
  }

  setOption(level: number, name: number, value: Buffer): void {
    const [byte = 0] = value;
    const isNumber = value.length === 4;
    if (level !== kOption.levelId) throw new Refusal(ENOPROTOOPT);
    if (name === kOption.tos && value.length === 1) this.#trafficClass = byte;
    else if (name === kOption.reuseAddress && isNumber) this.sharesPort = byte !== 0;
    else if (name === kOption.ackTimeout && value.length === 1 && byte < 32) this.#ackTimeout = byte;
    else if (name === kOption.addressFamilyOnly && isNumber) this.#onlyItsFamily = byte !== 0;
    else throw new Refusal(EINVAL);
  }

  notify(event: number): void {
    if (event !== kCommunicationEstablished) throw new Refusal(EINVAL);
    this.#request?.dataReceived();
  }

  /** Tells the peer, and ends everything. Idempotent. */
  destroy(): void {
    this.#state = "over";
    this.uid = 0n;
    for (const listener of this.#listeners.values()) listener.close();
    this.#listeners.clear();
    this.#cancelTimewait();
    this.#gone.abort();
    this.#answerService?.(undefined);
    this.#request?.reject();
    void this.#established?.disconnect();
    if (this.#holdsPort) this.host.ports[this.space]?.give(this.#source?.port ?? 0, this);
    this.#holdsPort = false;
  }

  /** Sets up the id of a connection that a peer has asked for. */
  asked(
    listener: ProgramId,
    own: NicAddress,
    request: IncomingRequest | ServiceRequest,
    answer?: (given?: ServiceAnswer) => void,
  ): void {
    this.#state = "asked";
    this.#own = own;
    this.#source = { address: own.address, port: listener.#source?.port ?? 0 };
    this.#destination = { address: request.remoteAddress, port: request.remotePort };
    this.#trafficClass = listener.#trafficClass;
    this.#ackTimeout = listener.#ackTimeout;
    this.#answerService = answer;
    if (!("accept" in request)) return;
    this.#request = request;
    this.#peer = request;
    // Linux' librdmacm is told what to send with before it accepts: both ways begin with the same number.
    this.psn = request.remoteStartingPsn;
  }

  #listenAt(own: NicAddress): void {
    const { address = "::", port = 0 } = this.#source ?? {};
    // A listener for IPv6 serves IPv4, too, unless the program says otherwise.
    const isItsFamily = !this.onlyItsFamily || isIpv6(own.address) === isIpv6(address);
    if (this.#own === undefined ? !isItsFamily : own !== this.#own) return;
    const listener = this.isDatagram
      ? own.manager.services.listen(port, (request) => this.#serviceAsked(own, request))
      : own.listeners.listen(port, (request) => this.#asked(own, request));
    this.#listeners.set(own, listener);
  }

  #asked(own: NicAddress, request: IncomingRequest): void {
    if (request.pathMtu > this.host.pathMtu) {
      request.reject(undefined, kReject.invalidPathMtu);
      return;
    }
    try {
      const id = this.#newRequest({ event: kEvent.connectRequest, ...told(request) });
      id.asked(this, own, request);
    } catch {
      request.reject();
    }
  }

  #serviceAsked(own: NicAddress, request: ServiceRequest): Promise<ServiceAnswer | undefined> {
    return new Promise((resolve) => {
      try {
        const { privateData } = request;
        const id = this.#newRequest({ event: kEvent.connectRequest, privateData });
        id.asked(this, own, request, resolve);
      } catch {
        resolve(undefined);
      }
    });
  }

  #newRequest(event: ConnectionEvent): ProgramId {
    if (this.backlog === 0) throw new Refusal(EINVAL);
    const id = this.owner.connectRequest(this, event);
    this.backlog--;
    return id;
  }

  #disconnected(end: Disconnection): void {
    if (this.#state === "over") return;
    this.#state = "over";
    const { reason } = end;
    if (reason === "rejected")
      return void this.#tell({ event: kEvent.rejected, status: end.code, privateData: end.privateData });
    this.#tell({ event: kEvent.disconnected, status: end.reason === "timeout" ? -ETIMEDOUT : 0 });
    this.#cancelTimewait = this.host.clock.after(kTimewaitMs, () => this.#tell({ event: kEvent.timewaitExit }));
  }

  #failed(error: unknown): void {
    if (this.#state !== "waiting") return;
    this.#state = "over";
    if (error instanceof ConnectionRejected) {
      this.#tell({ event: kEvent.rejected, status: error.reason, privateData: error.privateData });
    } else if (error instanceof ServiceRefused) {
      this.#tell({ event: kEvent.unreachable, status: error.status, privateData: error.privateData });
    } else {
      this.#tell({ event: kEvent.unreachable, status: -ETIMEDOUT });
    }
  }

  #tell(event: ConnectionEvent): void {
    if (this.uid !== 0n) this.owner.event(this, event);
  }

  #way(flowLabel: number): Way {
    const { address = "" } = this.#destination ?? {};
    return { address, sourceIndex: this.#own?.index ?? 0, trafficClass: this.#trafficClass, flowLabel };
  }

  #takePort({ address, port }: SocketAddress): void {
    this.#source = { address, port };
    try {
      this.#source.port = this.host.ports[this.space]?.take(port, this) ?? 0;
    } catch (error) {
      this.#source = undefined;
      throw error;
    }
    this.#holdsPort = true;
  }

  #checkQueuePair(qpn: number): void {
    if (!this.owner.mayNameQueuePair(qpn)) throw new Refusal(EINVAL);
  }

  #require(state: State): void {
    if (this.#state !== state) throw new Refusal(EINVAL);
  }
}

const told = (peer: PeerParameters) => ({
  privateData: peer.privateData,
  qpn: peer.remoteQpn,
  responderResources: peer.responderResources,
  initiatorDepth: peer.initiatorDepth,
  retryCount: peer.retryCount,
  rnrRetryCount: peer.rnrRetryCount,
});
const codeOf = (mtu: PathMtu) => kPathMtus.indexOf(mtu) + 1;
