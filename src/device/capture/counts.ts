/**
 * Counts of a capture's frames so far, as a block between its packets: it has a type for local use, and JSON inside, padded
 * with spaces.
 */
import { z } from "zod";
import type { CaptureCounts } from "../../native/types.js";
import { type BlockHead, block } from "./pcapng.js";

export const kCountsBlock = 0x8000_57e1;

export interface StreamCounts {
  ports: CaptureCounts[];
  /** Whether no more frames follow. */
  last: boolean;
}

export function countsBlock(counts: StreamCounts): Buffer {
  const text = Buffer.from(JSON.stringify(counts));
  return block(kCountsBlock, [text, Buffer.alloc(-text.length & 3, " ")]);
}

const count = z.int().min(0);
const schema = z.object({
  ports: z.array(z.object({ seen: count, captured: count, dropped: count })),
  last: z.boolean(),
});

/** @throws Error when the block is malformed, or has another number of ports. */
export function countsOf(chunk: Buffer, at: number, { end }: BlockHead, ports: number): StreamCounts {
  const counts = countsIn(chunk.toString("utf8", at + 8, end - 4));
  if (counts.ports.length !== ports) throw new Error(`malformed counts: of ${counts.ports.length} ports of ${ports}`);
  return counts;
}

function countsIn(text: string): StreamCounts {
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw new Error("malformed counts", { cause });
  }
}
