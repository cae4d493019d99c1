// Prints the SHA-256 of everything that examples and scenarios of papers become: composed configurations of labs at several
// scales, of simulations and of daemons, and results of short runs in virtual time and by the fluid model. A change that moves
// code about prints the same lines before and after:
//   npx tsx scripts/fingerprint.ts [--out FOLDER] > before.txt
// With --out, the summed texts are written to files of that folder, for diff.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { WeirError } from "../src/base/error.js";
import { composeLab, labNetwork } from "../src/clocks/lab/compose.js";
import { runModel } from "../src/clocks/model.js";
import { composeSimulation } from "../src/clocks/sim/compose.js";
import { runSimulation } from "../src/clocks/sim/run.js";
import { composeNicWorker, composeSwitchWorkers } from "../src/device/compose.js";
import { loadNicDaemon, loadSwitchDaemon } from "../src/device/file/load.js";
import { Fabric } from "../src/scenario/fabric.js";
import { loadScenario } from "../src/scenario/scenario.js";
import type { Scenario } from "../src/scenario/types.js";

const kFolders = ["examples", "papers"];
const kScales = [1, 40, 400];
/** Virtual time after the warm-up for which scenarios are run, ns. */
const kRun = 2e6;

const { values } = parseArgs({ options: { out: { type: "string" } } });
if (values.out !== undefined) mkdirSync(values.out, { recursive: true });

const files = kFolders
  .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: "utf8" }).map((file) => join(folder, file)))
  .filter((file) => file.endsWith(".yaml"))
  .sort();
for (const file of files) {
  const scenario = loaded(() => loadScenario(file).scenario);
  const found = scenario === undefined ? ofDaemon(file) : await ofScenario(scenario);
  if (found.size === 0) console.log(`${"-".repeat(16)}  ${file}: nothing of these`);
  for (const [what, value] of found) tell(`${file} ${what}`, value);
}

/** Loads a file, if it is one of the kind that is asked for. */
function loaded<T>(load: () => T): T | undefined {
  try {
    return load();
  } catch (error) {
    if (error instanceof WeirError) return undefined;
    throw error;
  }
}

function ofDaemon(file: string): Map<string, unknown> {
  const found = new Map<string, unknown>();
  const ofSwitch = loaded(() => loadSwitchDaemon(file).config);
  if (ofSwitch !== undefined) found.set("switch", sorted(composeSwitchWorkers(ofSwitch, [])));
  const nics = loaded(() => loadNicDaemon(file));
  if (nics !== undefined)
    found.set(
      "nics",
      [nics.config, ...nics.others].map((nic) => sorted(composeNicWorker(nic))),
    );
  return found;
}

async function ofScenario(scenario: Scenario): Promise<Map<string, unknown>> {
  const found = new Map<string, unknown>();
  const end = (link: number, node: string) => ({ interface: `${node}-${link}`, namespaceFd: link });
  const cpus = { switches: 0, nics: 1 };
  for (const scale of kScales) {
    for (const inhabited of [false, true]) {
      const name = `lab ${scale}${inhabited ? " inhabited" : ""}`;
      found.set(name, sorted(composeLab(scenario, { scale, end, cpus, inhabited })));
    }
  }
  found.set("lab network", sorted([labNetwork(scenario), labNetwork(scenario, true)]));
  found.set("sim", sorted(composeSimulation(scenario, new Fabric(scenario), [])));
  const signal = new AbortController().signal;
  const until = Math.min(scenario.duration, scenario.warmup + kRun);
  for (const [what, run] of [
    ["sim result", () => runSimulation(scenario, { signal, until })],
    ["model result", () => runModel(scenario, { signal })],
  ] as const) {
    try {
      const { result, series } = await run();
      found.set(what, { result, series });
    } catch (error) {
      if (!(error instanceof WeirError)) throw error;
      found.set(what, error.message);
    }
  }
  return found;
}

/** Puts fields into the order of their names, and makes lists of columns: neither means anything. */
function sorted(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) return [...(value as unknown as Iterable<unknown>)];
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, one]) => [key, sorted(one)]));
}

function tell(what: string, value: unknown): void {
  const text = JSON.stringify(value, (_, one) => (typeof one === "bigint" ? `${one}` : one), 1);
  console.log(
    `${createHash("sha256").update(text.replaceAll(process.cwd(), ".")).digest("hex").slice(0, 16)}  ${what}`,
  );
  if (values.out !== undefined) writeFileSync(join(values.out, `${what.replaceAll(/[/ ]/g, "_")}.json`), text);
}
