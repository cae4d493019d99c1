/** Connection management by a daemon: that of its NIC, which programs of librdmacm use as well. */
import { constants } from "node:os";
import { WeirError } from "../base/error.js";
import { type ChannelEvent, CommandRefused, ConnectionClient } from "../daemon/programs/connection_client.js";
import { kEvent } from "../daemon/programs/ucma.js";
import type { IncomingRequest } from "../wire/cm/connection_manager.js";
import { kPathMtus, kPrivateData, type PathMtu } from "../wire/cm/messages.js";
import {
  type ConnectOptions,
  checkPort,
  checkPrivateData,
  type Disconnection,
  type Established,
  type LocalParameters,
  type PeerParameters,
} from "../wire/cm/parameters.js";
import { ConnectionRejected } from "../wire/cm/reject.js";
import type { Connector, OwnPsn } from "./connector.js";

const { EADDRINUSE } = constants.errno;
const kGone = "the daemon of the NIC is gone";

/** A listener for the events of one id. */
type Hears = (event: ChannelEvent) => void;

export class DaemonConnections implements Connector {
  readonly #ids = new Map<bigint, Hears>();
  /** Functions that end connections, called when the daemon is gone. */
  readonly #connections = new Set<() => void>();
  #lastUid = 0n;
  #client: ConnectionClient | undefined;

  /** @param address The address at which the daemon has connections. */
  static async open(socket: string, address: string): Promise<DaemonConnections> {
    const connections = new DaemonConnections(address);
    connections.#client = await ConnectionClient.open(socket, {
      event: (event) => connections.#ids.get(event.uid)?.(event),
      ended: () => connections.#ended(),
    });
    return connections;
  }

  private constructor(readonly address: string) {}

  /** Ends connections; peers are told. */
  close(): void {
    this.#client?.close();
  }

  async connect(options: ConnectOptions): Promise<Established & OwnPsn> {
    const { destination, port } = options;
    const privateData = checkPrivateData(options.privateData, kPrivateData.REQ);
    const name = `${destination} port ${checkPort(port)}`;
    const { client } = this;
    const { uid, next, off } = this.#hear();
    const id = await refusedAs(name, client.create(uid));
    try {
      await refusedAs(name, client.resolve(id, destination, port));
      await expected(name, next(), kEvent.addressResolved);
      await refusedAs(name, client.route(id));
      await expected(name, next(), kEvent.routeResolved);
      const { qpn, responderResources = 0, initiatorDepth = 0, retryCount = 7, rnrRetryCount = 7 } = options;
      const own = { qpn, qkey: 0, privateData, responderResources, initiatorDepth, retryCount, rnrRetryCount };
      await refusedAs(name, client.connect(id, own));
      const { privateData: told } = await expected(name, next(), kEvent.connectResponse);
      const peer = await this.#peerOf(id, told);
      return { ...peer, ...this.#established(id, uid, name, () => void client.accept(id, uid, own).catch(() => {})) };
    } catch (error) {
      off();
      void client.destroy(id).catch(() => {});
      throw error;
    }
  }

  listen(port: number, onRequest: (request: IncomingRequest & OwnPsn) => void) {
    checkPort(port);
    const { client } = this;
    let closed = false;
    const uid = ++this.#lastUid;
    this.#ids.set(uid, (event) => {
      if (event.event === kEvent.connectRequest)
        void this.#request(event, port)
          .then(onRequest)
          .catch(() => {});
    });
    const created = client.create(uid);
    const any = this.address.includes(":") ? "::" : "0.0.0.0";
    const ready = (async () => {
      try {
        const id = await created;
        await client.bind(id, any, port);
        await client.listen(id);
      } catch (error) {
        if (closed) return;
        if (!(error instanceof CommandRefused && error.errno === EADDRINUSE)) throw refusal(`port ${port}`, error);
        throw new WeirError(`something listens on port ${port} of the NIC already`, { hint: "choose another port" });
      }
    })();
    const close = () => {
      closed = true;
      this.#ids.delete(uid);
      void created.then((id) => client.destroy(id)).catch(() => {});
    };
    return { close, ready };
  }

  get client(): ConnectionClient {
    if (this.#client === undefined) throw new WeirError(kGone);
    return this.#client;
  }

  /** Takes a peer's request for a connection. */
  async #request(event: ChannelEvent, port: number): Promise<IncomingRequest & OwnPsn> {
    const { client } = this;
    const { id } = event;
    const { port: remotePort } = await client.peer(id);
    const peer = await this.#peerOf(id, event.privateData);
    const name = `${peer.remoteAddress} port ${remotePort}`;
    return {
      ...peer,
      port,
      remotePort,
      accept: async (own: LocalParameters) => {
        const privateData = checkPrivateData(own.privateData, kPrivateData.REP);
        const { uid, next, off } = this.#hear();
        const { qpn, responderResources = 0, initiatorDepth = 0, rnrRetryCount = 7 } = own;
        const parameters = {
          qpn,
          qkey: 0,
          privateData,
          responderResources,
          initiatorDepth,
          retryCount: 0,
          rnrRetryCount,
        };
        try {
          await refusedAs(name, client.accept(id, uid, parameters));
          await expected(name, next(), kEvent.established);
        } catch (error) {
          off();
          void client.destroy(id).catch(() => {});
          throw error;
        }
        return { ...peer, ...this.#established(id, uid, name, () => {}) };
      },
      reject: (privateData?: Uint8Array, reason = 0) => {
        const told = checkPrivateData(privateData, kPrivateData.REJ);
        void client.reject(id, told, reason).catch(() => {});
        void client.destroy(id).catch(() => {});
      },
      dataReceived: () => {},
    };
  }

  async #peerOf(id: number, privateData: Buffer): Promise<PeerParameters & OwnPsn> {
    const { client } = this;
    const [{ address }, receiving, sending] = await Promise.all([
      client.peer(id),
      client.attributes(id, 2),
      client.attributes(id, 3),
    ]);
    return {
      remoteAddress: address,
      remoteMac: 0, // The daemon alone knows it.
      remoteQpn: receiving.remoteQpn,
      remoteStartingPsn: sending.sendPsn,
      startingPsn: receiving.receivePsn,
      privateData,
      responderResources: receiving.responderResources,
      initiatorDepth: sending.initiatorDepth,
      pathMtu: kPathMtus[receiving.pathMtu - 1] as PathMtu,
      retryCount: sending.retryCount,
      rnrRetryCount: sending.rnrRetryCount,
      ackTimeout: sending.timeout,
      trafficClass: 0,
      flowLabel: 0,
    };
  }

  #established(id: number, uid: bigint, name: string, ready: () => void) {
    const { client } = this;
    const listeners: ((end: Disconnection) => void)[] = [];
    let over: Disconnection | undefined;
    let disconnecting = false;
    const end = (how: Disconnection) => {
      if (over !== undefined) return;
      over = how;
      this.#ids.delete(uid);
      this.#connections.delete(closed);
      void client.destroy(id).catch(() => {});
      for (const listener of listeners) listener(how);
    };
    const closed = () => end({ reason: "closed" });
    this.#connections.add(closed);
    this.#ids.set(uid, ({ event, status, privateData }) => {
      if (event === kEvent.rejected) end({ reason: "rejected", code: status, privateData });
      if (event !== kEvent.disconnected) return;
      end({ reason: status !== 0 ? "timeout" : disconnecting ? "own" : "peer" });
    });
    return {
      ready: () => {
        if (over !== undefined)
          throw new WeirError(`the connection with ${name} has ended meanwhile`, { hint: "connect again" });
        ready();
      },
      onDisconnected: (listener: (end: Disconnection) => void) =>
        void (over !== undefined ? listener(over) : listeners.push(listener)),
      disconnect: async () => {
        if (over !== undefined) return;
        disconnecting = true;
        const ended = new Promise<void>((resolve) => void listeners.push(() => resolve()));
        await client.disconnect(id).catch(closed);
        await ended;
      },
    };
  }

  /** Returns the events of one more id, one by one. */
  #hear() {
    const uid = ++this.#lastUid;
    const events: ChannelEvent[] = [];
    const waiting: { resolve(event: ChannelEvent): void; reject(error: Error): void }[] = [];
    const gone = () => {
      for (const { reject } of waiting.splice(0)) reject(new WeirError(kGone, { hint: "start weir nic again" }));
    };
    this.#connections.add(gone);
    this.#ids.set(uid, (event) => {
      const first = waiting.shift();
      if (first === undefined) events.push(event);
      else first.resolve(event);
    });
    const off = () => {
      this.#ids.delete(uid);
      this.#connections.delete(gone);
    };
    const next = () => {
      const event = events.shift();
      if (event !== undefined) return Promise.resolve(event);
      return new Promise<ChannelEvent>((resolve, reject) => void waiting.push({ resolve, reject }));
    };
    return { uid, next, off };
  }

  #ended(): void {
    for (const end of [...this.#connections]) end();
  }
}

async function expected(name: string, event: Promise<ChannelEvent>, kind: number): Promise<ChannelEvent> {
  const told = await event;
  if (told.event === kind) return told;
  if (told.event === kEvent.rejected) throw new ConnectionRejected(name, told.status, told.privateData);
  if (told.event === kEvent.addressError) {
    throw new WeirError(`${name}: nobody answers at this address`, { hint: "is the peer up, and on the NIC's link?" });
  }
  throw new WeirError(`${name} does not answer connection requests`, {
    hint: "is an RDMA stack running there, and UDP port 4791 open?",
  });
}

function refusedAs<T>(name: string, answer: Promise<T>): Promise<T> {
  return answer.catch((error) => {
    throw refusal(name, error);
  });
}

function refusal(name: string, error: unknown): WeirError {
  const number = error instanceof CommandRefused ? error.errno : 0;
  if (number === constants.errno.ENODEV)
    return new WeirError(kGone, { hint: "start weir nic again, then open the device anew" });
  const code = Object.entries(constants.errno).find(([, value]) => value === number)?.[0] ?? String(error);
  return new WeirError(`${name}: the NIC's daemon refuses: ${code}`, {
    cause: error,
    hint: "the peer may have given up; RDMA CM of a NIC uses the first address of its file",
  });
}
