/** What a paper.json was made by and from: with the same key there is no reason to make it again. */
import { createHash } from "node:crypto";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { modulesIn } from "../../src/result/code_version.js";
import { madeNow } from "../../src/result/made.js";
import type { Made } from "../../src/result/made_schema.js";
import { sha256 } from "../../src/scenario/file_references.js";
import type { Clock, Experiment } from "./experiment.js";
import type { References } from "./reference.js";
import { since } from "./run.js";
import type { RunsPlan } from "./runs.js";
import { trialInput } from "./trial.js";

export interface PaperMade extends Made {
  /** Hash of all that the outcome depends on, but for this host. */
  key: string;
  wall_s: number;
}

/** What an outcome depends on besides its runs. */
export interface Origin {
  clocks: readonly Clock[];
  references?: References | undefined;
  /** See codeVersion(). */
  weir: string;
}

/** `plan` has the runs of the experiment, and may have those of others. */
export function keyOf({ id, network }: Experiment, plan: RunsPlan, { clocks, references = {}, weir }: Origin): string {
  const runs = plan.runs
    .filter(({ experiment }) => experiment === id)
    .map(({ clock, trial, alternative, point }) => [clock, trial, alternative, point.id]);
  // Models may solve the scenarios of any trial.
  const trials = clocks.includes("model") ? network?.trials.map((one) => trialInput(one)) : undefined;
  const made = {
    weir,
    figures: figuresVersion(),
    experiment: id,
    clocks,
    runs,
    trials: trials?.map(({ text, set }) => [text, set]),
    references,
  };
  return sha256(JSON.stringify(made)).slice(0, 32);
}

let figures: string | undefined;

/** A hash of the modules that make figures of results, and judge by them. */
function figuresVersion(): string {
  if (figures !== undefined) return figures;
  const hash = createHash("sha256");
  const kind = extname(import.meta.url);
  // All built modules of papers are in one folder.
  const folder = fileURLToPath(new URL(kind === ".ts" ? ".." : ".", import.meta.url));
  for (const [file, text] of modulesIn(folder, kind)) hash.update(`\0${file}\0`).update(text);
  figures = hash.digest("hex");
  return figures;
}

/** Describes an outcome that is done now. `began`: on the clock of performance.now(). */
export function paperMade({ key, weir }: Pick<PaperMade, "key" | "weir">, began: number): PaperMade {
  return { key, ...madeNow(), weir, wall_s: since(began) };
}
