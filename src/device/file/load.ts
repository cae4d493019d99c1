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
import { checkNicPorts, nicsOf } from "./nic_ports.js";
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
  /** Text of the file, where it was read already: a pipe can be read once. */
  text?: string;
  /** Looks at interfaces; without it they are taken to exist, with an MTU of 1500. */
  inspect?: InspectInterface;
  /** Number of the host's CPUs; without it any may be named. */
  cpus?: number;
}

/** Throws ScenarioError with everything wrong in the file, or WeirError if it cannot be read. */
export function loadSwitchDaemon(file: string, options: LoadOptions = {}): LoadedDaemon<SwitchDaemonConfig> {
  return load("switch", switchDaemonSchema, read("switch", file, options), file, (input, found) => {
    const config = resolveSwitchDaemon(input, nameOf(file), inspectorFor(options.inspect, found));
    checkSwitchDaemon(config, input, found);
    for (const [i, worker] of config.workers.entries()) checkCpu(worker, ["workers", i, "cpu"], options.cpus, found);
    return config;
  });
}

export interface LoadedNics extends LoadedDaemon<NicDaemonConfig> {
  /** Name in the file. */
  name: string;
  /** NICs of further ports. */
  others: NicDaemonConfig[];
}

/** Loads the file of a NIC, or of one for each port. */
export function loadNicDaemon(file: string, options: LoadOptions = {}): LoadedNics {
  return loadNic(read("nic", file, options), file, options);
}

/** Makes the same from the data of a program instead of a file. */
export function nicFromData(
  data: object,
  source: string,
  options: Pick<LoadOptions, "inspect" | "cpus"> = {},
): LoadedNics {
  return loadNic({ data, warnings: [], locate: (problem) => problem }, source, options);
}

function loadNic(file: ScenarioFile, source: string, options: LoadOptions): LoadedNics {
  const { config, warnings } = load("nic", nicDaemonSchema, file, source, (input, found) => {
    const name = input.name ?? nameOf(source);
    const nics = nicsOf(input, name, found).map(({ input: nic, found: part }) => {
      const made = resolveNicDaemon(nic, name, dirname(source), inspectorFor(options.inspect, part), part);
      checkNicDaemon(made, nic, part);
      checkCpu(made.worker, ["worker", "cpu"], options.cpus, part);
      return made;
    });
    checkNicPorts(nics, input, found);
    return { name, nics };
  });
  const [first, ...others] = config.nics as [NicDaemonConfig, ...NicDaemonConfig[]];
  return { name: config.name, config: first, others, warnings };
}

function read(kind: FileKind, file: string, { set = [], text }: LoadOptions): ScenarioFile {
  return readScenarioFile(file, set, kind, text);
}

function load<Schema extends z.ZodType, Config>(
  kind: FileKind,
  schema: Schema,
  file: ScenarioFile,
  source: string,
  made: (input: z.output<Schema>, found: Findings) => Config,
): LoadedDaemon<Config> {
  const parsed = schema.safeParse(file.data);
  if (!parsed.success) {
    throw rejection(kind, source, file.data, problemsOf(parsed.error, file.data).map(file.locate));
  }
  const found = new Findings();
  const config = made(parsed.data, found);
  if (found.problems.length > 0) throw new ScenarioError(source, found.problems.map(file.locate), kind);
  return { config, warnings: [...file.warnings, ...found.warnings] };
}

const nameOf = (file: string) => basename(file, extname(file)).replace(/[^A-Za-z0-9_-]/g, "-");

/** Reports an interface that cannot be inspected as a problem, and lets the rest be checked all the same. */
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
