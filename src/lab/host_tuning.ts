/** What a lab asks of the host's scheduler for the whole process; workers see to their own threads. */
import { readFileSync, writeFileSync } from "node:fs";

/** Of the process's scheduling group, -20 (most CPU) to 19: ahead of every other session, behind real-time threads only. */
const kAutogroupNice = -20;
const kAutogroup = "/proc/self/autogroup";

export interface HostTuning {
  /** What the host refused, for the result's fidelity section. */
  refused: string[];
  /** Puts back what was changed: the group is the session's, which may be the user's shell. Never throws. */
  restore(): void;
}

/**
 * Raises the nice value of this process's autogroup. Without this, all threads of a session share one CPU weight with every
 * other session, whatever their own nice values are. Hosts without autogroups need nothing, which is no refusal.
 */
export function tuneHost(file = kAutogroup, write: (file: string, text: string) => void = writeFileSync): HostTuning {
  const before = autogroupNice(file);
  if (before === undefined || before <= kAutogroupNice) return { refused: [], restore: () => {} };
  try {
    write(file, String(kAutogroupNice));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    return { refused: [`autogroup nice ${kAutogroupNice}: ${code}`], restore: () => {} };
  }
  return {
    refused: [],
    restore: () => {
      try {
        write(file, String(before));
      } catch {
        // The group keeps its weight; nothing that the user could do about it.
      }
    },
  };
}

/** "/autogroup-11 nice 0". */
function autogroupNice(file: string): number | undefined {
  try {
    const nice = /nice (-?\d+)/.exec(readFileSync(file, "utf8"))?.[1];
    return nice === undefined ? undefined : Number(nice);
  } catch {
    return undefined;
  }
}
