/** Frames of some ports of a device, from the time when a tap is attached to its workers to the last frame. */
import type { CaptureCounts, NativeAddon, NativeCapture } from "../../native/types.js";
import type { PortWorker } from "../../native/workers.js";
import { type FrameEncoder, Frames } from "./frames.js";
import { PacketBlocks } from "./packet_blocks.js";

/** A port whose frames are captured. */
export interface TapPlace {
  worker: PortWorker;
  /** Numbers of device and port at the worker. */
  device: number;
  port: number;
  /** Rate of the link, bit/s, for comments; 0: unlimited. */
  rate: number;
  /** Whether the rate is that of a scenario: the link that stands for it is slower. */
  meant: boolean;
}

export interface TapOptions {
  snaplen: number;
  /** Mask of kCaptureKinds. */
  kinds: number;
  /** Format; without it, blocks of pcapng, whose interfaces are the positions of the places. */
  encoder?: FrameEncoder;
}

/** Ring of each worker: it holds the frames that come while a busy process does not drain it. */
const kRingBytes = 8 << 20;
const kChunkBytes = 1 << 20;

export class FrameTap {
  private readonly captures: { capture: NativeCapture; worker: PortWorker }[] = [];
  private readonly encoder: FrameEncoder;
  private readonly frames = new Uint8Array(kChunkBytes);
  private chunk: Buffer = Buffer.alloc(kChunkBytes);
  /** Buffers that were kept, and are free again. */
  private readonly spare: Buffer[] = [];
  private attached = true;

  /** Captures from now on. @throws NativeError when a worker has no such port. */
  constructor(
    addon: Pick<NativeAddon, "Capture">,
    private readonly places: readonly TapPlace[],
    { snaplen, kinds, encoder }: TapOptions,
  ) {
    this.encoder = encoder ?? new PacketBlocks(places.map(({ rate, meant }, number) => ({ number, rate, meant })));
    const taps = places.length;
    for (const worker of new Set(places.map((place) => place.worker))) {
      const capture = new addon.Capture({ snap_length: snaplen, ring_bytes: kRingBytes, kinds, taps });
      const own = places.flatMap((place, tap) =>
        place.worker === worker ? [{ tap, device: place.device, port: place.port }] : [],
      );
      worker.attach(capture, own);
      this.captures.push({ capture, worker });
    }
  }

  /** Yields frames that have come, at most a megabyte of each worker; each part is good until the next, or see keep(). */
  *drain(): Iterable<Buffer> {
    for (const { capture } of this.captures) {
      const frames = new Frames(this.frames.subarray(0, capture.drain(this.frames)), this.places.length);
      const next = () => this.chunk.subarray(0, this.encoder.encode(frames, this.chunk));
      for (let part = next(); part.length > 0; part = next()) yield part;
    }
  }

  /** Keeps a part that drain() has just yielded until `done` is called: most of a chunk as it is, and a copy of less. */
  keep(part: Buffer): { kept: Buffer; done: () => void } {
    if (part.length < kChunkBytes / 2) return { kept: Buffer.from(part), done: () => {} };
    const { chunk } = this;
    this.chunk = this.spare.pop() ?? Buffer.alloc(kChunkBytes);
    return { kept: part, done: () => this.spare.push(chunk) };
  }

  /** Counts of each place. */
  counts(): CaptureCounts[] {
    const [first = [], ...others] = this.captures.map(({ capture }) => capture.counts());
    return first.map((counts, tap) => addCounts([counts, ...others.map((other) => other[tap] as CaptureCounts)]));
  }

  /** Captures no more frames; those that have come wait to be drained. It is called before the workers are closed. Idempotent. */
  detach(): void {
    if (!this.attached) return;
    this.attached = false;
    for (const { capture, worker } of this.captures) worker.detach(capture);
  }
}

export function addCounts(list: readonly CaptureCounts[]): CaptureCounts {
  const sum = { seen: 0, captured: 0, dropped: 0 };
  for (const { seen, captured, dropped } of list) {
    sum.seen += seen;
    sum.captured += captured;
    sum.dropped += dropped;
  }
  return sum;
}
