/** perftest's control connection: a queue pair on which the client speaks and the server answers, one by one. */
import { WeirError } from "../../base/error.js";
import type { Device } from "../device.js";
import type { MemoryRegion } from "../memory_region.js";
import type { ProtectionDomain } from "../protection_domain.js";
import type { QueuePair } from "../queue_pair.js";
import { Channel } from "./completions.js";
import { kDestinationBytes } from "./messages.js";

export type Role = "client" | "server";

const kRoom = 64;

export class Control {
  readonly #memory: MemoryRegion;
  readonly #channel: Channel;

  /** Prepares for the first message; `queuePair` is still to be connected. */
  constructor(
    device: Device,
    domain: ProtectionDomain,
    private readonly role: Role,
    signal: AbortSignal,
  ) {
    this.#memory = domain.registerMemory(2 * kRoom, ["local_write"]);
    this.#channel = new Channel(device, domain, 1, signal);
    this.#postReceive();
  }

  get queuePair(): QueuePair {
    return this.#channel.queuePair;
  }

  /** Sends `message` and returns the peer's message in its place, which must have the same length. */
  async exchange(message: Uint8Array): Promise<Uint8Array> {
    if (this.role === "client") await this.send(message);
    const answer = await this.receive();
    if (answer.length !== message.length) {
      throw outOfStep(`it sent ${answer.length} bytes where ${message.length} are due`);
    }
    if (this.role === "server") await this.send(message);
    return answer;
  }

  /** Sends a message; returns when the peer has it. */
  async send(message: Uint8Array): Promise<void> {
    new Uint8Array(this.#memory.buffer).set(message, kRoom);
    await this.#channel.send({
      opcode: "send",
      local: { region: this.#memory, offset: kRoom, length: message.length },
    });
  }

  async receive(): Promise<Uint8Array> {
    const { byteLength } = await this.#channel.received.next();
    const message = new Uint8Array(this.#memory.buffer).slice(0, byteLength);
    this.#postReceive();
    return message;
  }

  #postReceive(): void {
    this.queuePair.postReceive({ local: { region: this.#memory, offset: 0, length: kDestinationBytes } });
  }
}

/** Error for two ends that do not run the same test. */
export function outOfStep(what: string): WeirError {
  return new WeirError(`the peer is out of step: ${what}`, {
    hint: "run the same test with the same options on both sides, perftest with -R",
  });
}
