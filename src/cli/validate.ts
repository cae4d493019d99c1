/** `weir validate`: tells whether a file is sound, and what it comes to. */

import { formatRate, formatSize, formatTime } from "../base/units.js";
import { profileText } from "../congestion/algorithms.js";
import { loadNicDaemon, loadSwitchDaemon } from "../device/file/load.js";
import { printable } from "../result/report/format.js";
import { kindOfFile } from "../scenario/file_kind.js";
import { automaticHeadroom, switchesWithPorts } from "../scenario/port_headroom.js";
import { switchPorts } from "../scenario/topology.js";
import { planSweep } from "../study/sweep/plan_sweep.js";
import { loadSweep } from "../study/sweep/spec.js";
import {
  type AddVerb,
  asUsage,
  type CliContext,
  collect,
  describeError,
  exitStatusOf,
  kExit,
  UsageError,
  warn,
} from "./context.js";
import { load, readScenario } from "./scenario_file.js";
import { libraryOf } from "./trust.js";

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
      const sound: Sound[] = [];
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

type Sound = ReturnType<typeof validate>;

function validate(context: CliContext, file: string, set: readonly string[]) {
  const text = readScenario(file);
  const kind = kindOfFile(file, text);
  if (kind === "scenario") return describe(file, load(context, file, set, text));
  if (kind === "sweep") return validateSweep(context, file, text, set);
  if (kind === "switch") {
    const { config, warnings } = asUsage(() => loadSwitchDaemon(file, { set, text }));
    for (const warning of warnings) warn(context, warning);
    return { file, switch: config.name, ports: config.ports.length, warnings };
  }
  const { name, config, others, warnings } = asUsage(() => loadNicDaemon(file, { set, text }));
  for (const warning of warnings) warn(context, warning);
  return {
    file,
    nic: name,
    ports: 1 + others.length,
    queue_pairs: [config, ...others].reduce((sum, { queue_pairs }) => sum + queue_pairs.length, 0),
    rate_bps: config.port.rate,
    profile: profileText(config.congestion),
    warnings,
  };
}

function validateSweep(context: CliContext, file: string, text: string, set: readonly string[]) {
  if (set.length > 0) throw new UsageError("--set: not for sweeps", { hint: `give it in the \`set\` of ${file}` });
  // No point is run here, so the version of the code does not matter.
  const { plan, warnings } = asUsage(() => planSweep(loadSweep(file, text), file, ""));
  for (const warning of warnings) warn(context, warning);
  return { file, sweep: plan.study.name, points: plan.points.length, warnings };
}

function describe(file: string, { scenario, warnings }: ReturnType<typeof load>) {
  const headroom = automaticHeadroom(switchesWithPorts(scenario, switchPorts(scenario)));
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
    commands: scenario.programs.map(({ host, run }) => ({ host, run })),
    library: libraryOf(scenario),
    ...(headroom.length > 0 && { headroom }),
    warnings,
  };
}

function many(n: number, singular: string, plural = `${singular}s`): string {
  return `${n} ${n === 1 ? singular : plural}`;
}

function summary(one: Sound): string {
  const what = `${one.file}: ok`;
  if ("sweep" in one) return `${what}: sweep ${one.sweep}, ${many(one.points, "point")}`;
  if ("switch" in one && one.switch !== undefined) return `${what}: switch ${one.switch}, ${many(one.ports, "port")}`;
  if ("nic" in one) {
    const ports = one.ports === 1 ? "" : ` of ${many(one.ports, "port")}`;
    const pairs = many(one.queue_pairs, "queue pair");
    return `${what}: nic ${one.nic}${ports}, ${pairs}, ${formatRate(one.rate_bps)}, congestion control ${one.profile}`;
  }
  return [
    `${what}: ${many(one.hosts, "host")}`,
    many(one.switches, "switch", "switches"),
    many(one.links, "link"),
    many(one.flows, "flow"),
    `${formatTime(one.duration_ns)} at scale ${one.scale}`,
    `congestion control ${one.profile}`,
    ...(one.commands.length === 0 ? [] : [`runs ${many(one.commands.length, "command")}`]),
    ...(one.library === undefined ? [] : [`loads ${printable(one.library)}`]),
    ...(one.headroom ?? []).map(
      ({ rate_bps, delay_ns, mtu, headroom_bytes, ports }) =>
        `headroom ${formatSize(headroom_bytes)} on ${many(ports, "port")} of ${formatRate(rate_bps)}, ${formatTime(delay_ns)}, MTU ${mtu}`,
    ),
  ].join(", ");
}
