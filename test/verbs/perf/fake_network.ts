/**
 * Two devices and the network between them, in memory: posted work is done at once and in order, on the paths that
 * src/verbs/connection.ts and the tests of perftest and rping use. Statuses and flushing are those of the verbs.
 */

import { WeirError } from "../../../src/base/error.js";
import type { Device } from "../../../src/verbs/device.js";
import type { WorkCompletion } from "../../../src/verbs/queue_pair.js";
import type { QueuePairAttributes, ReceiveRequest, Repeated, SendRequest, Status } from "../../../src/verbs/types.js";
import type { IncomingRequest } from "../../../src/wire/cm/connection_manager.js";
import type { Disconnection, Established, LocalParameters, PeerParameters } from "../../../src/wire/cm/parameters.js";
import { ConnectionRejected, kReject } from "../../../src/wire/cm/reject.js";

type Completion = Pick<WorkCompletion, "id" | "status" | "opcode" | "byteLength" | "times">;
/** Requests as the fakes see them: their regions are FakeRegions. */
type Send = Extract<SendRequest, { opcode: "send" | "rdma_write" | "rdma_read" }>;

export interface Sent {
  from: string;
  opcode: SendRequest["opcode"];
  /** Bytes that were moved, whatever the direction. */
  bytes: Buffer;
}

export class FakeNetwork {
  readonly devices: FakeDevice[] = [];
  /** Everything that was moved, in order. */
  readonly sent: Sent[] = [];
  /** Requests and refusals have no private data, as perftest's. */
  isSilent = false;
  /** Changes bytes that arrive in the receiver's memory. */
  alter: (bytes: Buffer) => void = () => {};

  device(address: string): FakeDevice {
    const device = new FakeDevice(this, address);
    this.devices.push(device);
    return device;
  }

  at(address: string): FakeDevice | undefined {
    return this.devices.find((device) => device.address === address);
  }
}

export class FakeDevice {
  readonly interface = "fake0";
  readonly largestPathMtu = 1024;
  readonly queues: FakeQueue[] = [];
  readonly regions = new Map<number, FakeRegion>();
  readonly pairs = new Map<number, FakePair>();
  readonly listeners = new Map<number, (request: IncomingRequest) => void>();
  readonly ends: (() => void)[] = [];
  closed = false;
  moved = 0;

  constructor(
    readonly network: FakeNetwork,
    readonly address: string,
  ) {}

  /** The fake for code that wants a real one. */
  get verbs(): Device {
    return this as unknown as Device;
  }

  allocateProtectionDomain() {
    return {
      registerMemory: (length: number) => new FakeRegion(this, length),
      createQueuePair: (options: PairOptions) => new FakePair(this, options),
    };
  }
  createCompletionQueue(): FakeQueue {
    const queue = new FakeQueue();
    this.queues.push(queue);
    return queue;
  }
  counters(): Map<string, number> {
    return new Map([["tx_bytes", this.moved]]);
  }
  sourceFor(): string {
    return this.address;
  }
  /** Does nothing: packets are there at once. */
  progress(): boolean {
    return false;
  }
  rest(): void {}
  requireOpen(): void {
    if (this.closed) throw new WeirError("the device is closed");
  }
  close(): void {
    for (const end of this.ends.splice(0)) end();
    this.closed = true;
  }

  managerFor() {
    return { connect: (options: LocalParameters & { destination: string; port: number }) => this.#connect(options) };
  }
  get managers() {
    const listen = (port: number, onRequest: (request: IncomingRequest) => void) => {
      this.listeners.set(port, onRequest);
      return { port, close: () => void this.listeners.delete(port) };
    };
    return [{ listen, address: this.address }];
  }

  #connect({ destination, port, ...own }: LocalParameters & { destination: string; port: number }) {
    const peer = this.network.at(destination);
    const onRequest = peer?.listeners.get(port);
    const refuse = (reason: number, privateData = Buffer.alloc(0)) =>
      new ConnectionRejected(`${destination} port ${port}`, reason, privateData);
    if (peer === undefined || onRequest === undefined) return Promise.reject(refuse(kReject.invalidServiceId));
    return new Promise<Established>((resolve, reject) => {
      const ended: ((end: Disconnection) => void)[] = [];
      let over = false;
      const end = () => {
        if (over) return;
        over = true;
        for (const listener of ended) listener({ reason: "peer" });
      };
      this.ends.push(end);
      peer.ends.push(end);
      const view = (of: FakeDevice, parameters: LocalParameters): Established => ({
        ...parametersOf(of, parameters),
        ready: () => {},
        disconnect: async () => end(),
        onDisconnected: (listener) => (over ? listener({ reason: "peer" }) : void ended.push(listener)),
      });
      onRequest({
        ...parametersOf(this, own),
        port,
        remotePort: 0,
        accept: async (theirs) => {
          resolve(view(peer, theirs));
          return view(this, own);
        },
        reject: (privateData = Buffer.alloc(0)) => reject(refuse(kReject.consumer, Buffer.from(privateData))),
        dataReceived: () => {},
      });
    });
  }
}

function parametersOf(device: FakeDevice, { qpn, startingPsn, privateData }: LocalParameters): PeerParameters {
  const said = (device.network.isSilent ? undefined : privateData) ?? Buffer.alloc(0);
  return {
    remoteAddress: device.address,
    remoteMac: 1,
    remoteQpn: qpn,
    remoteStartingPsn: startingPsn,
    // It is padded, as on the wire.
    privateData: Buffer.concat([said, Buffer.alloc(8)]),
    responderResources: 16,
    initiatorDepth: 16,
    pathMtu: 1024,
    retryCount: 7,
    rnrRetryCount: 7,
    ackTimeout: 14,
    trafficClass: 0,
    flowLabel: 0,
  };
}

class FakeQueue {
  #callback: ((completion: Completion) => void) | undefined;
  #waiting: Completion[] = [];

  onCompletion(callback: (completion: Completion) => void): void {
    this.#callback = callback;
  }
  poll(): Completion[] {
    for (const completion of this.#waiting.splice(0)) this.#callback?.(completion);
    return [];
  }
  /** Adds a completion as from another thread: it is seen when polled, or a little later. */
  push(completion: Completion): void {
    this.#waiting.push(completion);
    setImmediate(() => this.poll());
  }
}

class FakeRegion {
  readonly buffer: ArrayBuffer;
  readonly key: number;
  readonly start: number;

  constructor(
    device: FakeDevice,
    readonly byteLength: number,
  ) {
    this.buffer = new ArrayBuffer(byteLength);
    this.key = device.regions.size + 1;
    this.start = 0x7f00_0000_0000 + this.key * 2 ** 32;
    device.regions.set(this.key, this);
  }
  remote(offset = 0) {
    return { address: BigInt(this.start + offset), key: this.key };
  }
}

interface PairOptions {
  sendCompletions: FakeQueue;
  receiveCompletions: FakeQueue;
  sendDepth: number;
  receiveDepth: number;
}

class FakePair {
  readonly qpn: number;
  state = "reset";
  #remote: { address: string; qpn: number } | undefined;
  #sends: Send[] = [];
  #unsignaled = 0;
  readonly receives: ReceiveRequest[] = [];

  constructor(
    private readonly device: FakeDevice,
    private readonly options: PairOptions,
  ) {
    this.qpn = 0x1000 + device.pairs.size;
    device.pairs.set(this.qpn, this);
  }

  modify(state: string, { route, remoteQpn }: Partial<QueuePairAttributes> = {}): void {
    this.device.requireOpen();
    this.state = state;
    if (route !== undefined && remoteQpn !== undefined) this.#remote = { address: route.address, qpn: remoteQpn };
    if (state === "error") this.#flush();
  }

  postSend(...requests: SendRequest[]): void {
    this.device.requireOpen();
    const all = requests.flatMap(repeated);
    const held = this.#sends.length + this.#unsignaled + all.length;
    if (held > this.options.sendDepth) throw new WeirError("the send queue is full");
    this.#sends.push(...(all as Send[]));
    if (this.state === "error") this.#flush();
    else this.progress();
  }
  postReceive(...requests: ReceiveRequest[]): void {
    this.device.requireOpen();
    if (this.state === "reset") throw new WeirError("a queue pair in state reset cannot receive");
    const all = requests.flatMap(repeated);
    if (this.receives.length + all.length > this.options.receiveDepth) {
      throw new WeirError("the receive queue is full");
    }
    this.receives.push(...all);
    if (this.state === "error") this.#flush();
    else this.#peer?.progress();
  }

  /** Does all work that can be done; a SEND waits for a receive. */
  progress(): void {
    const peer = this.#peer;
    while (peer !== undefined && peer.state !== "error") {
      const [request] = this.#sends;
      if (request === undefined) return;
      const receive = request.opcode === "send" ? peer.receives.shift() : undefined;
      if (request.opcode === "send" && receive === undefined) return;
      this.#sends.shift();
      this.#move(request, peer, receive);
    }
  }

  #move(request: Send, peer: FakePair, receive: ReceiveRequest | undefined): void {
    const local = bytesOf(request.local);
    const there = "remote" in request ? peer.remoteBytes(request.remote, local.length) : bytesOf(receive?.local);
    let status: Status = "success";
    if (there === undefined) status = "rem_access_err";
    else if (there.length < local.length) status = "rem_inv_req_err";
    else if (request.opcode === "rdma_read") there.copy(local);
    else local.copy(there);
    if (status === "success") {
      this.device.network.alter((request.opcode === "rdma_read" ? local : there) as Buffer);
      this.device.network.sent.push({ from: this.device.address, opcode: request.opcode, bytes: Buffer.from(local) });
      this.device.moved += local.length;
    }
    if (receive !== undefined)
      peer.complete("recv", receive.id, status === "success" ? status : "loc_len_err", local.length);
    this.#unsignaled++;
    if (request.signaled === false && status === "success") return;
    this.#unsignaled = 0;
    this.options.sendCompletions.push({
      id: request.id ?? 0,
      status,
      opcode: request.opcode,
      byteLength: local.length,
      times: 1,
    });
  }

  complete(opcode: "recv", id = 0, status: Status, byteLength: number): void {
    this.options.receiveCompletions.push({ id, status, opcode, byteLength, times: 1 });
  }

  remoteBytes({ address, key }: { address: bigint; key: number }, length: number): Buffer | undefined {
    const region = this.device.regions.get(key);
    const offset = Number(address) - (region?.start ?? 0);
    if (region === undefined || offset < 0 || offset + length > region.byteLength) return undefined;
    return Buffer.from(region.buffer, offset, length);
  }

  get #peer(): FakePair | undefined {
    if (this.#remote === undefined) return undefined;
    return this.device.network.at(this.#remote.address)?.pairs.get(this.#remote.qpn);
  }

  #flush(): void {
    for (const { id = 0, opcode } of this.#sends.splice(0)) {
      this.options.sendCompletions.push({ id, status: "wr_flush_err", opcode, byteLength: 0, times: 1 });
    }
    for (const { id } of this.receives.splice(0)) this.complete("recv", id, "wr_flush_err", 0);
  }
}

function repeated<T extends Repeated>(request: T): T[] {
  return new Array<T>(request.times ?? 1).fill(request);
}

function bytesOf(slice: SendRequest["local"]): Buffer {
  if (slice === undefined) return Buffer.alloc(0);
  const { region, offset = 0, length = region.byteLength - offset } = slice;
  return Buffer.from(region.buffer, offset, length);
}
