/** `--on` of verbs that run on several clocks. */
import { UsageError } from "./context.js";

/** "sim,wire", or "all", in the order that they are named. */
export const clockList =
  <T extends string>(known: readonly T[]) =>
  (text: string): T[] => {
    if (text === "all") return [...known];
    const wanted = text.split(",").map((part) => {
      const found = known.find((clock) => clock === part.trim());
      if (found !== undefined) return found;
      throw new UsageError(`--on ${text}: no clock ${part}`, { hint: `use ${known.join(", ")} or all` });
    });
    return [...new Set(wanted)];
  };
