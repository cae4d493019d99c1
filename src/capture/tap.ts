/** Frames of some ports of a device: from attaching to its workers to the last frame. */
import type { CaptureCounts, NativeAddon, NativeCapture } from "../native/types.js";
import type { PortWorker } from "../native/workers.js";

/** A port, where its frames pass. */
export interface TapPlace {
  worker: PortWorker;
  /** As the worker numbers them. */
  device: number;
  port: number;
  /** Of the link, bit/s, for comments; 0: unlimited. */
  rate: number;
  /** By a scenario: the link that stands for it is slower. */
  meant: boolean;
}

export interface TapOptions {
  snaplen: number;
  /** Mask of kCaptureKinds. */
  kinds: number;
}

/** Of each worker: what comes in the time in which a busy process does not drain it. */
const kRingBytes = 8 << 20;
const kChunkBytes = 1 << 20;

export class FrameTap {
  private readonly captures: { capture: NativeCapture; worker: PortWorker }[] = [];
  private chunk: Buffer = Buffer.alloc(kChunkBytes);
  /** Those that were kept, and are done with. */
  private readonly spare: Buffer[] = [];
  private attached = true;

  /** From now on. The interfaces of frames are the positions of `places`. @throws NativeError when a worker has no such port. */
  constructor(addon: Pick<NativeAddon, "Capture">, places: readonly TapPlace[], { snaplen, kinds }: TapOptions) {
    const taps = places.map(({ rate, meant }) => ({ rate, meant }));
    for (const worker of new Set(places.map((place) => place.worker))) {
      const capture = new addon.Capture({ snap_length: snaplen, ring_bytes: kRingBytes, kinds, taps });
      const own = places.flatMap((place, tap) =>
        place.worker === worker ? [{ tap, device: place.device, port: place.port }] : [],
      );
      worker.attach(capture, own);
      this.captures.push({ capture, worker });
    }
  }

  /** Packet blocks of what has come, at most a megabyte of each worker; good until the next call, or see keep(). */
  *drain(): Iterable<Buffer> {
    for (const { capture } of this.captures) {
      const bytes = capture.drain(this.chunk);
      if (bytes > 0) yield this.chunk.subarray(0, bytes);
    }
  }

  /** Blocks that drain() has just told, good until `done` is called: most of a chunk as it is, and a copy of less. */
  keep(blocks: Buffer): { kept: Buffer; done: () => void } {
    if (blocks.length < kChunkBytes / 2) return { kept: Buffer.from(blocks), done: () => {} };
    const { chunk } = this;
    this.chunk = this.spare.pop() ?? Buffer.alloc(kChunkBytes);
    return { kept: blocks, done: () => this.spare.push(chunk) };
  }

  /** Of each place. */
  counts(): CaptureCounts[] {
    const [first = [], ...others] = this.captures.map(({ capture }) => capture.counts());
    return first.map((counts, tap) => addCounts([counts, ...others.map((other) => other[tap] as CaptureCounts)]));
  }

  /** No more frames; those that have come wait to be drained. Before the workers are closed. Idempotent. */
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
