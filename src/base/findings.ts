// What checks find wrong or questionable.
import type { Problem } from "./error.js";
import { nearest } from "./nearest.js";

/** Path of a field, given from the section that it is in. */
export type Where = (...field: string[]) => Problem["path"];

/** What has been found so far; one finding per field and message, although many devices may share a section. */
export class Findings {
  private readonly found = new Map<string, Problem>();
  private readonly warned = new Set<string>();

  constructor(private readonly whole?: Findings) {}

  /** Findings that are also among these. */
  part(): Findings {
    return new Findings(this);
  }

  get problems(): Problem[] {
    return [...this.found.values()];
  }
  get warnings(): string[] {
    return [...this.warned];
  }

  problem(path: Problem["path"], message: string, hint?: string): void {
    const problem: Problem = hint === undefined ? { path, message } : { path, message, hint };
    this.found.set(`${path.join(".")} ${message}`, problem);
    this.whole?.problem(path, message, hint);
  }
  /** `unknown host xy`, with the nearest known name as the hint. */
  unknown(path: Problem["path"], kind: string, name: string, known: readonly string[]): void {
    const meant = nearest(name, known);
    const some = known.length > 12 ? `${known.slice(0, 12).join(", ")}, ...` : known.join(", ");
    this.problem(path, `unknown ${kind} ${name}`, meant ? `did you mean ${meant}?` : `known: ${some}`);
  }
  warn(message: string): void {
    this.warned.add(message);
    this.whole?.warn(message);
  }
}
