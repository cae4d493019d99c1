/** `weir switch` and `weir nic`: daemons in the foreground. */

import { packageVersion } from "../base/package_version.js";
import type { DaemonSource } from "../daemon/kinds.js";
import { checkConverted, switchYaml } from "../device/sonic/convert.js";
import { type AddVerb, type CliContext, collect, kExit, UsageError } from "./context.js";
import { convert, convertOptions, printable, type SonicOptions, switchFields, tellNotes, withSonic } from "./sonic.js";

const kSignals = `SIGHUP reads the file again, SIGTERM and SIGINT drain and stop. Logs go to stderr, one JSON object per line.
`;

const kNicHelp = `
Without a file the kernel keeps ARP, TCP and ping on an address that it has, too, and the NIC takes RoCEv2, PFC and CNMs. Metrics
are off: --set metrics=true.

Examples:
  weir nic eth1 --programs                       then: weir run -- ibv_devinfo
  weir nic eth1 --address 10.0.0.1/24 --programs --set pfc.priorities='[3]'
  weir validate nic.yaml && weir nic -c nic.yaml

${kSignals}`;

const kSwitchHelp = `
With --sonic the switch is what the config_db.json of a SONiC switch says, as far as it is about priorities, PFC, ECN, buffers and
scheduling. Without --map each port is the interface of its own name. --print says what is taken, how, and why not.

Examples:
  weir switch eth1 eth2
  weir validate switch.yaml && weir switch -c switch.yaml
  weir switch --sonic config_db.json --map Ethernet0=veth0,Ethernet4=veth4 --print
  weir switch --sonic config_db.json --map ports.yaml --scale 100 --set dashboard=true

${kSignals}`;

export const addNic: AddVerb = (parent, context, done) => {
  parent
    .command("nic")
    .description("run a software RoCEv2 NIC on an interface of this host, or on each of several")
    .argument("[interface]", "without a file: a NIC on this interface")
    .option("-c, --config <file>", "nic.yaml; docs/reference/daemon-files.md has its fields")
    .option(
      "--address <ip>",
      "of the NIC; twice: IPv4 and IPv6 (default: the interface's, which the kernel has, too)",
      collect,
    )
    .option("--rate <rate>", "line rate (default: 100Gbps, as much as this host manages)")
    .option("--name <name>", "what the NIC is called (default: as the interface)")
    .option("--programs", "serve programs on libibverbs: weir run")
    .option("--set <path=value>", "override a field of nic.yaml, repeatable", collect)
    .addHelpText("after", kNicHelp)
    .action(async (netdev: string | undefined, options: NicOptions) => done(await runNic(context, netdev, options)));
};

interface NicOptions {
  config?: string;
  address?: string[];
  rate?: string;
  name?: string;
  programs?: boolean;
  set?: string[];
}

async function runNic(context: CliContext, netdev: string | undefined, options: NicOptions): Promise<number> {
  const { config, set = [], address, rate, name, programs } = options;
  oneOf(netdev === undefined ? [] : [netdev], config, "nic.yaml");
  if (netdev !== undefined) {
    const { plainNic } = await import("../daemon/without_file.js");
    return run(
      context,
      plainNic({ interface: netdev, addresses: address, name, rate, programs: programs === true }, set),
    );
  }
  for (const [option, value] of Object.entries({ address, rate, name, programs })) {
    if (value !== undefined) throw new UsageError(`--${option}: not with --config`, { hint: "the file has it" });
  }
  return run(context, { kind: "nic", path: config ?? "", set });
}

/** @throws UsageError unless a daemon has either interfaces or a file. */
function oneOf(interfaces: readonly string[], config: string | undefined, file: string): void {
  if (interfaces.length > 0 === (config === undefined)) return;
  throw new UsageError(config === undefined ? "--config: missing" : `${interfaces.join(", ")}: not with --config`, {
    hint: `give either interfaces, or --config ${file}`,
  });
}

interface SwitchOptions extends SonicOptions {
  config?: string;
  name?: string;
  scale?: number;
  set?: string[];
  print?: boolean;
  json?: boolean;
}

export const addSwitch: AddVerb = (parent, context, done) => {
  const command = parent
    .command("switch")
    .description("run a lossless switch between interfaces of this host")
    .argument("[interfaces...]", "without a file: a switch between these")
    .option("-c, --config <file>", "switch.yaml; docs/reference/daemon-files.md has its fields");
  withSonic(command)
    .option("--name <name>", "without a file: what the switch is called (default: switch)")
    .option("--scale <n>", "with --sonic: rates are divided by it, times multiplied; bytes stay", scaleOption)
    .option("--set <path=value>", "override a field of switch.yaml, repeatable", collect)
    .option("--print", "with --sonic: print the switch.yaml that it makes, and what becomes of each table")
    .option("--json", "with --print: one JSON document on stdout")
    .addHelpText("after", kSwitchHelp)
    .action(async (interfaces: string[], options: SwitchOptions) =>
      done(await runSwitch(context, interfaces, options)),
    );
};

async function runSwitch(context: CliContext, interfaces: readonly string[], options: SwitchOptions): Promise<number> {
  const { config, sonic, scale, set = [], print, json, name } = options;
  const chosen = convertOptions(options);
  if (config !== undefined && sonic !== undefined) {
    throw new UsageError("--sonic: not with --config", {
      hint: "give either --config switch.yaml, or --sonic config_db.json",
    });
  }
  oneOf(interfaces, config ?? sonic, "switch.yaml, or --sonic config_db.json");
  if (name !== undefined && interfaces.length === 0) throw new UsageError("--name: not with a file, which has it");
  if (sonic === undefined) {
    for (const [option, value] of Object.entries({ scale, print, json })) {
      if (value !== undefined) throw new UsageError(`--${option}: not without --sonic`);
    }
    if (config === undefined) {
      const { plainSwitch } = await import("../daemon/without_file.js");
      return run(context, plainSwitch(interfaces, name, set));
    }
    return run(context, { kind: "switch", path: config, set });
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
