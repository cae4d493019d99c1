/** Reads files whose length nobody knows: a name that is meant for a file may be that of a device that never ends. */
import { constants } from "node:buffer";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";

const kPiece = 1 << 20;

/** Bytes that are read as one text: Weir has written nothing that is longer than JavaScript's strings can be. */
export const kLongestText = constants.MAX_STRING_LENGTH;

/** A whole file; undefined if it has more than `most` bytes. */
export function readAtMost(file: string, most: number): Buffer | undefined {
  const descriptor = openSync(file, "r");
  try {
    // Anything but a plain file has size 0.
    const { size } = fstatSync(descriptor);
    if (size > most) return undefined;
    const pieces: Buffer[] = [];
    let length = 0;
    for (let room = size + 1; length <= most; room = kPiece) {
      const piece = Buffer.allocUnsafe(Math.min(Math.max(room, kPiece), most + 1 - length));
      const read = readSync(descriptor, piece, 0, piece.length, null);
      if (read === 0) return pieces.length === 1 ? pieces[0] : Buffer.concat(pieces, length);
      pieces.push(piece.subarray(0, read));
      length += read;
    }
    return undefined;
  } finally {
    closeSync(descriptor);
  }
}
