/** Answers ping for an address that the kernel does not have. */
import { isStation } from "../address.js";
import { kEthernetHeader } from "../headers.js";
import { echoReply } from "../icmp.js";
import { type Clock, kEtherType, newFrame, systemClock } from "./link.js";

/** Limits of Linux for other ICMP messages: in a second, and at once. */
const kPerSecond = 1000;
const kBurst = 50;

export class EchoResponder {
  replies = 0;
  /** Requests that were left alone because there were too many. */
  limited = 0;
  #tokens = kBurst;
  #since: number;

  constructor(
    private readonly mac: number,
    private readonly address: string,
    private readonly clock: Clock = systemClock,
  ) {
    this.#since = clock.now();
  }

  /** Returns undefined if the frame is no echo request to us, or one too many. */
  reply(frame: Buffer): Buffer | undefined {
    if (frame.length < kEthernetHeader) return;
    const [to, from, type] = [frame.readUIntBE(0, 6), frame.readUIntBE(6, 6), frame.readUInt16BE(12)];
    if (to !== this.mac || !isStation(from) || (type !== kEtherType.ipv4 && type !== kEtherType.ipv6)) return;
    const packet = echoReply(frame.subarray(kEthernetHeader), this.address);
    if (packet === undefined) return;
    if (!this.#mayAnswer()) {
      this.limited++;
      return;
    }
    this.replies++;
    const answer = newFrame(from, this.mac, type, packet.length);
    answer.set(packet, kEthernetHeader);
    return answer;
  }

  #mayAnswer(): boolean {
    const now = this.clock.now();
    this.#tokens = Math.min(kBurst, this.#tokens + ((now - this.#since) * kPerSecond) / 1000);
    this.#since = now;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}
