/** Client's side of a capture: writes the stream of blocks, until it is over, as a pcapng file. */
import type { Socket } from "node:net";
import { WeirError } from "../../base/error.js";
import type { CaptureCounts } from "../../native/types.js";
import { countsOf, kCountsBlock, type StreamCounts } from "./counts.js";
import { blockAt, fileHeader, interfaceOf, interfaceStatistics, type Section } from "./pcapng.js";
import { type CaptureStart, captureStart } from "./request.js";

export interface ReceiveOptions {
  section: Section;
  /** Writes bytes; the next ones come when it is done. */
  write(bytes: Buffer): Promise<void>;
  /** Most frames; without it there is no limit. */
  count?: number | undefined;
  /** Ends the capture: frames that have come until then are still written. */
  signal: AbortSignal;
  onProgress?: ((progress: CaptureProgress) => void) | undefined;
}

export interface CaptureProgress {
  /** Frames in the file. */
  frames: number;
  /** Bytes of the file. */
  bytes: number;
  /** Frames that were lost, as far as the device has told. */
  dropped: number;
}

export interface CaptureSummary extends CaptureProgress {
  ports: (CaptureCounts & { name: string; written: number })[];
  /** False when the device went away without a last word; the counts are from before. */
  complete: boolean;
}

/** Time that a device may be silent after it has been asked to end. */
const kPatienceMs = 5000;

/**
 * @throws the errors of `write`, WeirError when the answer begins no capture, and Error when the stream is malformed; the file ends with a
 * whole block all the same.
 */
export async function receiveCapture(
  { data, socket }: { data: unknown; socket: Socket },
  options: ReceiveOptions,
): Promise<CaptureSummary> {
  const start = captureStart.safeParse(data);
  if (!start.success) {
    socket.destroy();
    throw new WeirError("what answered begins no capture", {
      hint: "use the same version of weir as what is captured",
    });
  }
  const file = new CaptureFile(start.data, options);
  let patience: NodeJS.Timeout | undefined;
  const end = () => {
    if (patience !== undefined) return;
    socket.end();
    patience = setTimeout(() => socket.destroy(), kPatienceMs);
  };
  options.signal.addEventListener("abort", end);
  try {
    await file.begin();
    if (options.signal.aborted) end();
    for await (const chunk of chunksOf(socket)) {
      await file.take(chunk);
      patience?.refresh();
      if (file.full) end();
    }
    return await file.finish();
  } finally {
    clearTimeout(patience);
    options.signal.removeEventListener("abort", end);
    socket.destroy();
  }
}

/** Yields chunks until the end, or until the connection breaks: a stream without a last word tells that by itself. */
async function* chunksOf(socket: Socket): AsyncIterable<Buffer> {
  try {
    for await (const chunk of socket) yield chunk as Buffer;
  } catch {}
}

class CaptureFile {
  private rest = Buffer.alloc(0);
  private frames = 0;
  private bytes = 0;
  private readonly written: number[];
  private counts: StreamCounts;
  private readonly from = now();

  constructor(
    private readonly start: CaptureStart,
    private readonly options: ReceiveOptions,
  ) {
    this.written = start.ports.map(() => 0);
    this.counts = { ports: start.ports.map(() => ({ seen: 0, captured: 0, dropped: 0 })), last: false };
  }

  /** Whether there are as many frames as were asked for. */
  get full(): boolean {
    return this.frames >= (this.options.count ?? Number.POSITIVE_INFINITY);
  }

  begin(): Promise<void> {
    const { name, ports, snaplen } = this.start;
    const interfaces = ports.map((port) => ({ ...port, name: `${name}:${port.name}`, snapLength: snaplen }));
    return this.#write(fileHeader(this.options.section, interfaces));
  }

  async take(chunk: Buffer): Promise<void> {
    const bytes = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    let at = 0;
    let begin = 0;
    for (let block = blockAt(bytes, at); block !== undefined; block = blockAt(bytes, at)) {
      const isPacket = block.type !== kCountsBlock;
      if (isPacket && !this.full) {
        const port = interfaceOf(bytes, at, block, this.written.length);
        this.written[port] = (this.written[port] ?? 0) + 1;
        this.frames++;
      } else {
        if (!isPacket) this.counts = countsOf(bytes, at, block, this.written.length);
        if (at > begin) await this.#write(bytes.subarray(begin, at));
        begin = block.end;
      }
      at = block.end;
    }
    if (at > begin) await this.#write(bytes.subarray(begin, at));
    this.rest = Buffer.from(bytes.subarray(at));
    this.options.onProgress?.(this.#progress());
  }

  /** Writes for each interface the counts of its frames, if the device has told them. */
  async finish(): Promise<CaptureSummary> {
    const to = now();
    const { ports, last } = this.counts;
    if (last) {
      const blocks = ports.map(({ seen, captured, dropped }, i) => {
        const written = this.written[i] ?? 0;
        return interfaceStatistics(i, { from: this.from, to, seen, wanted: captured + dropped, dropped, written });
      });
      await this.#write(Buffer.concat(blocks));
    }
    return {
      ...this.#progress(),
      ports: ports.map((counts, i) => ({
        name: this.start.ports[i]?.name ?? "",
        ...counts,
        written: this.written[i] ?? 0,
      })),
      complete: last,
    };
  }

  async #write(bytes: Buffer): Promise<void> {
    await this.options.write(bytes);
    this.bytes += bytes.length;
  }

  #progress(): CaptureProgress {
    const dropped = this.counts.ports.reduce((sum, port) => sum + port.dropped, 0);
    return { frames: this.frames, bytes: this.bytes, dropped };
  }
}

/** Time in ns since the epoch, to the millisecond. */
function now(): bigint {
  return BigInt(Date.now()) * 1_000_000n;
}
