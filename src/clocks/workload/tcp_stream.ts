/** One connection of TCP between the kernels of two hosts: its sending, its arrivals, and what the kernel says of it. */
import { createServer, type Server, Socket } from "node:net";
import { asWeirError } from "../../base/error.js";
import type { NativeAddon } from "../../native/types.js";
import { wallRate } from "../../native/wall.js";
import type { FlowResult, Series } from "../../result/result.js";
import type { TcpStream } from "../../scenario/types.js";
import { kEthernetOverhead } from "../../wire/frame_size.js";
import { hostAddresses } from "../lab/compose.js";

/** Position of a host in the scenario, and its network namespace. */
export interface TcpEnd {
  index: number;
  namespace: string;
}

export interface TcpPlace {
  sender: TcpEnd;
  receiver: TcpEnd;
  scale: number;
  /** Meant ns since traffic began. */
  now(): number;
}

interface Sample {
  /** Meant ns from the start of traffic. */
  at: number;
  /** Bytes that have arrived by then. */
  bytes: number;
  /** Round-trip time, meant us; 0: not known. */
  rtt: number;
  /** Congestion window, segments. */
  window: number;
}

const kBlock = Buffer.alloc(1 << 16);
/** Bytes of Ethernet, IPv4 and TCP with time stamps, FCS, preamble and gap. */
const kSegmentOverhead = 14 + 20 + 32 + kEthernetOverhead;

export class TcpStreamRun {
  readonly #samples: Sample[] = [];
  readonly #words = new Float64Array(5);
  readonly #server: Server;
  readonly #socket: Socket;
  readonly #descriptor: number;
  #peer: Socket | undefined;
  #started = false;
  #ended = false;
  #sent = 0;
  #received = 0;
  /** Time at which all that it was to send had arrived, meant ns. */
  #completed: number | undefined;
  #failure: string | undefined;

  /** Makes both ends, not yet joined. @throws WeirError where the kernel lacks the congestion control. */
  constructor(
    private readonly addon: NativeAddon,
    private readonly stream: TcpStream,
    private readonly place: TcpPlace,
  ) {
    const { control, dscp, rate } = stream;
    const open = ({ index, namespace }: TcpEnd, pacing: number) =>
      asWeirError(() => addon.openTcpSocket(hostAddresses(index)[0], control, dscp, pacing, namespace));
    const listener = open(place.receiver, 0);
    this.#server = createServer((peer) => this.#accept(peer)).listen({ fd: listener });
    this.#server.on("error", (error) => this.#fail(error));
    this.#descriptor = open(place.sender, wallRate(rate ?? 0, place.scale));
    this.#socket = new Socket({ fd: this.#descriptor, readable: false, writable: true });
    this.#socket.on("error", (error) => this.#fail(error)).on("drain", () => this.#send());
  }

  /** Whether all that it was to send has arrived, or never will. */
  get done(): boolean {
    return this.#failure !== undefined || this.#completed !== undefined;
  }

  /** Whether it ends by itself. */
  get ends(): boolean {
    return this.stream.bytes !== undefined;
  }

  /** Begins and ends when it is time, and takes a sample. */
  look(): void {
    const { now, receiver } = this.place;
    const { start, stop } = this.stream;
    if (!this.#started && now() >= start) {
      this.#started = true;
      const address = this.#server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      this.#socket.connect({ host: hostAddresses(receiver.index)[0], port }, () => this.#send());
    }
    if (!this.#started || this.#ended) return;
    this.#sample();
    if (now() >= stop) this.end();
  }

  /** Ends the connection; bytes under way are thrown away. Idempotent. */
  end(): void {
    if (this.#ended) return;
    if (this.#started) this.#sample();
    this.#ended = true;
    this.#socket.destroy();
    this.#peer?.destroy();
    this.#server.close();
  }

  /** @param warmup End of the warm-up, meant ns. @param end Time at which the run ended, meant ns. */
  result(warmup: number, end: number): FlowResult {
    const { id, from, to, priority, start, stop, control } = this.stream;
    const whole = this.#completed;
    const [begin, last] = whole === undefined ? [Math.max(warmup, start), Math.min(end, stop)] : [start, whole];
    const seconds = Math.max(0, last - begin) / 1e9;
    const goodput = seconds > 0 ? (8 * (this.#bytesAt(last) - this.#bytesAt(begin))) / seconds : 0;
    const [packets = 0, retransmitted = 0, delivered = 0] = this.#words;
    const steady = this.#samples.filter(({ at, window }) => at >= begin && at <= last && window > 0);
    const [rtts, windows] = [steady.map(({ rtt }) => rtt), steady.map(({ window }) => window)];
    const mean = (list: readonly number[]) => list.reduce((sum, one) => sum + one, 0) / Math.max(1, list.length);
    const least = (list: readonly number[]) => (list.length === 0 ? 0 : Math.min(...list));
    return {
      ...{ id, from, to, priority },
      goodput_bps: goodput,
      wire_bps: goodput * (1 + (kSegmentOverhead * delivered) / Math.max(1, this.#received)),
      packets,
      received: delivered,
      lost: Math.max(0, retransmitted),
      cnp_handled: 0,
      tcp: {
        control,
        retransmitted,
        rtt_us: { mean: mean(rtts), min: least(rtts), max: Math.max(0, ...rtts) },
        cwnd_packets: { mean: mean(windows), max: Math.max(0, ...windows) },
        ...(this.#failure !== undefined && { failure: this.#failure }),
      },
    };
  }

  /** @param times Times of the samples, s. */
  series(times: readonly number[]): Series["flows"][string] {
    const bytes = times.map((time) => this.#bytesAt(time * 1e9));
    return {
      alpha: null,
      cwnd_packets: times.map((time) => this.#windowAt(time * 1e9)),
      goodput_bps: times.map((time, i) => {
        const span = i === 0 ? 0 : time - (times[i - 1] as number);
        return span > 0 ? (8 * ((bytes[i] as number) - (bytes[i - 1] as number))) / span : 0;
      }),
    };
  }

  #accept(peer: Socket): void {
    this.#peer = peer;
    this.#server.close();
    peer.on("error", () => {});
    peer.on("data", (data) => {
      this.#received += data.length;
      const sample = this.#now();
      this.#samples.push(sample);
      if (this.#received >= (this.stream.bytes ?? Number.POSITIVE_INFINITY)) this.#completed ??= sample.at;
    });
  }

  /** Sends as much as the socket takes. */
  #send(): void {
    const { bytes = Number.POSITIVE_INFINITY } = this.stream;
    while (!this.#ended && this.#sent < bytes) {
      const part = kBlock.subarray(0, Math.min(kBlock.length, bytes - this.#sent));
      this.#sent += part.length;
      if (!this.#socket.write(part)) return;
    }
  }

  #sample(): void {
    if (!this.addon.tcpInfo(this.#descriptor, this.#words)) return;
    this.#samples.push(this.#now());
  }

  #now(): Sample {
    const [, , , rtt = 0, window = 0] = this.#words;
    return { at: this.place.now(), bytes: this.#received, rtt: rtt / this.place.scale, window };
  }

  #fail({ message }: Error): void {
    if (!this.#ended) this.#failure ??= message;
  }

  /** Bytes that have arrived at a time, linear between samples. */
  #bytesAt(time: number): number {
    const next = firstFrom(this.#samples, time);
    const [before, after] = [this.#samples[next - 1], this.#samples[next]];
    if (before === undefined || after === undefined) return before?.bytes ?? 0;
    return before.bytes + ((after.bytes - before.bytes) * (time - before.at)) / (after.at - before.at);
  }

  #windowAt(time: number): number {
    return this.#samples[firstFrom(this.#samples, time) - 1]?.window ?? 0;
  }
}

/** Index of the first sample at `time` or later. */
function firstFrom(samples: readonly Sample[], time: number): number {
  let [low, high] = [0, samples.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((samples[middle] as Sample).at < time) low = middle + 1;
    else high = middle;
  }
  return low;
}
