/** What a command takes as a whole process of what was built (`npm run build:js`), beside Node.js alone. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { max, median, min } from "simple-statistics";
import type { BenchOptions, Row } from "../row.js";

export const name = "start";
export const title = "Commands, as whole processes";

const kMain = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const kCommands: Readonly<Record<string, readonly string[]>> = {
  "Node.js alone": ["--eval", ""],
  "weir --version": [kMain, "--version"],
  "weir show --help": [kMain, "show", "--help"],
  "weir run --help": [kMain, "run", "--help"],
  "weir switch --help": [kMain, "switch", "--help"],
  "weir collective allreduce": [kMain, "collective", "allreduce", "--ranks", "8", "--size", "1MB", "--quiet"],
};
/** Of what is the least of many. */
const kTolerance = 0.2;

export async function run(options: BenchOptions): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "weir-bench-"));
  try {
    const wanted = Object.entries(kCommands).filter(([command]) => options.wants(command));
    const times = new Map<string, number[]>(wanted.map(([command]) => [command, []]));
    // In turn: what else the machine does hits all alike. The first round reads files from the disk.
    for (let round = 0; round <= (options.quick ? 5 : 20); round++) {
      for (const [command, args] of wanted) {
        const taken = milliseconds(args, folder);
        if (round > 0) times.get(command)?.push(taken);
      }
    }
    return [...times].map(([command, all]) => ({
      name: command,
      metrics: {
        "least ms": { value: min(all), unit: "ms", better: "less", tolerance: kTolerance },
        "median ms": { value: median(all), unit: "ms", min: min(all), max: max(all) },
      },
    }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function milliseconds(args: readonly string[], cwd: string): number {
  const began = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, { cwd, encoding: "utf8" });
  const taken = performance.now() - began;
  if (status !== 0) throw new Error(`${args.join(" ")}: status ${status}: ${stderr}`);
  return taken;
}
