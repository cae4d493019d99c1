// Daemon files: read, validate, fill in defaults. switch.yaml has `ports`, nic.yaml has an `interface`.
import { basename, dirname, extname } from "node:path";
import type { z } from "zod";
import { ScenarioError, WeirError } from "../../base/error.js";
import { problemsOf } from "../../base/fields.js";
import { Findings } from "../../base/findings.js";
import { readScenarioFile, type ScenarioFile } from "../../base/yaml.js";
import type { InspectInterface } from "../../host/interface.js";
import { type FileKind, rejection } from "../../scenario/file_kind.js";
import { checkCpu, checkNicDaemon, checkSwitchDaemon } from "./check.js";
import { type Inspector, resolveNicDaemon, resolveSwitchDaemon } from "./resolve.js";
import { nicDaemonSchema, switchDaemonSchema } from "./schema.js";
import type { NicDaemonConfig, SwitchDaemonConfig } from "./types.js";

export type * from "./types.js";

export interface LoadedDaemon<Config> {
  config: Config;
  warnings: string[];
}

interface LoadOptions {
  /** Overrides, each `path.to.field=value`. */
  set?: readonly string[];
  /** Of the file, where it was read already: a pipe can be read once. */
  text?: string;
  /** Without it interfaces are taken to exist, with an MTU of 1500. */
  inspect?: InspectInterface;
  /** How many CPUs the host has; without it any may be named. */
  cpus?: number;
}

/** Throws ScenarioError with everything wrong in the file, or WeirError if it cannot be read. */
export function loadSwitchDaemon(file: string, options: LoadOptions = {}): LoadedDaemon<SwitchDaemonConfig> {
  return load("switch", switchDaemonSchema, read("switch", file, options), file, options, (input, inspect, found) => {
    const config = resolveSwitchDaemon(input, nameOf(file), inspect);
    checkSwitchDaemon(config, input, found);
    for (const [i, worker] of config.workers.entries()) checkCpu(worker, ["workers", i, "cpu"], options.cpus, found);
    return config;
  });
}

/** The same for a NIC. */
export function loadNicDaemon(file: string, options: LoadOptions = {}): LoadedDaemon<NicDaemonConfig> {
  return loadNic(read("nic", file, options), file, options);
}

/** The same from what a program says instead of a file. */
export function nicFromData(
  data: object,
  source: string,
  options: Pick<LoadOptions, "inspect" | "cpus"> = {},
): LoadedDaemon<NicDaemonConfig> {
  return loadNic({ data, warnings: [], locate: (problem) => problem }, source, options);
}

function loadNic(file: ScenarioFile, source: string, options: LoadOptions): LoadedDaemon<NicDaemonConfig> {
  return load("nic", nicDaemonSchema, file, source, options, (input, inspect, found) => {
    const config = resolveNicDaemon(input, nameOf(source), dirname(source), inspect, found);
    checkNicDaemon(config, input, found);
    checkCpu(config.worker, ["worker", "cpu"], options.cpus, found);
    return config;
  });
}

function read(kind: FileKind, file: string, { set = [], text }: LoadOptions): ScenarioFile {
  return readScenarioFile(file, set, kind, text);
}

function load<Schema extends z.ZodType, Config>(
  kind: FileKind,
  schema: Schema,
  file: ScenarioFile,
  source: string,
  { inspect }: LoadOptions,
  made: (input: z.output<Schema>, inspect: Inspector, found: Findings) => Config,
): LoadedDaemon<Config> {
  const parsed = schema.safeParse(file.data);
  if (!parsed.success) {
    throw rejection(kind, source, file.data, problemsOf(parsed.error, file.data).map(file.locate));
  }
  const found = new Findings();
  const config = made(parsed.data, inspectorFor(inspect, found), found);
  if (found.problems.length > 0) throw new ScenarioError(source, found.problems.map(file.locate), kind);
  return { config, warnings: [...file.warnings, ...found.warnings] };
}

const nameOf = (file: string) => basename(file, extname(file)).replace(/[^A-Za-z0-9_-]/g, "-");

/** What cannot be inspected is a problem, and the rest is checked all the same. */
function inspectorFor(inspect: InspectInterface | undefined, found: Findings): Inspector {
  const assumed = { mtu: 1500, mac: 0 };
  return (name, namespace, path) => {
    try {
      return inspect?.(name, namespace) ?? assumed;
    } catch (error) {
      if (!(error instanceof WeirError)) throw error;
      found.problem(path, error.message, error.hint);
      return assumed;
    }
  };
}
