/**
 * The fuzzer of targets in TypeScript. Inputs are bytes, as libFuzzer's are: drawn from a seed, or made of those of a corpus.
 * There is no measure of coverage, but a target tells what it has seen of the product (kinds of answers, messages of errors): an
 * input that shows something new joins the corpus.
 */
import { createHash } from "node:crypto";
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";
import { Finding, Input } from "./input.js";

export interface Target {
  /** Bytes of an input, at most. */
  readonly longest: number;
  /** Gives the product an input, and throws if that did what it must not. Returns features that were seen. */
  run(input: Input): Iterable<string> | Promise<Iterable<string>>;
  /** Idempotent. */
  close?(): void;
}

/** Function by which a module makes its target; `folder` is for its files, and empty. */
export type OpenTarget = (folder: string) => Target | Promise<Target>;

export interface FuzzOptions {
  target: Target;
  seed: number;
  /** Wall time to run. */
  seconds: number;
  /** Most runs; no end if left out. */
  runs?: number;
  /** Folder of inputs to begin with, and to add to. */
  corpus: string;
  /** Holds the input that runs, whatever ends the process. */
  current: string;
  /** Stops between two runs. */
  signal: AbortSignal;
  /** Hears of progress, about once a second. */
  tell: (progress: Progress) => void;
}

export interface Progress {
  runs: number;
  /** Inputs of the corpus, and how many of those are new. */
  corpus: number;
  added: number;
}

export interface Outcome extends Progress {
  failure?: { error: unknown; input: Uint8Array };
}

/** CPU time of one input, s: they take milliseconds. */
const kSlow = 5;
const kTookLong = "it took";
/** Time between two looks at the heap, ms; bytes by which it may grow between the first and any other. */
const kLookMs = 10_000;
const kGrowth = 128 << 20;
const kTellMs = 1000;
/** Changes of an input of the corpus, at most. */
const kMostChanges = 8;

/** Runs until time is up, or an input fails. */
export async function fuzz(options: FuzzOptions): Promise<Outcome> {
  const { target, signal, tell } = options;
  mkdirSync(options.corpus, { recursive: true });
  mkdirSync(dirname(options.current), { recursive: true });
  const known: Uint8Array[] = readdirSync(options.corpus)
    .sort()
    .map((name) => readFileSync(join(options.corpus, name)));
  const draw = new Draw(options.seed, target.longest, known);
  const seen = new Set<string>();
  const begin = performance.now();
  const heap = new HeapWatch();
  const progress: Progress = { runs: 0, corpus: known.length, added: 0 };
  const current = openSync(options.current, "w");
  let told = begin;
  try {
    for (const input of inputs(known, draw)) {
      const now = performance.now();
      if (signal.aborted || now - begin > options.seconds * 1000 || progress.runs === options.runs) break;
      if (now - told > kTellMs) {
        told = now;
        tell(progress);
        // Signals are heard.
        await new Promise((resolve) => setImmediate(resolve));
      }
      ftruncateSync(current);
      writeSync(current, input, 0, input.length, 0);
      progress.runs++;
      // A beginning of an input that shows something new may fail.
      let tried = input;
      let kept: Uint8Array;
      try {
        const added = unseen(await once(target, input), seen);
        heap.look(now);
        for (const feature of added) seen.add(feature);
        if (added.length === 0 || progress.runs <= progress.corpus - progress.added) continue;
        kept = await shortest(input, async (one) => {
          tried = one;
          const shown = new Set(await once(target, one));
          return added.every((feature) => shown.has(feature));
        });
      } catch (error) {
        const failsSo = (one: Uint8Array) =>
          once(target, one).then(
            () => false,
            (other) => messageOf(other) === messageOf(error),
          );
        // An input that takes long does so each time.
        const isSlow = messageOf(error).startsWith(kTookLong);
        return { ...progress, failure: { error, input: isSlow ? tried : await shortest(tried, failsSo) } };
      }
      known.push(kept);
      progress.corpus++;
      progress.added++;
      writeFileSync(join(options.corpus, nameOf(kept)), kept);
    }
    return progress;
  } finally {
    closeSync(current);
  }
}

/** Runs one input; one that takes too long is an error as well. */
export async function once(target: Target, bytes: Uint8Array): Promise<Iterable<string>> {
  const before = process.cpuUsage();
  const features = await target.run(new Input(bytes));
  const { user, system } = process.cpuUsage(before);
  const seconds = (user + system) / 1e6;
  if (seconds > kSlow) throw new Finding(`${kTookLong} ${seconds.toFixed(1)} s of CPU time`, "");
  return features;
}

export function nameOf(input: Uint8Array): string {
  return createHash("sha1").update(input).digest("hex").slice(0, 16);
}

/** Yields the known inputs, then new ones without end. */
function* inputs(known: readonly Uint8Array[], draw: Draw): Iterable<Uint8Array> {
  yield* [...known];
  for (;;) yield draw.next();
}

/** Features of an input that no other showed. */
function unseen(features: Iterable<string>, seen: ReadonlySet<string>): string[] {
  return [...new Set(features)].filter((feature) => !seen.has(feature));
}

/** The shortest beginning of an input that will do, as far as halving finds it. */
async function shortest(input: Uint8Array, willDo: (shorter: Uint8Array) => Promise<boolean>): Promise<Uint8Array> {
  let found = input;
  for (let step = input.length >> 1; step > 0; step >>= 1) {
    while (found.length > step && (await willDo(found.subarray(0, found.length - step)))) {
      found = found.subarray(0, found.length - step);
    }
  }
  return found;
}

/** Message of an error without the numbers in it. */
function messageOf(error: unknown): string {
  return String((error as Error | undefined)?.message ?? error).replace(/\d+/g, "#");
}

/** Inputs from a seed: half of them anew, half by changing one that is known. */
class Draw {
  private readonly generator;

  constructor(
    seed: number,
    private readonly longest: number,
    private readonly known: readonly Uint8Array[],
  ) {
    this.generator = xoroshiro128plus(seed);
  }

  next(): Uint8Array {
    if (this.known.length === 0 || this.below(2) === 0) return this.bytes(this.length());
    let input = this.one();
    for (let changes = 1 + this.below(kMostChanges); changes > 0; changes--) input = this.changed(input);
    return input.subarray(0, this.longest);
  }

  private changed(input: Uint8Array): Uint8Array {
    const at = this.below(input.length + 1);
    const some = this.below(Math.max(2, input.length >> this.below(8)));
    switch (this.below(5)) {
      case 0: {
        const copy = Uint8Array.from(input);
        if (at < copy.length) copy[at] = this.below(256);
        return copy;
      }
      case 1: {
        const copy = Uint8Array.from(input);
        if (at < copy.length) copy[at] = (copy[at] as number) ^ (1 << this.below(8));
        return copy;
      }
      case 2:
        return joined(input.subarray(0, at), this.bytes(1 + this.below(4)), input.subarray(at));
      case 3:
        return joined(input.subarray(0, at), input.subarray(at + some));
      default: {
        const other = this.one();
        const from = this.below(other.length + 1);
        return joined(input.subarray(0, at), other.subarray(from, from + some), input.subarray(at));
      }
    }
  }

  private one(): Uint8Array {
    return this.known[this.below(this.known.length)] as Uint8Array;
  }

  /** Each order of magnitude as likely as the others. */
  private length(): number {
    return Math.min(1 + this.below(2 ** this.below(Math.ceil(Math.log2(this.longest)) + 1)), this.longest);
  }

  private bytes(count: number): Uint8Array {
    const bytes = new Uint8Array(count);
    for (let at = 0; at < count; at++) bytes[at] = this.generator.next();
    return bytes;
  }

  private below(limit: number): number {
    return Math.floor(((this.generator.next() >>> 0) / 2 ** 32) * limit);
  }
}

function joined(...parts: Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

/** Tells whether memory is held that no input needs any more. Works only with gc(). */
class HeapWatch {
  private at = performance.now();
  private first: number | undefined;

  look(now: number): void {
    if (globalThis.gc === undefined || now - this.at < kLookMs) return;
    this.at = now;
    globalThis.gc();
    const { heapUsed } = process.memoryUsage();
    this.first ??= heapUsed;
    if (heapUsed - this.first <= kGrowth) return;
    throw new Finding(`the heap has grown from ${this.first >> 20} to ${heapUsed >> 20} MB over many inputs`, "");
  }
}
