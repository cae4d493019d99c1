/** A program that speaks as native/verbs/connection_channels.cc does, by hand, and writes commands as librdmacm does. */
import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { addressBytes } from "../../../src/wire/address.js";

const kMagic = 0x6d63_7277;

export interface Answer {
  error: number;
  taken: number;
  bytes: Buffer;
}

export interface Event {
  uid: number;
  id: number;
  event: number;
  status: number;
  parameters: Buffer;
}

/** Reads from a socket as many bytes as are asked for. */
class Reader {
  #bytes = Buffer.alloc(0);
  #wake = () => {};
  ended = false;

  constructor(readonly socket: Socket) {
    socket.on("error", () => {});
    socket.on("data", (bytes: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, bytes]);
      this.#wake();
    });
    socket.on("close", () => {
      this.ended = true;
      this.#wake();
    });
  }

  get waiting(): number {
    return this.#bytes.length;
  }

  async take(count: number): Promise<Buffer> {
    while (this.#bytes.length < count) {
      if (this.ended) throw new Error("the daemon has closed the connection");
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const taken = this.#bytes.subarray(0, count);
    this.#bytes = this.#bytes.subarray(count);
    return taken;
  }
}

async function opened(path: string, role: number, key: bigint): Promise<[Reader, number]> {
  const socket = connect(path);
  onTestFinished(() => void socket.destroy());
  const reader = new Reader(socket);
  const hello = Buffer.alloc(16);
  hello.writeUInt32LE(kMagic, 0);
  hello.writeUInt32LE(role, 4);
  hello.writeBigUInt64LE(key, 8);
  socket.write(hello);
  return [reader, (await reader.take(4)).readUInt32LE(0)];
}

export class UcmaClient {
  private constructor(
    readonly key: bigint,
    readonly channel: Reader,
    readonly commands: Reader,
  ) {}

  static async open(path: string, key: bigint): Promise<UcmaClient> {
    const [channel, refused] = await opened(path, 0, key);
    if (refused !== 0) throw new Error(`channel refused: ${refused}`);
    const [commands] = await opened(path, 1, 0n);
    return new UcmaClient(key, channel, commands);
  }

  /** Closes both sockets, as the end of a program does. */
  kill(): void {
    this.channel.socket.destroy();
    this.commands.socket.destroy();
  }

  /** @param from Whose channel loses events by it. */
  async write(
    command: Buffer,
    extra: Buffer = Buffer.alloc(0),
    key = this.key,
    from: UcmaClient = this,
  ): Promise<Answer> {
    const header = Buffer.alloc(16);
    header.writeUInt32LE(command.length, 0);
    header.writeUInt32LE(extra.length, 4);
    header.writeBigUInt64LE(key, 8);
    this.commands.socket.write(Buffer.concat([header, command, extra]));
    const answer = await this.commands.take(16);
    const bytes = await this.commands.take(answer.readUInt32LE(4));
    const taken = answer.readUInt32LE(8);
    await from.channel.take(taken);
    return { error: answer.readUInt32LE(0), taken, bytes: Buffer.from(bytes) };
  }

  async event(): Promise<Event> {
    await this.channel.take(1);
    const { error, bytes } = await this.write(command(12, 16));
    if (error !== 0) throw new Error(`no event: ${error}`);
    return {
      uid: Number(bytes.readBigUInt64LE(0)),
      id: bytes.readUInt32LE(8),
      event: bytes.readUInt32LE(12),
      status: bytes.readInt32LE(16),
      parameters: bytes.subarray(20),
    };
  }

  async create(uid: number, space = 0x0106): Promise<number> {
    const create = command(0, 32);
    create.writeBigUInt64LE(BigInt(uid), 8);
    create.writeUInt16LE(space, 24);
    const { error, bytes } = await this.write(create);
    if (error !== 0) throw new Error(`no id: ${error}`);
    return bytes.readUInt32LE(0);
  }

  destroy = (id: number) => this.write(words(1, 24, [16, id]));
  bind = (id: number, address: string, port: number) => this.write(at(words(2, 48, [44, id]), 16, address, port));
  resolve(id: number, address: string, port: number, source?: string): Promise<Answer> {
    const resolve = at(words(3, 72, [64, id], [68, 2000]), 36, address, port);
    return this.write(source === undefined ? resolve : at(resolve, 8, source, 0));
  }
  route = (id: number) => this.write(words(4, 16, [8, id], [12, 2000]));
  query = (id: number) => this.write(words(5, 24, [16, id]));
  listen = (id: number, backlog = 0) => this.write(words(7, 16, [8, id], [12, backlog]));
  connect = (id: number, qpn: number, data = "", more: Parameters = {}) =>
    this.write(parameters(words(6, 296, [280, id]), 8, qpn, data, more));
  accept(id: number, uid: number, qpn: number, data = "", more: Parameters = {}): Promise<Answer> {
    const accept = parameters(words(8, 304, [288, id]), 16, qpn, data, more);
    accept.writeBigUInt64LE(BigInt(uid), 8);
    return this.write(accept);
  }
  reject(id: number, data = ""): Promise<Answer> {
    const reject = words(9, 272, [8, id]);
    reject.writeUInt8(data.length, 12);
    reject.write(data, 16);
    return this.write(reject);
  }
  disconnect = (id: number) => this.write(words(10, 12, [8, id]));
  attributes = (id: number, state: number) => this.write(words(11, 24, [16, id], [20, state]));
  join(id: number, uid: number, group: string): Promise<Answer> {
    const join = at(words(16, 56, [52, id]), 24, group, 0);
    join.writeBigUInt64LE(BigInt(uid), 16);
    return this.write(join);
  }
  leave = (membership: number) => this.write(words(17, 24, [16, membership]));
  option = (id: number, name: number, value: Buffer) =>
    this.write(words(14, 32, [16, id], [20, 0], [24, name], [28, value.length]), value);
  notify = (id: number, event: number) => this.write(words(15, 16, [8, id], [12, event]));
  migrate(id: number, from: UcmaClient): Promise<Answer> {
    const key = Buffer.alloc(8);
    key.writeBigUInt64LE(from.key);
    return this.write(words(18, 24, [16, id]), key, this.key, from);
  }

  /** An id that knows the way to a listener. */
  async routed(uid: number, address: string, port: number, space?: number): Promise<number> {
    const id = await this.create(uid, space);
    await this.resolve(id, address, port);
    await this.event();
    await this.route(id);
    await this.event();
    return id;
  }
}

export interface Parameters {
  responderResources?: number;
  initiatorDepth?: number;
}

/** A command of zeros, with the header that librdmacm writes. */
export function command(kind: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  bytes.writeUInt32LE(kind, 0);
  bytes.writeUInt16LE(length - 8, 4);
  return bytes;
}

export function words(kind: number, length: number, ...values: (readonly [number, number])[]): Buffer {
  const bytes = command(kind, length);
  for (const [offset, value] of values) bytes.writeInt32LE(value, offset);
  return bytes;
}

export function at(bytes: Buffer, offset: number, address: string, port: number): Buffer {
  const raw = addressBytes(address);
  bytes.writeUInt16LE(raw.length === 4 ? 2 : 10, offset);
  bytes.writeUInt16BE(port, offset + 2);
  bytes.set(raw, offset + (raw.length === 4 ? 4 : 8));
  return bytes;
}

export function parameters(bytes: Buffer, offset: number, qpn: number, data: string, more: Parameters): Buffer {
  bytes.writeUInt32LE(qpn, offset);
  bytes.write(data, offset + 8);
  bytes.writeUInt8(data.length, offset + 264);
  bytes.set([more.responderResources ?? 1, more.initiatorDepth ?? 1, 0, 7, 7, 1], offset + 266);
  return bytes;
}
