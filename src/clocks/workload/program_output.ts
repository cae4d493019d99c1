/** Output of a program, kept in a file: its first part, and how much there was. */
import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { fileReason } from "../../base/error.js";
import { makeFolder } from "../../base/folder.js";
import type { ProgramResult } from "../../result/program_result.js";

/** Most bytes that are kept of each stream of each program. */
const kMostKept = 1 << 20;
/** Most characters of the last line, which is shown when something went wrong. */
const kTail = 400;

export class ProgramOutput {
  readonly #path: string;
  #file = -1;
  #bytes = 0;
  #kept = 0;
  #error: string | undefined;
  #tail = "";

  /** @param file Path in `folder`; folders of its name are made. */
  constructor(
    folder: string,
    private readonly file: string,
  ) {
    this.#path = join(folder, file);
    this.#guarded(() => {
      makeFolder(join(this.#path, ".."));
      this.#file = openSync(this.#path, "w");
    });
  }

  listen(stream: Readable): void {
    stream.on("data", (data: Buffer) => this.#take(data));
  }

  /** The last line that is not empty, shortened. */
  get lastLine(): string {
    const lines = this.#tail.split("\n").map((line) => line.trim());
    return lines.findLast((line) => line !== "") ?? "";
  }

  result(): NonNullable<ProgramResult["stdout"]> {
    const error = this.#error;
    return { file: this.file, bytes: this.#bytes, kept: this.#kept, ...(error !== undefined && { error }) };
  }

  /** Idempotent. */
  close(): void {
    if (this.#file >= 0) closeSync(this.#file);
    this.#file = -1;
  }

  #take(data: Buffer): void {
    this.#bytes += data.length;
    this.#tail = (this.#tail + data.toString("utf8")).slice(-kTail);
    const part = data.subarray(0, Math.max(0, kMostKept - this.#kept));
    if (part.length === 0 || this.#file < 0 || this.#error !== undefined) return;
    this.#guarded(() => {
      for (let at = 0; at < part.length; ) {
        const written = writeSync(this.#file, part, at);
        at += written;
        this.#kept += written;
      }
    });
  }

  /** Keeps the run going: a full disk costs only output. */
  #guarded(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#error = fileReason(error) ?? (error as Error).message;
    }
  }
}
