/** Services of unreliable datagrams: asks where one is, and answers. IBTA volume 1, 12.11; service IDs of RDMA_PS_UDP. */
import { WeirError } from "../../base/error.js";
import { noResponder } from "./connection.js";
import type { Clock } from "./link.js";
import {
  buildIpHeader,
  buildMessage,
  kPrivateData,
  type Message,
  portOfService,
  readIpHeader,
  serviceId,
} from "./messages.js";
import { kDefaultPartition, type Local } from "./negotiation.js";
import { type ConnectOptions, checkPort, checkPrivateData } from "./parameters.js";
import type { CmCounters, Peer } from "./port.js";
import { Retransmission, timeOfCode } from "./retransmission.js";

/** Services of the manager for this class. */
export interface ServiceHost extends Local {
  readonly clock: Clock;
  readonly counters: CmCounters;
  send(to: Peer, mad: Buffer): void;
  find(destination: string): Promise<Peer>;
  newId(): number;
  newSourcePort(): number;
}

/** Destination of a service's datagrams. */
export interface DatagramService {
  remoteAddress: string;
  /** MAC address of the peer, or of the router towards it, as a 48-bit number. */
  remoteMac: number;
  remoteQpn: number;
  qkey: number;
  /** The whole field: what the peer gave, then zeros. */
  privateData: Buffer;
}

/** A request of a peer for a service. */
export interface ServiceRequest {
  remoteAddress: string;
  remoteMac: number;
  remotePort: number;
  privateData: Buffer;
}

/** The queue pair that serves, and at most 136 bytes for the peer that asks. */
export interface ServiceAnswer {
  qpn: number;
  qkey: number;
  privateData?: Uint8Array;
}

/** Names of the statuses of 12.11.2.1. */
const kStatus = [
  "valid",
  "no such service",
  "refused by the service",
  "no queue pair",
  "redirected",
  "unknown version",
];
const kValid = 0;
const kNoService = 1;
const kRefused = 2;

/** Most requests that are thought about, or whose answer may be asked for again. */
const kMostAsked = 1024;

/** Thrown when the other side has no such service, or refuses. */
export class ServiceRefused extends WeirError {
  constructor(
    name: string,
    /** One of the statuses of 12.11.2.1. */
    readonly status: number,
    readonly privateData: Buffer,
  ) {
    super(`${name}: ${kStatus[status] ?? `status ${status}`}`, { hint: "start the server first, and check the port" });
    this.name = "ServiceRefused";
  }
}

type Answered = ServiceAnswer | undefined;
/** Answers a request; undefined refuses it. A promise is asked for once, however often the request comes meanwhile. */
export type Service = (request: ServiceRequest) => Answered | Promise<Answered>;

interface Query {
  peer: Peer;
  answered(reply: Message<"SIDR_REP">): void;
  failed(error: WeirError): void;
}

export class ServiceResolver {
  readonly #services = new Map<number, Service>();
  readonly #queries = new Map<number, Query>();
  /** Answers, once there is one, by who asks and the number of the request. */
  readonly #asked = new Map<string, { reply?: Buffer }>();

  constructor(private readonly host: ServiceHost) {}

  /**
   * Asks for the queue pair behind a port, with at most 180 bytes of private data. Fails with ServiceRefused, or with another
   * WeirError. @param options The same as those of connections.
   */
  async resolve(
    destination: string,
    port: number,
    privateData?: Uint8Array,
    options: Pick<ConnectOptions, "sourcePort" | "signal"> = {},
  ): Promise<DatagramService> {
    const host = this.host;
    const service = serviceId("datagram", checkPort(port));
    const data = checkPrivateData(privateData, kPrivateData.SIDR_REQ);
    const peer = await host.find(destination);
    options.signal?.throwIfAborted();
    const requestId = host.newId();
    const sourcePort = options.sourcePort ?? host.newSourcePort();
    const mad = buildMessage("SIDR_REQ", BigInt(requestId), {
      requestId,
      partition: kDefaultPartition,
      serviceId: service,
      privateData: buildIpHeader({ sourcePort, source: host.address, destination: peer.address }, data),
    });
    const name = `${peer.address} port ${port}`;
    const timer = new Retransmission(host.clock);
    return new Promise((resolve, reject) => {
      const failed = (error: WeirError) => {
        timer.stop();
        this.#queries.delete(requestId);
        reject(error);
      };
      const answered = ({ fields }: Message<"SIDR_REP">) => {
        const { status, qpn, qkey } = fields;
        if (status !== kValid) return failed(new ServiceRefused(name, status, fields.privateData));
        timer.stop();
        this.#queries.delete(requestId);
        const { address: remoteAddress, mac: remoteMac } = peer;
        resolve({ remoteAddress, remoteMac, remoteQpn: qpn, qkey, privateData: fields.privateData });
      };
      this.#queries.set(requestId, { peer, answered, failed });
      const withdraw = () => failed(new WeirError(`${name} was not asked any more`));
      options.signal?.addEventListener("abort", withdraw, { once: true });
      const send = (isAgain: boolean) => {
        if (isAgain) host.counters.retransmitted++;
        host.send(peer, mad);
      };
      timer.start(timeOfCode(host.responseTimeout), host.maxRetries, send, () =>
        failed(
          new WeirError(`${name} does not answer`, {
            hint: "check that RDMA is up there and that no firewall drops UDP port 4791",
          }),
        ),
      );
    });
  }

  /** Lets `answer` tell peers that ask for the port which queue pair it is. @throws WeirError if the port is taken. */
  listen(port: number, answer: Service): { close(): void } {
    if (this.#services.has(checkPort(port))) {
      throw new WeirError(`something serves datagrams on port ${port} already`, { hint: "choose another port" });
    }
    this.#services.set(port, answer);
    return {
      close: () => {
        if (this.#services.get(port) === answer) this.#services.delete(port);
      },
    };
  }

  receive(message: Message<"SIDR_REQ" | "SIDR_REP">, from: Peer): void {
    if (message.kind === "SIDR_REQ") {
      this.#receiveRequest(message, from);
      return;
    }
    const query = this.#queries.get(message.fields.requestId);
    if (query?.peer.address === from.address) query.answered(message);
    else this.host.counters.unexpected++;
  }

  /** Called when the host says that nothing there takes RoCEv2 packets. */
  unreachable(address: string): void {
    for (const { peer, failed } of this.#queries.values()) if (peer.address === address) failed(noResponder(address));
  }

  close(): void {
    this.#services.clear();
    for (const { peer, failed } of this.#queries.values()) {
      failed(new WeirError(`${peer.address} was not asked any more: the device was closed`));
    }
  }

  #receiveRequest({ transaction, fields }: Message<"SIDR_REQ">, from: Peer): void {
    const { host } = this;
    const name = `${from.address} ${fields.requestId}`;
    const before = this.#asked.get(name);
    if (before !== undefined) {
      host.counters.duplicates++;
      if (before.reply !== undefined) host.send(from, before.reply);
      return;
    }
    const port = portOfService("datagram", fields.serviceId);
    const service = port === undefined ? undefined : this.#services.get(port);
    const ip = readIpHeader(fields.privateData);
    const isOurs = ip?.source === from.address && ip.destination === host.address;
    const reply = (answer: Answered) => {
      const { qpn = 0, qkey = 0, privateData } = answer ?? {};
      const mad = buildMessage("SIDR_REP", transaction, {
        requestId: fields.requestId,
        status: answer !== undefined ? kValid : service === undefined ? kNoService : kRefused,
        qpn,
        serviceId: fields.serviceId,
        qkey,
        privateData: checkPrivateData(privateData, kPrivateData.SIDR_REP),
      });
      host.send(from, mad);
      return mad;
    };
    if (service === undefined || !isOurs || this.#asked.size >= kMostAsked) {
      if (service !== undefined && isOurs) host.counters.refused++;
      reply(undefined);
      return;
    }
    const { address: remoteAddress, mac: remoteMac } = from;
    const answer = service({ remoteAddress, remoteMac, remotePort: ip.sourcePort, privateData: ip.privateData });
    // A service that answers at once can be asked again: nothing is kept about the request.
    if (!(answer instanceof Promise)) {
      reply(answer);
      return;
    }
    const asked: { reply?: Buffer } = {};
    this.#asked.set(name, asked);
    void answer
      .catch(() => undefined)
      .then((given) => {
        asked.reply = reply(given);
        host.clock.after(2 * timeOfCode(host.responseTimeout), () => this.#asked.delete(name));
      });
  }
}
