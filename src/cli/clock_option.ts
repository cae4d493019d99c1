/** `--on` of verbs that run on several clocks. */
import { UsageError } from "./context.js";

/** Parses "sim,wire", or "all", into the order in which they are named. @param all The clocks of "all". */
export const clockList =
  <T extends string>(known: readonly T[], all: readonly T[] = known) =>
  (text: string): T[] => {
    if (text === "all") return [...all];
    const wanted = text.split(",").map((part) => {
      const found = known.find((clock) => clock === part.trim());
      if (found !== undefined) return found;
      throw new UsageError(`--on ${text}: no clock ${part}`, { hint: `use ${known.join(", ")} or all` });
    });
    return [...new Set(wanted)];
  };
