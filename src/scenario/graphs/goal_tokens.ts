/** Words, numbers and signs of GOAL text, a piece of the file at a time. */
import { closeSync, openSync, readSync } from "node:fs";
import { fileReason, UnreadableFile, WeirError } from "../../base/error.js";

const kPiece = 1 << 20;
/** Longest name or number, in characters. */
export const kLongestToken = 1024;

export type Token = "word" | "number" | "sign" | "end";

const kNewline = 10;
const kSlash = 47;
const kStar = 42;

/** Class of each byte: 0 other, 1 white space, 2 digit, 3 letter, 4 underscore. */
const kClass = new Uint8Array(256);
for (const c of " \t\r\n") kClass[c.charCodeAt(0)] = 1;
for (let c = 48; c < 58; c++) kClass[c] = 2;
for (let c = 0; c < 26; c++) {
  kClass[65 + c] = 3;
  kClass[97 + c] = 3;
}
kClass[95] = 4;

/** Reads one token after another; fields are those of the last. */
export class GoalTokens {
  kind: Token = "end";
  /** Line of the token, from 1. */
  line = 1;
  /** The token begins a line, which is not the first. */
  first = false;
  /** Of a number: its value, which beyond 2^53 is not exact. Of a sign: its character code. */
  value = 0;

  private bytes: Buffer;
  private at = 0;
  private end: number;
  private begin = 0;
  private readonly descriptor: number | undefined;
  private over: boolean;

  /** `text`, where it was read already; otherwise the file is opened, until close(). */
  constructor(
    private readonly file: string,
    text?: string,
  ) {
    if (text !== undefined) {
      this.bytes = Buffer.from(text);
      this.end = this.bytes.length;
      this.over = true;
      return;
    }
    this.bytes = Buffer.allocUnsafe(kPiece + 2 * kLongestToken);
    this.end = 0;
    this.over = false;
    try {
      this.descriptor = openSync(file, "r");
    } catch (error) {
      throw this.unreadable(error);
    }
  }

  close(): void {
    if (this.descriptor !== undefined) closeSync(this.descriptor);
  }

  /** Goes on to the next token. @throws WeirError where none begins. */
  next(): void {
    const before = this.line;
    this.skipSpace();
    this.first = this.line !== before;
    if (this.at === this.end) {
      this.kind = "end";
      return;
    }
    if (this.end - this.at <= kLongestToken) this.fill();
    const { bytes, end } = this;
    let at = this.at;
    this.begin = at;
    const c = bytes[at] as number;
    const group = kClass[c] as number;
    if (group === 2) {
      let value = 0;
      for (; at < end && kClass[bytes[at] as number] === 2; at++) value = value * 10 + (bytes[at] as number) - 48;
      this.value = value;
      this.kind = "number";
    } else if (group === 3) {
      while (at < end && (kClass[bytes[at] as number] as number) >= 2) at++;
      this.kind = "word";
    } else {
      at++;
      this.value = c;
      this.kind = "sign";
    }
    this.at = at;
    if (at - this.begin > kLongestToken) throw this.error(`a name or number of more than ${kLongestToken} characters`);
  }

  /** The token is this word, in lower-case letters. */
  is(word: string): boolean {
    const { bytes, begin } = this;
    if (this.kind !== "word" || this.at - begin !== word.length) return false;
    for (let i = 0; i < word.length; i++) if (bytes[begin + i] !== word.charCodeAt(i)) return false;
    return true;
  }

  isSign(sign: string): boolean {
    return this.kind === "sign" && this.value === sign.charCodeAt(0);
  }

  text(): string {
    return this.bytes.toString("latin1", this.begin, this.at);
  }

  /**
   * Number of a word that is a letter and after it a number as `String()` writes it, below 2^31; -1 for all other words. The letter
   * goes to `value`, as its character code.
   */
  ordinal(): number {
    const { bytes, begin, at } = this;
    const digits = at - begin - 1;
    if (digits < 1 || digits > 9 || (bytes[begin + 1] === 48 && digits > 1)) return -1;
    let ordinal = 0;
    for (let i = begin + 1; i < at; i++) {
      const digit = (bytes[i] as number) - 48;
      if (digit < 0 || digit > 9) return -1;
      ordinal = ordinal * 10 + digit;
    }
    this.value = bytes[begin] as number;
    return ordinal;
  }

  error(problem: string, hint?: string): WeirError {
    return new WeirError(`${this.file}:${this.line}: ${problem}`, { hint });
  }

  /** What stands where something else was expected, for messages. */
  found(): string {
    if (this.kind === "end") return "the end of the file";
    const text = this.text();
    return /^[\x21-\x7e]+$/.test(text) ? text.slice(0, 60) : `the byte ${this.bytes[this.begin]}`;
  }

  /** Skips white space and comments. */
  private skipSpace(): void {
    for (;;) {
      if (this.at === this.end && !this.fill()) return;
      const { bytes, end } = this;
      let at = this.at;
      for (; at < end; at++) {
        const c = bytes[at] as number;
        if (c === kNewline) this.line++;
        else if (kClass[c] !== 1) break;
      }
      this.at = at;
      if (at === end) continue;
      if (bytes[at] !== kSlash) return;
      if (end - at < 2) this.fill();
      const second = this.at + 1 < this.end ? this.bytes[this.at + 1] : 0;
      if (second === kSlash) this.skipLine();
      else if (second === kStar) this.skipComment();
      else return;
    }
  }

  private skipLine(): void {
    for (;;) {
      const newline = this.bytes.subarray(this.at, this.end).indexOf(kNewline);
      if (newline >= 0) {
        this.at += newline;
        return;
      }
      this.at = this.end;
      if (!this.fill()) return;
    }
  }

  private skipComment(): void {
    const { line } = this;
    this.at += 2;
    for (let star = false; ; this.at++) {
      if (this.at === this.end && !this.fill()) {
        this.line = line;
        throw this.error("a comment that begins here does not end");
      }
      const c = this.bytes[this.at];
      if (star && c === kSlash) break;
      if (c === kNewline) this.line++;
      star = c === kStar;
    }
    this.at++;
  }

  /** Brings more bytes behind those that are left. Returns whether there are any at `at`. */
  private fill(): boolean {
    if (!this.over) {
      this.bytes.copyWithin(0, this.at, this.end);
      this.end -= this.at;
      this.at = 0;
      while (!this.over && this.end <= kLongestToken) {
        let read: number;
        try {
          read = readSync(this.descriptor as number, this.bytes, this.end, this.bytes.length - this.end, null);
        } catch (error) {
          throw this.unreadable(error);
        }
        this.end += read;
        this.over = read === 0;
      }
    }
    return this.at < this.end;
  }

  private unreadable(error: unknown): UnreadableFile {
    return new UnreadableFile(`${this.file}: ${fileReason(error) ?? (error as Error).message}`, {
      field: "file",
      cause: error,
    });
  }
}
