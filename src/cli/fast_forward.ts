/** `--fast-forward` of verbs that simulate. */
import { Option } from "commander";
import { parseFraction } from "../base/units.js";
import { percent } from "../result/report/format.js";
import { UsageError } from "./context.js";
import { parsed } from "./quantity.js";

export interface FastForwardChoice {
  fastForward?: number | "off";
}

/** Bound of --fast-forward auto, and the widest. */
const kAuto = 0.03;
const kWidest = 0.5;

export function fastForwardOption(what: string): Option {
  return new Option("--fast-forward <auto|off|bound>", `${what} (default: off; auto: ${100 * kAuto}%)`).argParser(read);
}

/** Part by which what is skipped may be off; undefined: nothing is. */
export function boundOf({ fastForward }: FastForwardChoice): number | undefined {
  return fastForward === "off" ? undefined : fastForward;
}

function read(value: string): number | "off" {
  if (value === "off") return value;
  const hint = `auto (${percent(kAuto)}), off, or a part from 0.1% to ${percent(kWidest)}`;
  const bound = value === "auto" ? kAuto : parsed("--fast-forward", value, parseFraction, hint);
  if (bound >= 0.001 && bound <= kWidest) return bound;
  throw new UsageError(`--fast-forward ${value}: out of range`, { hint });
}
