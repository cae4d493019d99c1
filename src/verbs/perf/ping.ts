/**
 * rping's protocol (rdma-core 44, librdmacm/examples/rping.c). The client offers memory with a text in it, the server READs it
 * and says so; the client offers other memory, the server WRITEs the text there and says so.
 */
import { WeirError } from "../../base/error.js";
import { type Connection, connect, listen } from "../connection.js";
import type { Device } from "../device.js";
import type { MemoryRegion } from "../memory_region.js";
import type { QueuePair } from "../queue_pair.js";
import type { RemoteMemory } from "../types.js";
import { Channel, CompletionError } from "./completions.js";

export const kPingPort = 7174;
export const kPingSize = 64;
/** Sizes that rping takes: room for the largest number and the words before it, and less than its buffer. */
export const kPingSizes = [26, 65_535] as const;
const [, kMostBytes] = kPingSizes;
/** `struct rping_rdma_info`: address, key and length, big endian. */
const kOfferBytes = 16;

export interface PingOptions {
  port: number;
  /** Bytes of a ping. */
  size: number;
  /** Number of pings; Infinity: no end. */
  count: number;
  /** True if the text that comes back must be the one that was offered. */
  verify: boolean;
}

/** A ping that is done. */
export interface Ping {
  text: string;
  /** us, from the client's first message to the server's last. */
  time: number;
}

/** Pings `address` `count` times, and tells `onPing`. @throws WeirError when a text comes back changed, or nothing does. */
export async function pingClient(
  device: Device,
  address: string,
  { port, size, count, verify }: PingOptions,
  signal: AbortSignal,
  onPing: (ping: Ping) => void,
): Promise<void> {
  const end = new PingEnd(device, size, signal);
  const connection = await connect(device, { address, port, queuePair: end.queuePair, maxRdAtomic: 1 });
  try {
    for (let number = 0; number < count; number++) {
      const text = pingText(number, size);
      end.source.set(text);
      const begin = performance.now();
      await end.offer(end.source);
      await end.receive();
      await end.offer(end.sink);
      await end.receive();
      const time = (performance.now() - begin) * 1000;
      if (verify && !text.equals(end.sink)) {
        throw new WeirError(`ping ${number}: the text came back changed`, {
          hint: "something between the memories of the two ends alters data and keeps the checksums right",
        });
      }
      onPing({ text: textOf(end.sink), time });
    }
  } finally {
    await connection.disconnect();
  }
}

/** Serves one client until it hangs up. `onReady` is called when it may come. */
export async function pingServer(
  device: Device,
  port: number,
  signal: AbortSignal,
  onReady: () => void,
  onPing: (ping: Ping) => void,
): Promise<void> {
  const end = new PingEnd(device, kMostBytes, signal);
  const connection = await acceptOne(device, port, end.queuePair, signal, onReady);
  try {
    for (;;) {
      const source = await end.receiveOffer();
      const begin = performance.now();
      await end.move("rdma_read", source.length, source.remote);
      await end.offer();
      const sink = await end.receiveOffer();
      // As in rping, the server writes the text and the zero byte at its end.
      const text = textOf(end.source.subarray(0, source.length));
      await end.move("rdma_write", Math.min(text.length + 1, source.length, sink.length), sink.remote);
      await end.offer();
      onPing({ text, time: (performance.now() - begin) * 1000 });
    }
  } catch (error) {
    if (!(error instanceof CompletionError && error.status === "wr_flush_err")) throw error;
  } finally {
    await connection.disconnect();
  }
}

function acceptOne(
  device: Device,
  port: number,
  queuePair: QueuePair,
  signal: AbortSignal,
  onReady: () => void,
): Promise<Connection> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    const stop = listen(device, port, (request) => {
      stop();
      request.accept({ queuePair, maxRdAtomic: 1 }).then(resolve, reject);
    });
    onReady();
  });
}

/** A queue pair and memory for texts and offers. */
class PingEnd {
  readonly queuePair: QueuePair;
  readonly source: Buffer;
  readonly sink: Buffer;
  readonly #memory: MemoryRegion;
  readonly #incoming: Buffer;
  readonly #outgoing: Buffer;
  readonly #channel: Channel;

  constructor(device: Device, size: number, signal: AbortSignal) {
    const domain = device.allocateProtectionDomain();
    this.#memory = domain.registerMemory(2 * size + 2 * kOfferBytes);
    const piece = (offset: number, length: number) => Buffer.from(this.#memory.buffer, offset, length);
    this.source = piece(0, size);
    this.sink = piece(size, size);
    this.#incoming = piece(2 * size, kOfferBytes);
    this.#outgoing = piece(2 * size + kOfferBytes, kOfferBytes);
    this.#channel = new Channel(device, domain, 2, signal);
    this.queuePair = this.#channel.queuePair;
    this.#postReceive();
  }

  /** Offers memory to the peer; without any, tells it to go on. */
  async offer(memory?: Buffer): Promise<void> {
    this.#outgoing.fill(0);
    if (memory !== undefined) {
      const { address, key } = this.#memory.remote(memory.byteOffset);
      this.#outgoing.writeBigUInt64BE(address, 0);
      this.#outgoing.writeUInt32BE(key, 8);
      this.#outgoing.writeUInt32BE(memory.length, 12);
    }
    await this.#channel.send({ opcode: "send", local: this.#slice(this.#outgoing) });
  }

  /** Returns the peer's next message. */
  async receive(): Promise<Buffer> {
    const { byteLength } = await this.#channel.received.next();
    if (byteLength !== kOfferBytes) {
      throw new WeirError(`the peer sent ${byteLength} bytes where rping sends ${kOfferBytes}`, {
        hint: "the other side must run rping or weir ping",
      });
    }
    const message = Buffer.from(this.#incoming);
    this.#postReceive();
    return message;
  }

  async receiveOffer(): Promise<{ length: number; remote: RemoteMemory }> {
    const message = await this.receive();
    const length = message.readUInt32BE(12);
    if (length > kMostBytes) {
      throw new WeirError(`the peer offers ${length} bytes`, { hint: `a ping has at most ${kMostBytes}` });
    }
    return { length, remote: { address: message.readBigUInt64BE(0), key: message.readUInt32BE(8) } };
  }

  /** Reads into `source`, or writes from it. */
  async move(opcode: "rdma_read" | "rdma_write", length: number, remote: RemoteMemory): Promise<void> {
    await this.#channel.send({ opcode, local: this.#slice(this.source.subarray(0, length)), remote });
  }

  #postReceive(): void {
    this.queuePair.postReceive({ local: this.#slice(this.#incoming) });
  }

  #slice(memory: Buffer) {
    return { region: this.#memory, offset: memory.byteOffset, length: memory.length };
  }
}

const [kFirst, kLast] = [65, 122]; // Letters are those from A to z.

/** rping's text of a ping: its number, then letters that begin one later each time, and a zero byte at the end. */
export function pingText(number: number, size: number): Buffer {
  const text = Buffer.alloc(size);
  const letters = kLast - kFirst + 1;
  for (let i = text.write(`rdma-ping-${number}: `, "latin1"), k = number; i < size - 1; i++, k++) {
    text[i] = kFirst + (k % letters);
  }
  return text;
}

/** Returns the text up to the first zero byte. */
function textOf(memory: Buffer): string {
  const end = memory.indexOf(0);
  return memory.toString("latin1", 0, end < 0 ? memory.length : end);
}
