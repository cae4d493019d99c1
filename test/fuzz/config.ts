/**
 * Files that users write: scenarios with the CSV files that they name, sweeps, switch.yaml and nic.yaml, and `--set`. Changed
 * examples either are sound, and then can be composed, or are refused in the words of the product; and neither takes long.
 * Libraries print nothing.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parse, stringify } from "yaml";
import { ScenarioError, WeirError } from "../../src/base/error.js";
import { composeSimulation } from "../../src/clocks/sim/compose.js";
import { composeNicWorker, composeSwitchWorkers } from "../../src/device/compose.js";
import { loadNicDaemon, loadSwitchDaemon } from "../../src/device/file/load.js";
import { checkPlan } from "../../src/models/buffers/index.js";
import { modelScenario } from "../../src/models/dcqcn/index.js";
import { Fabric } from "../../src/scenario/fabric.js";
import type { FileKind } from "../../src/scenario/file_kind.js";
import { parseScenarioText } from "../../src/scenario/scenario.js";
import type { Scenario } from "../../src/scenario/types.js";
import { planSweep } from "../../src/study/sweep/plan_sweep.js";
import { loadSweep } from "../../src/study/sweep/spec.js";
import { examples } from "../fixtures/examples.js";
import type { OpenTarget } from "./engine.js";
import { Finding, type Input, requireThat } from "./input.js";
import { changedDocument, changedText, keysOf, kindOf } from "./mutate.js";

interface Document {
  kind: FileKind;
  file: string;
  text: string;
  data: unknown;
}

const kKinds = ["scenario", "sweep", "switch", "nic"] as const;
/** Most characters of a text: mappings with many thousands of keys are slow, and known to be. */
const kLongestText = 200_000;
/** Most flows of a scenario that is composed, and most points of a sweep that is planned: the rest is the same many times. */
const kMostFlows = 100;
const kMostPoints = 6;
const kDistribution = "size_bytes,cdf\n1000,0\n2000,0.5\n30000,1\n";
const kTables = ["replay-flows.csv", "sizes.csv"];
const kInterface = { mtu: 1500, mac: 0x02_00_00_00_00_01 };

export const open: OpenTarget = (folder) => {
  const documents = kKinds.flatMap((kind) =>
    examples(kind).map((file): Document => {
      const text = readFileSync(file, "utf8");
      return { kind, file, text, data: parse(text) };
    }),
  );
  const keys = keysOf(documents.map(({ data }) => data));
  const flows = readFileSync("examples/replay-flows.csv", "utf8");
  for (const { file, text } of documents) writeFileSync(join(folder, basename(file)), text);
  const { emitWarning } = process;
  let printed: string | undefined;
  process.emitWarning = (warning: string | Error) => {
    printed = String(warning);
  };
  return {
    longest: 512,
    run(input) {
      const document = input.pick(documents);
      const text = textOf(input, document, keys);
      const set = overrides(input, keys);
      const tables = [flows, kDistribution].map((sound) => (input.once(2) ? changedText(input, sound) : sound));
      if (text === undefined || text.length > kLongestText) return [];
      if (text.includes("csv"))
        for (const [i, name] of kTables.entries()) writeFileSync(join(folder, name), tables[i] as string);
      const given = `${document.file}, with ${JSON.stringify(set)}:\n${text}\n---\n${tables.join("---\n")}`;
      printed = undefined;
      const seen = read(document, text, set, folder, given);
      requireThat(printed === undefined, `a library prints: ${printed}`, given);
      return seen;
    },
    close() {
      process.emitWarning = emitWarning;
    },
  };
};

/** Returns its warnings, or why it is refused. */
function read({ kind, file }: Document, text: string, set: readonly string[], folder: string, given: string): string[] {
  try {
    return [kind, ...kReaders[kind](text, file, set, folder).map(kindOf)];
  } catch (error) {
    if (error instanceof WeirError) return refusals(error);
    throw new Finding(`${kind}: ${(error as Error).message}`, given, { cause: error });
  }
}

/** Text as a user might write it; undefined: it cannot be written as YAML. */
function textOf(input: Input, { text, data }: Document, keys: readonly string[]): string | undefined {
  const style = input.below(8);
  if (style === 0) return changedText(input, text);
  const changed = changedDocument(input, data, keys);
  try {
    const written = stringify(changed, { aliasDuplicateObjects: style === 1 });
    return style === 2 ? changedText(input, written) : written;
  } catch {
    return undefined;
  }
}

/** Draws assignments of `--set`. */
function overrides(input: Input, keys: readonly string[]): string[] {
  if (!input.once(4)) return [];
  return Array.from({ length: 1 + input.below(2) }, () => {
    const path = Array.from({ length: 1 + input.below(3) }, () =>
      input.once(4) ? `${input.below(5)}` : input.pick(keys),
    );
    return changedText(
      input,
      `${path.join(".")}=${input.pick(["1", "5KB", "[1, 2]", "{ a: 1 }", "x", "10Gbps", "50%"])}`,
    );
  });
}

/** Each reads a text, composes its native configuration, and returns the warnings. Throws WeirError if the text is not sound. */
const kReaders: Record<FileKind, (text: string, file: string, set: readonly string[], folder: string) => string[]> = {
  scenario(text, file, set, directory) {
    const { scenario, warnings } = parseScenarioText(text, file, { set, directory });
    requireThat(!hasNaN(scenario), "a number of a sound scenario is none", text);
    if (scenario.flows.length <= kMostFlows) compose(scenario);
    return warnings;
  },
  sweep(text, _file, _set, folder) {
    const path = join(folder, "sweep.yaml");
    writeFileSync(path, text);
    const spec = loadSweep(path);
    return spec.combinations.length > kMostPoints ? [] : planSweep(spec, path, "").warnings;
  },
  switch(text, file, set) {
    const { config, warnings } = loadSwitchDaemon(file, { set, inspect: () => kInterface, text });
    composeSwitchWorkers(config, []);
    return warnings;
  },
  nic(text, file, set) {
    const { config, warnings } = loadNicDaemon(file, { set, inspect: () => kInterface, text });
    composeNicWorker(config);
    return warnings;
  },
};

/** Composes everything that a sound scenario is made into. */
function compose(scenario: Scenario): void {
  composeSimulation(scenario, new Fabric(scenario), []);
  checkPlan(scenario);
  modelScenario(scenario);
}

function hasNaN(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.values(value).some(hasNaN);
  return Number.isNaN(value);
}

function refusals(error: WeirError): string[] {
  if (!(error instanceof ScenarioError)) return [kindOf(error.message)];
  return error.problems.map(({ message }) => kindOf(message));
}
