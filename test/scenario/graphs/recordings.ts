/** Recordings of programs, written by hand. */

const kKinds = { process: 1, connects: 2, address: 3, posts: 4, completes: 5, waits: 6 };
export interface Event {
  kind: keyof typeof kKinds;
  at?: number;
  opcode?: number;
  status?: number;
  pair?: number;
  bytes?: number;
  other?: number;
  gid?: number;
}

/** A file as native/verbs/recording.cc writes it. */
export function bytesOfRecording(events: readonly Event[]): Buffer {
  const whole = [{ kind: "process" as const, bytes: 77 }, ...events];
  // The rest of what was mapped is empty.
  const bytes = Buffer.alloc(40 * (whole.length + 5));
  whole.forEach(({ kind, at = 0, opcode = 0, status = 0, pair = 0, bytes: size = 0, other = 0, gid = 0 }: Event, i) => {
    bytes.writeBigUInt64LE(BigInt(at), 40 * i);
    bytes.set([kKinds[kind], opcode, status], 40 * i + 8);
    bytes.writeUInt32LE(pair, 40 * i + 12);
    bytes.writeUInt32LE(size, 40 * i + 16);
    bytes.writeUInt32LE(other, 40 * i + 20);
    bytes.writeUInt8(gid, 40 * i + 39);
  });
  return bytes;
}
