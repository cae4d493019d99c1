/** Frames of a simulation as a pcapng file. */
import { closeSync, openSync, writeFileSync } from "node:fs";
import { fileReason, WeirError } from "../../base/error.js";
import { Frames } from "../../device/capture/frames.js";
import { PacketBlocks } from "../../device/capture/packet_blocks.js";
import { fileHeader } from "../../device/capture/pcapng.js";

/** Bytes that are written at a time. */
const kBlocksBytes = 1 << 20;

/** A place where frames are taken: one interface of the file. */
export interface TraceTap {
  name: string;
}

export interface Trace {
  /**
   * Adds the frames of one `NativeSimulation.drainTrace()`.
   * @throws Error when the chunk is malformed; nothing of it has then been written.
   */
  write(chunk: Uint8Array): void;
  /** Idempotent. */
  close(): void;
}

/**
 * Creates the file, or empties it. `taps` are all taps of the simulation in order; frames of an undefined one belong to
 * another file and are left out. The bytes depend on nothing but names and frames.
 * @throws WeirError when the file cannot be written.
 */
export function openTrace(file: string, taps: readonly (TraceTap | undefined)[]): Trace {
  let descriptor: number | undefined = open(file);
  let next = 0;
  const encoder = new PacketBlocks(
    taps.map((tap) => (tap === undefined ? undefined : { number: next++, rate: 0, meant: false })),
  );
  const blocks = Buffer.alloc(kBlocksBytes);
  const append = (bytes: Uint8Array) => {
    if (descriptor === undefined) throw new Error(`${file}: the trace is closed`);
    try {
      writeFileSync(descriptor, bytes);
    } catch (cause) {
      throw new WeirError(`cannot write ${file}: ${fileReason(cause) ?? (cause as Error).message}`, { cause });
    }
  };
  append(
    fileHeader(
      { application: "weir" },
      taps.filter((tap) => tap !== undefined),
    ),
  );
  return {
    write(chunk) {
      const frames = new Frames(chunk, taps.length);
      const next = () => blocks.subarray(0, encoder.encode(frames, blocks));
      for (let part = next(); part.length > 0; part = next()) append(part);
    },
    close() {
      if (descriptor !== undefined) closeSync(descriptor);
      descriptor = undefined;
    },
  };
}

function open(file: string): number {
  try {
    return openSync(file, "w");
  } catch (cause) {
    const hint = "a trace needs a folder that exists and may be written to";
    throw new WeirError(`${file}: ${(cause as Error).message}`, { field: "trace", hint, cause });
  }
}
