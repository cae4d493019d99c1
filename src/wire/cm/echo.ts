/** Answers ping for an address that the kernel does not have. */
import { isStation } from "../address.js";
import { buildEthernet, readEthernet } from "../ethernet.js";
import { kEtherType } from "../headers.js";
import { echoReply } from "../icmp.js";
import { type Clock, systemClock } from "./link.js";

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
    const ethernet = readEthernet(frame);
    if (ethernet?.destination !== this.mac || !isStation(ethernet.source)) return;
    const { source, etherType, payload } = ethernet;
    const packet =
      etherType === kEtherType.ipv4 || etherType === kEtherType.ipv6 ? echoReply(payload, this.address) : undefined;
    if (packet === undefined) return;
    if (!this.#mayAnswer()) {
      this.limited++;
      return;
    }
    this.replies++;
    return buildEthernet(source, this.mac, etherType, packet);
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
