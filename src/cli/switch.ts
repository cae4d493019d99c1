/** `weir switch` and `weir nic`: daemons in the foreground. */

import { packageVersion } from "../base/package_version.js";
import type { DaemonSource } from "../daemon/kinds.js";
import { checkConverted, switchYaml } from "../device/sonic/convert.js";
import { type AddVerb, type CliContext, collect, kExit, UsageError } from "./context.js";
import { convert, convertOptions, printable, type SonicOptions, switchFields, tellNotes, withSonic } from "./sonic.js";

const kSignals = `SIGHUP reads the file again, SIGTERM and SIGINT drain and stop. Logs go to stderr, one JSON object per line.
`;

const kSwitchHelp = `
With --sonic the switch is what the config_db.json of a SONiC switch says, as far as it is about priorities, PFC, ECN, buffers and
scheduling. Without --map each port is the interface of its own name. --print says what is taken, how, and why not.

Examples:
  weir validate switch.yaml && weir switch -c switch.yaml
  weir switch --sonic config_db.json --map Ethernet0=veth0,Ethernet4=veth4 --print
  weir switch --sonic config_db.json --map ports.yaml --scale 100 --set dashboard=true

${kSignals}`;

export const addNic: AddVerb = (parent, context, done) => {
  parent
    .command("nic")
    .description("run a software RoCEv2 NIC on an interface of this host, or on each of several")
    .requiredOption("-c, --config <file>", "nic.yaml; docs/reference/daemon-files.md has its fields")
    .addHelpText("after", `\nExample:\n  weir validate nic.yaml && weir nic -c nic.yaml\n\n${kSignals}`)
    .action(async ({ config }: { config: string }) => done(await run(context, { kind: "nic", path: config })));
};

interface SwitchOptions extends SonicOptions {
  config?: string;
  scale?: number;
  set?: string[];
  print?: boolean;
  json?: boolean;
}

export const addSwitch: AddVerb = (parent, context, done) => {
  const command = parent
    .command("switch")
    .description("run a lossless switch between interfaces of this host")
    .option("-c, --config <file>", "switch.yaml; docs/reference/daemon-files.md has its fields");
  withSonic(command)
    .option("--scale <n>", "with --sonic: rates are divided by it, times multiplied; bytes stay", scaleOption)
    .option("--set <path=value>", "override a field of switch.yaml, repeatable", collect)
    .option("--print", "with --sonic: print the switch.yaml that it makes, and what becomes of each table")
    .option("--json", "with --print: one JSON document on stdout")
    .addHelpText("after", kSwitchHelp)
    .action(async (options: SwitchOptions) => done(await runSwitch(context, options)));
};

async function runSwitch(context: CliContext, options: SwitchOptions): Promise<number> {
  const { config, sonic, scale, set = [], print, json } = options;
  const chosen = convertOptions(options);
  if ((config === undefined) === (sonic === undefined)) {
    const both = config !== undefined;
    throw new UsageError(both ? "--sonic: not with --config" : "--config: missing", {
      hint: "give either --config switch.yaml, or --sonic config_db.json",
    });
  }
  if (sonic === undefined) {
    for (const [option, value] of Object.entries({ scale, print, json })) {
      if (value !== undefined) throw new UsageError(`--${option}: not without --sonic`);
    }
    return run(context, { kind: "switch", path: config ?? "", set });
  }
  if (print !== true) {
    if (json) throw new UsageError("--json: not without --print");
    return run(context, {
      kind: "switch",
      path: sonic,
      sonic: { ...chosen, scale },
      set: switchFields(set, undefined),
    });
  }
  const converted = convert(sonic, { ...chosen, scale });
  if (!json) tellNotes(context, converted);
  checkConverted(converted);
  const made = printable(converted, switchFields(set, undefined));
  const { config: switchConfig, tables, notes } = made;
  context.stdout.write(
    json ? `${JSON.stringify({ config: switchConfig, tables, notes }, undefined, 2)}\n` : switchYaml(made),
  );
  return kExit.ok;
}

function scaleOption(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 1 && value <= 1e6) return value;
  throw new UsageError(`--scale ${text}: not a number from 1 to 1000000`);
}

async function run(context: CliContext, source: DaemonSource): Promise<number> {
  const [{ runDaemon }, { kDaemonServices: services }] = await Promise.all([
    import("../daemon/run.js"),
    import("./daemon_services.js"),
  ]);
  const { stderr, signals } = context;
  return runDaemon(source, { stderr, signals, version: packageVersion(), services });
}
