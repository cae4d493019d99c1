/** Files of `weir record`: what a process asked of its queue pairs and was told of them (native/verbs/recording.h). */
import { readFileSync } from "node:fs";
import { fileReason, UnreadableFile, WeirError } from "../../base/error.js";

const kBytes = 40;
const kKinds = ["none", "process", "connects", "address", "posts", "completes", "waits"] as const;

export interface RecordedEvent {
  kind: (typeof kKinds)[number];
  /** CLOCK_MONOTONIC, ns. */
  at: number;
  /** ibv_wr_opcode of `posts`, ibv_wc_opcode of `completes`. */
  opcode: number;
  /** ibv_wc_status. */
  status: number;
  queuePair: number;
  bytes: number;
  /** Of `connects`: the peer's queue pair. */
  other: number;
  /** Of `connects` the peer's, of `address` its own, as hexadecimal digits. */
  gid: string;
}

/** Events in their order of time. @throws WeirError for a file that is none. */
export function readRecording(file: string): RecordedEvent[] {
  const bytes = contentOf(file);
  const events: RecordedEvent[] = [];
  for (let at = 0; at + kBytes <= bytes.length; at += kBytes) {
    const kind = kKinds[bytes[at + 8] as number];
    if (kind === "none") break;
    if (kind === undefined)
      throw new WeirError(`${file}: byte ${at + 8}: is no event`, { hint: "files of weir record end with .rec" });
    events.push({
      kind,
      at: Number(bytes.readBigUInt64LE(at)),
      opcode: bytes[at + 9] as number,
      status: bytes[at + 10] as number,
      queuePair: bytes.readUInt32LE(at + 12),
      bytes: bytes.readUInt32LE(at + 16),
      other: bytes.readUInt32LE(at + 20),
      gid: bytes.toString("hex", at + 24, at + 40),
    });
  }
  if (events[0]?.kind !== "process")
    throw new WeirError(`${file}: is no recording`, { hint: "files of weir record end with .rec" });
  return events.sort((a, b) => a.at - b.at);
}

function contentOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new UnreadableFile(`${file}: ${fileReason(error) ?? (error as Error).message}`, { cause: error });
  }
}
