/**
 * The other end of src/daemon/programs/connections.ts: a channel of events and its commands, for programs that are not librdmacm's. Commands
 * are answered in their order.
 */
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { constants } from "node:os";
import { addressBytes } from "../../wire/address.js";
import { type ConnectionParameters, kCommand, kPortSpace } from "./ucma.js";

const kHello = 0x6d63_7277;
const kRole = { channel: 0, commands: 1 };
const { EAGAIN, ENODEV } = constants.errno;
/** Time for which a NIC asks for an address. */
const kResolveMs = 3500;

export class CommandRefused extends Error {
  constructor(readonly errno: number) {
    super(`errno ${errno}`);
  }
}

/** Fields of rdma_ucm_event_resp. */
export interface ChannelEvent {
  uid: bigint;
  /** Number of the id; for a request that of the new connection. */
  id: number;
  event: number;
  status: number;
  privateData: Buffer;
  responderResources: number;
  initiatorDepth: number;
  retryCount: number;
  rnrRetryCount: number;
}

/** Fields of initQpAttr's answer that connections need. */
export interface Attributes {
  pathMtu: number;
  receivePsn: number;
  sendPsn: number;
  remoteQpn: number;
  initiatorDepth: number;
  responderResources: number;
  timeout: number;
  retryCount: number;
  rnrRetryCount: number;
}

interface Waiting {
  resolve(bytes: Buffer): void;
  reject(error: Error): void;
}

export class ConnectionClient {
  readonly #waiting: Waiting[] = [];
  #answers = Buffer.alloc(0);
  #over = false;

  private constructor(
    private readonly key: bigint,
    private readonly channel: Socket,
    private readonly commands: Socket,
    private readonly listener: { event(event: ChannelEvent): void; ended(): void },
  ) {
    commands.on("data", (bytes) => this.#answered(bytes));
    channel.on("data", (bytes) => this.#signalled(bytes.length));
    for (const socket of [channel, commands]) socket.on("close", () => this.close());
  }

  /** @param path Path of the daemon's socket for programs. */
  static async open(
    path: string,
    listener: { event(event: ChannelEvent): void; ended(): void },
  ): Promise<ConnectionClient> {
    const key = randomBytes(8).readBigUInt64LE();
    const channel = await opened(path, kRole.channel, key);
    try {
      return new ConnectionClient(key, channel, await opened(path, kRole.commands, 0n), listener);
    } catch (error) {
      channel.destroy();
      throw error;
    }
  }

  /** Ends all ids of the channel. Idempotent. */
  close(): void {
    if (this.#over) return;
    this.#over = true;
    this.channel.destroy();
    this.commands.destroy();
    for (const { reject } of this.#waiting.splice(0)) reject(new CommandRefused(ENODEV));
    this.listener.ended();
  }

  async create(uid: bigint): Promise<number> {
    const bytes = command(kCommand.createId, 32);
    bytes.writeBigUInt64LE(uid, 8);
    bytes.writeUInt16LE(kPortSpace.tcp, 24);
    return (await this.#run(bytes)).readUInt32LE(0);
  }
  destroy = (id: number) => this.#run(numbers(kCommand.destroyId, 24, [16, id]));
  bind = (id: number, address: string, port: number) =>
    this.#run(withAddress(numbers(kCommand.bindIp, 48, [44, id]), 16, address, port));
  resolve = (id: number, address: string, port: number) =>
    this.#run(withAddress(numbers(kCommand.resolveIp, 72, [64, id], [68, kResolveMs]), 36, address, port));
  route = (id: number) => this.#run(numbers(kCommand.resolveRoute, 16, [8, id], [12, kResolveMs]));
  listen = (id: number) => this.#run(numbers(kCommand.listen, 16, [8, id], [12, 0]));
  connect = (id: number, parameters: ConnectionParameters) =>
    this.#run(withParameters(numbers(kCommand.connect, 296, [280, id]), 8, parameters));
  accept(id: number, uid: bigint, parameters: ConnectionParameters): Promise<Buffer> {
    const bytes = withParameters(numbers(kCommand.accept, 304, [288, id]), 16, parameters);
    bytes.writeBigUInt64LE(uid, 8);
    return this.#run(bytes);
  }
  reject(id: number, privateData: Uint8Array, reason: number): Promise<Buffer> {
    const bytes = numbers(kCommand.reject, 272, [8, id]);
    bytes.writeUInt8(privateData.length, 12);
    bytes.writeUInt8(reason, 13);
    bytes.set(privateData, 16);
    return this.#run(bytes);
  }
  disconnect = (id: number) => this.#run(numbers(kCommand.disconnect, 12, [8, id]));

  /** Address and port of the id's peer. */
  async peer(id: number): Promise<{ address: string; port: number }> {
    const bytes = await this.#run(numbers(kCommand.queryRoute, 24, [16, id]));
    const isIpv4 = bytes.readUInt16LE(164) === 2;
    const address = isIpv4
      ? bytes.subarray(168, 172).join(".")
      : (bytes.subarray(172, 188).toString("hex").match(/.{4}/g) ?? []).join(":");
    return { address, port: bytes.readUInt16BE(166) };
  }

  /** @param state 2: to receive; 3: to send. */
  async attributes(id: number, state: 2 | 3): Promise<Attributes> {
    const bytes = await this.#run(numbers(kCommand.initQpAttr, 24, [16, id], [20, state]));
    return {
      pathMtu: bytes.readUInt32LE(12),
      receivePsn: bytes.readUInt32LE(24),
      sendPsn: bytes.readUInt32LE(28),
      remoteQpn: bytes.readUInt32LE(32),
      initiatorDepth: bytes.readUInt8(130),
      responderResources: bytes.readUInt8(131),
      timeout: bytes.readUInt8(134),
      retryCount: bytes.readUInt8(135),
      rnrRetryCount: bytes.readUInt8(136),
    };
  }

  #run(bytes: Buffer): Promise<Buffer> {
    if (this.#over) return Promise.reject(new CommandRefused(ENODEV));
    const header = Buffer.alloc(16);
    header.writeUInt32LE(bytes.length, 0);
    header.writeBigUInt64LE(this.key, 8);
    this.commands.write(Buffer.concat([header, bytes]));
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  #answered(more: Buffer): void {
    this.#answers = Buffer.concat([this.#answers, more]);
    while (this.#answers.length >= 16) {
      const [error, length] = [this.#answers.readUInt32LE(0), this.#answers.readUInt32LE(4)];
      if (this.#answers.length < 16 + length) return;
      const bytes = Buffer.from(this.#answers.subarray(16, 16 + length));
      this.#answers = this.#answers.subarray(16 + length);
      const waiting = this.#waiting.shift();
      if (error === 0) waiting?.resolve(bytes);
      else waiting?.reject(new CommandRefused(error));
    }
  }

  /** Takes one byte for each event; events that were taken back have none. */
  #signalled(count: number): void {
    for (let i = 0; i < count; i++) {
      this.#run(numbers(kCommand.getEvent, 16)).then(
        (bytes) => this.listener.event(readEvent(bytes)),
        (error) => {
          if (!(error instanceof CommandRefused && error.errno === EAGAIN)) this.close();
        },
      );
    }
  }
}

function opened(path: string, role: number, key: bigint): Promise<Socket> {
  const hello = Buffer.alloc(16);
  hello.writeUInt32LE(kHello, 0);
  hello.writeUInt32LE(role, 4);
  hello.writeBigUInt64LE(key, 8);
  return new Promise((resolve, reject) => {
    const socket = connect(path, () => socket.write(hello));
    socket.on("error", reject).on("close", () => reject(new CommandRefused(ENODEV)));
    socket.once("data", (answer: Buffer) => {
      const error = answer.length === 4 ? answer.readUInt32LE(0) : ENODEV;
      if (error === 0) return resolve(socket);
      socket.destroy();
      reject(new CommandRefused(error));
    });
  });
}

function readEvent(bytes: Buffer): ChannelEvent {
  const parameters = bytes.subarray(20);
  const at = (offset: number) => parameters.readUInt8(offset);
  return {
    uid: bytes.readBigUInt64LE(0),
    id: bytes.readUInt32LE(8),
    event: bytes.readUInt32LE(12),
    status: bytes.readInt32LE(16),
    privateData: Buffer.from(parameters.subarray(8, 8 + at(264))),
    responderResources: at(266),
    initiatorDepth: at(267),
    retryCount: at(269),
    rnrRetryCount: at(270),
  };
}

function command(kind: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  bytes.writeUInt32LE(kind, 0);
  bytes.writeUInt16LE(length - 8, 4);
  bytes.writeUInt16LE(512, 6);
  return bytes;
}

function numbers(kind: number, length: number, ...values: (readonly [number, number])[]): Buffer {
  const bytes = command(kind, length);
  for (const [offset, value] of values) bytes.writeUInt32LE(value, offset);
  return bytes;
}

function withAddress(bytes: Buffer, at: number, address: string, port: number): Buffer {
  const raw = addressBytes(address);
  bytes.writeUInt16LE(raw.length === 4 ? 2 : 10, at);
  bytes.writeUInt16BE(port, at + 2);
  bytes.set(raw, at + (raw.length === 4 ? 4 : 8));
  return bytes;
}

function withParameters(bytes: Buffer, at: number, parameters: ConnectionParameters): Buffer {
  const { qpn, qkey, privateData, responderResources, initiatorDepth, retryCount, rnrRetryCount } = parameters;
  bytes.writeUInt32LE(qpn, at);
  bytes.writeUInt32LE(qkey, at + 4);
  bytes.set(privateData, at + 8);
  bytes.set([privateData.length, 0, responderResources, initiatorDepth, 0, retryCount, rnrRetryCount], at + 264);
  return bytes;
}
