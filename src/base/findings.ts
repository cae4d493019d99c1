// Problems and warnings that checks find.
import type { Problem } from "./error.js";
import { nearest } from "./nearest.js";

/** Path of a field, given from the section that it is in. */
export type Where = (...field: string[]) => Problem["path"];

const keyOf = (path: Problem["path"], message: string) => `${path.join(".")} ${message}`;

/** Findings so far; one per field and message, although many devices may share a section. */
export class Findings {
  private readonly found = new Map<string, Problem>();
  private readonly warned = new Set<string>();
  /** Keys of `found` for problems of names alone. */
  private readonly named = new Set<string>();

  constructor(private readonly whole?: Findings) {}

  /** Returns findings of a part; all that it gets are also among these. */
  part(): Findings {
    return new Findings(this);
  }

  get problems(): Problem[] {
    return [...this.found.values()];
  }
  /** Problems that names have with each other, whatever other values are. */
  get problemsOfNames(): Problem[] {
    return [...this.named].flatMap((key) => this.found.get(key) ?? []);
  }
  get warnings(): string[] {
    return [...this.warned];
  }

  problem(path: Problem["path"], message: string, hint?: string): void {
    const problem: Problem = hint === undefined ? { path, message } : { path, message, hint };
    this.found.set(keyOf(path, message), problem);
    this.whole?.problem(path, message, hint);
  }
  /** `unknown host xy`, with the nearest known name as the hint. */
  unknown(path: Problem["path"], kind: string, name: string, known: readonly string[]): void {
    const meant = nearest(name, known);
    const some = known.length > 12 ? `${known.slice(0, 12).join(", ")}, ...` : known.join(", ");
    this.ofNames(path, `unknown ${kind} ${name}`, meant ? `did you mean ${meant}?` : `known: ${some}`);
  }
  /** Adds a problem of names alone. */
  ofNames(path: Problem["path"], message: string, hint?: string): void {
    this.problem(path, message, hint);
    for (const all of [this, this.whole]) all?.named.add(keyOf(path, message));
  }
  warn(message: string): void {
    this.warned.add(message);
    this.whole?.warn(message);
  }
}
