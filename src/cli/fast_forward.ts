/** `--fast-forward` and `--verify` of verbs that simulate. */
import { type Command, Option } from "commander";
import { parseFraction } from "../base/units.js";
import { kAutoBound, kBounds, parseBound } from "../clocks/fast_forward_bound.js";
import type { SimOptions } from "../clocks/sim/types.js";
import { percent } from "../result/report/format.js";
import { UsageError } from "./context.js";
import { parsed, quantity } from "./quantity.js";

export interface FastForwardChoice {
  fastForward?: number | "off";
  verify?: number;
}

/** Least and most of --verify. */
const kShares = { least: 0.001, most: 0.5 };

/** @param what Things that are skipped. */
export const fastForwardOption = (what: string): Option =>
  new Option("--fast-forward <auto|off|bound>", `${what} (default: off; auto: ${100 * kAutoBound}%)`).argParser(read);

/** Adds both: `what` is skipped, and `verified` of it by default. */
export function addFastForward(command: Command, what: string, verified: string): Command {
  return command
    .addOption(fastForwardOption(what))
    .addOption(
      new Option(
        "--verify <share>",
        `with --fast-forward: how much of that is simulated as well, to measure the error (default: ${verified})`,
      ).argParser(quantity("--verify", parseFraction, percent, kShares)),
    );
}

/** What a run is told of both. @throws UsageError where nothing is skipped of which a share could be verified */
export function fastForwardOf(choice: FastForwardChoice): Pick<SimOptions, "fastForward" | "verify"> {
  const { verify } = choice;
  const fastForward = boundOf(choice);
  if (verify !== undefined && fastForward === undefined) {
    throw new UsageError("--verify: not without --fast-forward", {
      hint: "it is a share of what that skips: add --fast-forward auto",
    });
  }
  return { fastForward, verify };
}

/** Part by which what is skipped may be off; undefined: nothing is. */
export function boundOf({ fastForward }: Pick<FastForwardChoice, "fastForward">): number | undefined {
  return fastForward === "off" ? undefined : fastForward;
}

// What a parser returns as undefined, commander takes for an empty text.
function read(value: string): number | "off" {
  if (value === "off") return value;
  const hint = `auto (${percent(kAutoBound)}), off, or a part from ${percent(kBounds.least)} to ${percent(kBounds.most)}`;
  return parsed("--fast-forward", value, parseBound, hint);
}
