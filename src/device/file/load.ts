// Daemon files: read, validate, fill in defaults. switch.yaml has `ports`, nic.yaml has an `interface`.
import { basename, extname } from "node:path";
import type { z } from "zod";
import { ScenarioError, WeirError } from "../../base/error.js";
import { problemsOf } from "../../base/fields.js";
import { readScenarioFile, readScenarioText, type ScenarioFile } from "../../base/yaml.js";
import type { InspectInterface } from "../../host/interface.js";
import { Findings } from "../../scenario/check_device.js";
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
  return switchFrom(readScenarioFile(file, options.set ?? [], "switch", options.text), file, options);
}

/** The same for a NIC. */
export function loadNicDaemon(file: string, options: LoadOptions = {}): LoadedDaemon<NicDaemonConfig> {
  return nicFrom(readScenarioFile(file, options.set ?? [], "nic", options.text), file, options);
}

/** The same from YAML text. */
export function parseSwitchDaemon(text: string, source: string, options: LoadOptions = {}) {
  return switchFrom(readScenarioText(text, source, options.set ?? [], "switch"), source, options);
}

export function parseNicDaemon(text: string, source: string, options: LoadOptions = {}) {
  return nicFrom(readScenarioText(text, source, options.set ?? [], "nic"), source, options);
}

/** The same from what a program says instead of a file. */
export function nicFromData(data: object, source: string, options: LoadOptions = {}): LoadedDaemon<NicDaemonConfig> {
  return nicFrom({ data, warnings: [], locate: (problem) => problem }, source, options);
}

function switchFrom(file: ScenarioFile, source: string, { inspect, cpus = Number.POSITIVE_INFINITY }: LoadOptions) {
  const input = parsed(switchDaemonSchema, file, source, "switch");
  const found = new Findings();
  const config = resolveSwitchDaemon(input, nameOf(source), inspectorFor(inspect, found));
  checkSwitchDaemon(config, input, found);
  for (const [i, worker] of config.workers.entries()) checkCpu(worker, ["workers", i, "cpu"], cpus, found);
  return finished(config, file, source, "switch", found);
}

function nicFrom(file: ScenarioFile, source: string, { inspect, cpus = Number.POSITIVE_INFINITY }: LoadOptions) {
  const input = parsed(nicDaemonSchema, file, source, "nic");
  const found = new Findings();
  const config = resolveNicDaemon(input, nameOf(source), inspectorFor(inspect, found), found);
  checkNicDaemon(config, input, found);
  checkCpu(config.worker, ["worker", "cpu"], cpus, found);
  return finished(config, file, source, "nic", found);
}

function parsed<T extends z.ZodType>(schema: T, file: ScenarioFile, source: string, kind: FileKind): z.output<T> {
  const result = schema.safeParse(file.data);
  if (result.success) return result.data;
  throw rejection(kind, source, file.data, problemsOf(result.error, file.data).map(file.locate));
}

function finished<Config>(
  config: Config,
  file: ScenarioFile,
  source: string,
  kind: string,
  found: Findings,
): LoadedDaemon<Config> {
  const problems = [...found.problems.values()];
  if (problems.length > 0) throw new ScenarioError(source, problems.map(file.locate), kind);
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
