/** `weir validate`: is a file sound, and what does it come to? */

import { formatRate, formatTime } from "../base/units.js";
import { profileText } from "../congestion/algorithms.js";
import { loadNicDaemon, loadSwitchDaemon } from "../device/file/load.js";
import { kindOfFile } from "../scenario/file_kind.js";
import { planSweep } from "../sweep/plan.js";
import { loadSweep } from "../sweep/spec.js";
import {
  type AddVerb,
  asUsage,
  type CliContext,
  collect,
  describeError,
  exitStatusOf,
  kExit,
  load,
  readScenario,
  UsageError,
  warn,
} from "./context.js";

interface Validated {
  file: string;
  scenario: string;
  hosts: number;
  switches: number;
  links: number;
  flows: number;
  duration_ns: number;
  scale: number | "auto";
  profile: string;
  warnings: string[];
}

interface ValidatedDaemon {
  file: string;
  switch?: string;
  nic?: string;
  ports?: number;
  queue_pairs?: number;
  rate_bps?: number;
  profile?: string;
  warnings: string[];
}

interface ValidatedSweep {
  file: string;
  sweep: string;
  points: number;
  warnings: string[];
}

export const addValidate: AddVerb = (parent, context, done) => {
  parent
    .command("validate")
    .description("check scenarios, sweeps, switch.yaml and nic.yaml without running them")
    .argument("<file...>", "files (YAML); their top-level keys tell what they are")
    .option("--json", "one JSON document on stdout when all files are sound")
    .option("--set <path=value>", "override a field, repeatable", collect)
    .addHelpText(
      "after",
      "\nExamples:\n  weir validate examples/*.yaml\n  weir validate examples/incast-4to1.yaml --set scale=80\n",
    )
    .action((files: string[], options: { json?: boolean; set?: string[] }) => {
      const sound: (Validated | ValidatedDaemon | ValidatedSweep)[] = [];
      let status: number = kExit.ok;
      for (const file of files) {
        try {
          sound.push(validate(context, file, options.set ?? []));
        } catch (error) {
          context.stderr.write(describeError(error));
          status = Math.max(status, exitStatusOf(error));
        }
      }
      if (!options.json) for (const one of sound) context.stdout.write(`${summary(one)}\n`);
      else if (status === kExit.ok) context.stdout.write(`${JSON.stringify(sound, undefined, 2)}\n`);
      done(status);
    });
};

function validate(
  context: CliContext,
  file: string,
  set: readonly string[],
): Validated | ValidatedDaemon | ValidatedSweep {
  const text = readScenario(file);
  const kind = kindOfFile(file, text);
  if (kind === "scenario") return describe(file, load(context, file, set, text));
  if (kind === "sweep") return validateSweep(context, file, text, set);
  const loaded = asUsage(() => (kind === "switch" ? loadSwitchDaemon : loadNicDaemon)(file, { set, text }));
  const { config, warnings } = loaded;
  for (const warning of warnings) warn(context, warning);
  if (config.kind === "switch") return { file, switch: config.name, ports: config.ports.length, warnings };
  return {
    file,
    nic: config.name,
    queue_pairs: config.queue_pairs.length,
    rate_bps: config.port.rate,
    profile: profileText(config.congestion),
    warnings,
  };
}

function validateSweep(context: CliContext, file: string, text: string, set: readonly string[]): ValidatedSweep {
  if (set.length > 0) throw new UsageError("--set: not for sweeps", { hint: `give it in the \`set\` of ${file}` });
  // No point is run here, so it does not matter by which code.
  const { plan, warnings } = asUsage(() => planSweep(loadSweep(file, text), file, ""));
  for (const warning of warnings) warn(context, warning);
  return { file, sweep: plan.sweep.name, points: plan.points.length, warnings };
}

function describe(file: string, { scenario, warnings }: ReturnType<typeof load>): Validated {
  return {
    file,
    scenario: scenario.name,
    hosts: scenario.hosts.length,
    switches: scenario.switches.length,
    links: scenario.links.length,
    flows: scenario.flows.length,
    duration_ns: scenario.duration,
    scale: scenario.scale,
    profile: profileText(scenario.congestion),
    warnings,
  };
}

function many(n: number, singular: string, plural = `${singular}s`): string {
  return `${n} ${n === 1 ? singular : plural}`;
}

function summary(one: Validated | ValidatedDaemon | ValidatedSweep): string {
  if ("sweep" in one) return `${one.file}: ok: sweep ${one.sweep}, ${many(one.points, "point")}`;
  if (!("scenario" in one)) return daemonSummary(one);
  return [
    `${one.file}: ok: ${many(one.hosts, "host")}`,
    many(one.switches, "switch", "switches"),
    many(one.links, "link"),
    many(one.flows, "flow"),
    `${formatTime(one.duration_ns)} at scale ${one.scale}`,
    `congestion control ${one.profile}`,
  ].join(", ");
}

function daemonSummary({ file, switch: name, nic, ports, queue_pairs, rate_bps, profile }: ValidatedDaemon): string {
  if (name !== undefined) return `${file}: ok: switch ${name}, ${many(ports ?? 0, "port")}`;
  const rate = formatRate(rate_bps ?? 0);
  return `${file}: ok: nic ${nic}, ${many(queue_pairs ?? 0, "queue pair")}, ${rate}, congestion control ${profile}`;
}
