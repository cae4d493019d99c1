/** `--fast-forward` and `--verify` of verbs that simulate. */
import { type Command, Option } from "commander";
import { parseFraction } from "../base/units.js";
import type { SimOptions } from "../clocks/sim/types.js";
import { percent } from "../result/report/format.js";
import { UsageError } from "./context.js";
import { parsed, quantity } from "./quantity.js";

export interface FastForwardChoice {
  fastForward?: number | "off";
  verify?: number;
}

/** Bound of --fast-forward auto, and the widest. */
const kAuto = 0.03;
const kWidest = 0.5;

/** Least and most of --verify. */
const kShares = { least: 0.001, most: 0.5 };

/** Adds both: `what` is skipped, and `verified` of it by default. */
export function addFastForward(command: Command, what: string, verified: string): Command {
  return command
    .addOption(
      new Option("--fast-forward <auto|off|bound>", `${what} (default: off; auto: ${100 * kAuto}%)`).argParser(read),
    )
    .addOption(
      new Option(
        "--verify <share>",
        `with --fast-forward: how much of that is simulated as well, to measure the error (default: ${verified})`,
      ).argParser(quantity("--verify", parseFraction, percent, kShares)),
    );
}

/** What a run is told of both. @throws UsageError where nothing is skipped of which a share could be verified */
export function fastForwardOf(choice: FastForwardChoice): Pick<SimOptions, "fastForward" | "verify"> {
  const fastForward = boundOf(choice);
  if (choice.verify !== undefined && fastForward === undefined) {
    throw new UsageError("--verify: not without --fast-forward", {
      hint: "it is a share of what that skips: add --fast-forward auto",
    });
  }
  return { fastForward, verify: choice.verify };
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
