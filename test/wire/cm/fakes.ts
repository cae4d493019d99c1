/** Virtual time, and links of frames in it. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { readMadFrame } from "../../../src/wire/cm/frame.js";
import type { Clock, FrameLink } from "../../../src/wire/cm/link.js";
import { type Message, readMessage } from "../../../src/wire/cm/messages.js";

/** Promises settle between two timers. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

export class FakeClock implements Clock {
  #now = 0;
  /** Timers in the order in which they were set. */
  readonly #timers = new Set<{ at: number; action: () => void }>();

  now(): number {
    return this.#now;
  }

  after(ms: number, action: () => void): () => void {
    const timer = { at: this.#now + ms, action };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  get pending(): number {
    return this.#timers.size;
  }

  /** Lets `ms` pass. */
  async run(ms = 0): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (;;) {
      let next: { at: number; action: () => void } | undefined;
      for (const timer of this.#timers) if (timer.at < (next?.at ?? Number.POSITIVE_INFINITY)) next = timer;
      if (next === undefined || next.at > end) break;
      this.#now = next.at;
      this.#timers.delete(next);
      next.action();
      await settle();
    }
    this.#now = end;
  }
}

/** A link whose other end is the test. */
export class FakeLink implements FrameLink {
  readonly sent: Buffer[] = [];
  readonly #listeners = new Set<(frame: Buffer) => void>();
  /** Called for frames that are sent. */
  onSend: (frame: Buffer) => void = () => {};
  isFull = false;

  constructor(readonly mac: number) {}

  send(frame: Uint8Array): boolean {
    if (this.isFull) return false;
    this.sent.push(Buffer.from(frame));
    this.onSend(Buffer.from(frame));
    return true;
  }

  onFrame(listener: (frame: Buffer) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  receive(frame: Buffer): void {
    for (const listener of this.#listeners) listener(frame);
  }

  /** Returns the frames that were sent since the last call. */
  take(): Buffer[] {
    return this.sent.splice(0);
  }

  takeMessages(): Message[] {
    return this.take().flatMap((frame) => messageIn(frame) ?? []);
  }
}

/** Joins two links, 1 ms apart. `drops` sees each frame of either direction. */
export function join(clock: Clock, a: FakeLink, b: FakeLink, drops: (frame: Buffer) => boolean = () => false): void {
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    from.onSend = (frame) => void (drops(frame) || clock.after(1, () => to.receive(frame)));
  }
}

export function messageIn(frame: Buffer): Message | undefined {
  const mad = readMadFrame(frame)?.mad;
  return mad === undefined ? undefined : readMessage(mad);
}

/** Every frame of a capture in test/fixtures/pcaps. */
export function capturedFrames(name: string): Buffer[] {
  const file = readFileSync(fileURLToPath(new URL(`../../fixtures/pcaps/${name}.pcap`, import.meta.url)));
  const frames: Buffer[] = [];
  for (let at = 24; at < file.length; ) {
    const length = file.readUInt32LE(at + 8);
    frames.push(file.subarray(at + 16, at + 16 + length));
    at += 16 + length;
  }
  return frames;
}

/** Captured frames that carry a message of communication management. */
export function capturedMads(name: string): Buffer[] {
  return capturedFrames(name).filter((frame) => readMadFrame(frame) !== undefined);
}
