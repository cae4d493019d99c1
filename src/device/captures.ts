/** Device's side of a capture: the answer to the request, and the stream of pcapng blocks that follows it. */
import type { Writable } from "node:stream";
import { WeirError } from "../base/error.js";
import type { CaptureCounts, NativeAddon } from "../native/types.js";
import { knownHost } from "../scenario/host_names.js";
import { countsBlock } from "./capture/counts.js";
import { type CaptureStart, kindsMask, parseCaptureRequest } from "./capture/request.js";
import { addCounts, FrameTap, type TapPlace } from "./capture/tap.js";
import { Stream } from "./control_server.js";

/** A port, and the place where its frames pass. */
export type CapturePort = CaptureStart["ports"][number] & { place: TapPlace };

/** A switch or NIC whose frames are captured. */
export interface CaptureSource {
  addon: Pick<NativeAddon, "Capture">;
  about: Omit<CaptureStart, "ports" | "snaplen">;
  ports: readonly CapturePort[];
}

/** Events of captures, for a log. */
export interface CaptureEvents {
  began(ports: readonly string[]): void;
  ended(ports: readonly string[], total: CaptureCounts): void;
}

/** Most captures at a time: each may hold 8 MB of frames for each worker. */
const kMostAtOnce = 8;
const kDrainMs = 10;
const kCountsMs = 1000;
/** Most bytes on their way to a client: beyond that it is too slow, and frames stay in the ring. */
const kMostUnsent = 2 << 20;

/** The captures of one device. */
export class Captures {
  private readonly running = new Set<() => void>();

  constructor(
    private readonly source: () => CaptureSource,
    private readonly events?: CaptureEvents,
  ) {}

  /** @throws WeirError for bad arguments, and when there are too many. */
  answer(request: object): Stream {
    const { ports: names, snaplen, kinds } = parseCaptureRequest(request);
    const { addon, about, ports } = this.source();
    const wanted = names === undefined ? [...ports] : [...new Set(names)].map((name) => named(ports, name, about.name));
    if (this.running.size >= kMostAtOnce) {
      throw new WeirError(`${about.name} is being captured ${kMostAtOnce} times already`, { hint: "end one of them" });
    }
    const tap = new FrameTap(
      addon,
      wanted.map(({ place }) => place),
      { snaplen, kinds: kindsMask(kinds) },
    );
    const data: CaptureStart = { ...about, snaplen, ports: wanted.map(({ place, ...port }) => port) };
    return new Stream(data, (client) => this.#stream(tap, client, data));
  }

  #stream(tap: FrameTap, client: Writable, { ports }: CaptureStart): () => void {
    const names = ports.map(({ name }) => name);
    this.events?.began(names);
    const frames = setInterval(() => send(tap, client, kMostUnsent), kDrainMs);
    const counts = setInterval(() => client.write(countsBlock({ ports: tap.counts(), last: false })), kCountsMs);
    const stop = () => {
      if (!this.running.delete(stop)) return;
      clearInterval(frames);
      clearInterval(counts);
      tap.detach();
      if (client.writable) {
        send(tap, client, Number.POSITIVE_INFINITY);
        client.write(countsBlock({ ports: tap.counts(), last: true }));
        client.end();
      }
      this.events?.ended(names, addCounts(tap.counts()));
    };
    this.running.add(stop);
    return stop;
  }

  /** Ends all captures. It is called before the device's workers are closed. */
  close(): void {
    for (const stop of this.running) stop();
  }
}

/** A port of a device by its name. @throws WeirError where there is none. */
export function named<Port extends { name: string }>(ports: readonly Port[], asked: string, device: string): Port {
  const name = knownHost(asked, (one) => ports.some((port) => port.name === one));
  const found = ports.find((port) => port.name === name);
  if (found !== undefined) return found;
  throw new WeirError(`${device} has no port called ${JSON.stringify(name)}`, {
    hint: `its ports: ${ports.map((port) => port.name).join(", ")}`,
  });
}

/** Sends all frames that wait, as long as the client takes them. */
function send(tap: FrameTap, client: Writable, most: number): void {
  for (let more = true; more && client.writableLength < most; ) {
    more = false;
    for (const blocks of tap.drain()) {
      const { kept, done } = tap.keep(blocks);
      client.write(kept, done);
      more = true;
    }
  }
}
