import { Writable } from "node:stream";
import type { LiveStream } from "../../src/result/report/terminal.js";

/** A stream that remembers what was written to it; a terminal if it is told so. */
export function memoryStream(terminal: Partial<Pick<LiveStream, "isTTY" | "columns" | "rows">> = {}) {
  const writes: string[] = [];
  const stream: LiveStream = new Writable({
    write(chunk, _encoding, done) {
      writes.push(String(chunk));
      done();
    },
  });
  return { stream: Object.assign(stream, terminal), writes, text: () => writes.join("") };
}
