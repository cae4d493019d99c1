/**
 * The past of the run under way, for those who come later or missed a part. Samples are kept as the JSON that is sent: their
 * size is known, and handing them out costs next to nothing. Where single frames of ten minutes would take more than there is room
 * for, several frames make one sample.
 */
import type { Frame, Sample } from "./protocol.js";
import { kMostSamples, merged, sampleOf } from "./sample.js";

/** Most characters of all samples together. */
const kMostText = 8e6;
/** Time span that should be kept, wall ms. */
const kSpanMs = 600_000;
/** Most characters of one part: few enough for a connection to hold, and to be made in a moment. */
const kPartText = 256 * 1024;

/** Point up to which somebody knows what happened. */
export interface Mark {
  run: number;
  t_ns: number;
}

interface Kept {
  t_ns: number;
  text: string;
}

export class History {
  private run: number | undefined;
  private kept: Kept[] = [];
  private size = 0;
  /** Sample that may take more frames; it began at `openedAt`. */
  private open: Sample | undefined;
  private openedAt = 0;

  /** @param now Clock in wall ms. */
  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Mark of the latest frame; undefined before the first. */
  get mark(): Mark | undefined {
    const t_ns = (this.open ?? this.kept.at(-1))?.t_ns;
    return this.run === undefined || t_ns === undefined ? undefined : { run: this.run, t_ns };
  }

  /** Frames of another run begin another history. */
  take(frame: Frame): void {
    const now = this.now();
    if (frame.run !== this.run) {
      this.run = frame.run;
      this.kept = [];
      this.size = 0;
      this.open = undefined;
      this.openedAt = Number.NEGATIVE_INFINITY;
    }
    const sample = sampleOf(frame);
    this.open = this.open === undefined ? sample : merged(this.open, sample);
    const long = (kSpanMs * (this.kept.at(-1)?.text.length ?? 0)) / kMostText;
    if (now - this.openedAt < long) return;
    this.openedAt = now;
    this.#keep(this.open);
    this.open = undefined;
  }

  /**
   * Returns the samples after `mark`, oldest first, as a History in JSON with its own mark; no more than fits one event. `newest`: keeps
   * the end of samples that do not all fit, instead of the beginning. Undefined: there are none.
   */
  part(mark: Mark | undefined, newest: boolean): { text: string; mark: Mark } | undefined {
    const { run } = this;
    const end = this.mark;
    if (run === undefined || end === undefined) return undefined;
    const known = mark?.run === run ? mark.t_ns : Number.NEGATIVE_INFINITY;
    const some = this.kept.slice(this.kept.findLastIndex(({ t_ns }) => t_ns <= known) + 1);
    if (this.open !== undefined && this.open.t_ns > known) some.push(kept(this.open));
    const fitting = newest ? fits(some.reverse()).reverse() : fits(some);
    const last = fitting.at(-1);
    if (last === undefined) return undefined;
    const text = `{"run":${run},"samples":[${fitting.map((one) => one.text).join()}]}`;
    return { text, mark: { run, t_ns: last.t_ns } };
  }

  #keep(sample: Sample): void {
    const one = kept(sample);
    this.kept.push(one);
    this.size += one.text.length;
    while (this.size > kMostText || this.kept.length > kMostSamples) this.size -= this.kept.shift()?.text.length ?? 0;
  }
}

function kept(sample: Sample): Kept {
  return { t_ns: sample.t_ns, text: JSON.stringify(sample) };
}

/** Returns as many samples as one part may have, from the first on; at least one. */
function fits(all: readonly Kept[]): Kept[] {
  let size = 0;
  const end = all.findIndex(({ text }, i) => {
    size += text.length;
    return i > 0 && size > kPartText;
  });
  return end < 0 ? [...all] : all.slice(0, end);
}
