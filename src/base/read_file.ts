/** Files by their names, of which nobody knows how long they are: what is meant for a file may be a device that never ends. */
import { constants } from "node:buffer";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";

const kPiece = 1 << 20;

/** Bytes of what is read as one text: more than JavaScript's strings can be long is nothing that Weir has written. */
export const kLongestText = constants.MAX_STRING_LENGTH;

/** A whole file; undefined if it has more than `most` bytes. */
export function readAtMost(file: string, most: number): Buffer | undefined {
  const descriptor = openSync(file, "r");
  try {
    // Of what is no plain file: 0.
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
