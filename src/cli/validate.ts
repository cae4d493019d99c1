/** `weir validate`: is a scenario sound, and what does it come to? */
import { formatTime } from "../config/units.js";
import { collect, describeError, exitStatusOf, kExit, load } from "./context.js";
import type { AddVerb } from "./program.js";

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

export const addValidate: AddVerb = (parent, context, done) => {
  parent
    .command("validate")
    .description("check scenario files without running them")
    .argument("<file...>", "scenario files (YAML)")
    .option("--json", "one JSON document on stdout when all files are sound")
    .option("--set <path=value>", "override a field, repeatable", collect)
    .addHelpText("after", "\nExample:\n  weir validate examples/*.yaml --set scale=80\n")
    .action((files: string[], options: { json?: boolean; set?: string[] }) => {
      const sound: Validated[] = [];
      let status: number = kExit.ok;
      for (const file of files) {
        try {
          sound.push(describe(file, load(context, file, options.set ?? [])));
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
    profile: scenario.congestion.algorithm === "none" ? "none" : scenario.congestion.profile,
    warnings,
  };
}

function summary(one: Validated): string {
  const many = (n: number, singular: string, plural = `${singular}s`) => `${n} ${n === 1 ? singular : plural}`;
  return [
    `${one.file}: ok: ${many(one.hosts, "host")}`,
    many(one.switches, "switch", "switches"),
    many(one.links, "link"),
    many(one.flows, "flow"),
    `${formatTime(one.duration_ns)} at scale ${one.scale}`,
    `congestion control ${one.profile}`,
  ].join(", ");
}
