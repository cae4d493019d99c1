/** Facts of how a result was made (which Weir, when, on which machine): all that differs where the same is made again. */
import { z } from "zod";

/** Facts of the machine: a result depends on it besides Weir. */
export type HostFacts = { kernel: string; cpus: number; cpu?: string | undefined; node: string };

export const madeSchema = z
  .looseObject({
    weir: z
      .string()
      .describe(
        "Version of Weir, and behind `+` a hash of the code that ran (without it where the native core was not built): `0.1.0+0a9933349ca7`.",
      ),
    commit: z
      .string()
      .optional()
      .describe(
        "Commit of git that it was built from; `-dirty` behind it: with changes. Absent where it was not built in a checkout, or runs from its sources.",
      ),
    at: z.string().describe("When, UTC, as in ISO 8601."),
    host: z
      .looseObject({
        kernel: z.string().describe("Release of the kernel."),
        cpus: z.int().min(0).describe("Number of CPUs."),
        cpu: z.string().optional().describe("Model of the CPU."),
        node: z.string().describe("Version of Node.js."),
      })
      .describe("`kernel`, number of `cpus`, model of the `cpu`, `node` version of the machine."),
  })
  .describe(
    "By which `weir` (version and hash of its code) and `commit`, `at` which time, on which `host`. **All else is the same** where a simulation or a model is run again by the same Weir, but where `fidelity.varies` says why not. Absent in results of older versions.",
  );

/** Facts that this version writes. */
export type Made = { weir: string; commit?: string | undefined; at: string; host: HostFacts };

/** Identity in one line: "Weir 0.1.0+0a9933349ca7 (commit fa117fc7c9f1), Linux 6.12.3, 2 x AMD EPYC, Node.js v20.17.0". */
export function describeMade({ weir, commit, host }: Pick<Made, "weir" | "commit" | "host">): string {
  const [, hash = "", dirty = ""] = /^([^-]*)(-.*)?$/.exec(commit ?? "") ?? [];
  const from = commit === undefined ? "" : ` (commit ${hash.slice(0, 12)}${dirty})`;
  return `Weir ${weir}${from}, Linux ${host.kernel}, ${host.cpus} x ${host.cpu ?? "unknown CPU"}, Node.js ${host.node}`;
}
