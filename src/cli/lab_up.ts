/** `weir lab up`: starts a lab that stays, for people's own programs. It goes on by itself in the background. */
import { type ChildProcess, spawn } from "node:child_process";
import { openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { WeirError } from "../base/error.js";
import { makeFolder } from "../base/folder.js";
import { packageVersion } from "../base/package_version.js";
import { checkForLab } from "../clocks/lab/check.js";
import { answeringLabs, kLogFile, labFolder, labSocket } from "../clocks/standing/place.js";
import { programLibraries } from "../daemon/programs/launch.js";
import { ask } from "../device/control_client.js";
import type { StandingReport } from "../device/protocol.js";
import { controlDirectory } from "../host/control_directory.js";
import { inheritedText } from "../host/rootless.js";
import { printable } from "../result/report/format.js";
import { choosePart } from "../scenario/parts.js";
import { loadScenario } from "../scenario/scenario.js";
import type { Scenario } from "../scenario/types.js";
import { asUsage, type CliContext, collect, print, UsageError, warn } from "./context.js";
import { hostTable, scaleText } from "./lab_hosts.js";
import { load, readScenario } from "./scenario_file.js";
import { untilSignal } from "./stop_signals.js";
import { addTrustOption, askForTrust, type TrustOptions } from "./trust.js";

interface UpOptions extends TrustOptions {
  name?: string;
  scale?: string;
  set?: string[];
  part?: string;
  json?: boolean;
  foreground?: boolean;
}

const kExamples = `
Hosts have an interface weir0 with an address of each IP version, names of all hosts in /etc/hosts, and a NIC for programs on
libibverbs. What the file says of traffic, changes and durations is left out: traffic is yours. Rates are divided by the scale, and
timers multiplied; with \`auto\`, which files without a scale have, the fastest link of a host is 250 Mb/s here.

Examples:
  weir lab up examples/leaf-spine.yaml
  weir lab exec h1-1 -- ping -c 3 h2-1
  weir lab down

Exit status: 0 it is up, 1 it could not be built, 2 a bad file. With --foreground, 0 when it has ended.
`;
const kNamePattern = /^[^/\p{C}]{1,100}$/u;
const kLookMs = 50;

export function addUp(lab: Command, context: CliContext, done: (status: number) => void): void {
  addTrustOption(lab.command("up"))
    .description("build the network of a scenario, and keep it for programs: ps, exec, logs, down")
    .argument("<file>", "scenario file (YAML)")
    .option("--name <name>", "what the lab is called (default: as the scenario, and its part)")
    .option("--scale <n|auto>", "as --set scale=<n>: rates divided, times multiplied by it")
    .option("--set <path=value>", "override a field of the scenario, repeatable", collect)
    .option(
      "--part <name>",
      "this part of the scenario: the others are on other machines, joined by interfaces that exist",
    )
    .option("--foreground", "do not go on in the background: until SIGTERM, logs to stderr")
    .option("--json", "the lab as one JSON document")
    .addHelpText("after", kExamples)
    .action(async (file: string, options: UpOptions) => done(await up(context, file, options)));
}

const overrides = ({ set = [], scale }: UpOptions) => (scale === undefined ? set : [...set, `scale=${scale}`]);

/** The file's own traffic does not matter; nothing sends any. */
const kTraffic = false;

function checkForStanding(scenario: Scenario): void {
  checkForLab({ ...scenario, flows: [], tcp: [], programs: [] });
}

async function up(context: CliContext, file: string, options: UpOptions): Promise<number> {
  const set = overrides(options);
  const text = inheritedText() ?? readScenario(file);
  const { part } = options;
  const scenario = asUsage(() => {
    const whole = loadScenario(file, { set, text }).scenario;
    return part === undefined ? whole : choosePart(whole, part);
  });
  asUsage(() => checkForStanding(scenario));
  await askForTrust(context, file, [scenario], options, kTraffic);
  const name = options.name ?? (part === undefined ? scenario.name : `${scenario.name}-${part}`);
  if (!kNamePattern.test(name)) {
    throw new UsageError(`--name ${printable(name)}: a name has up to 100 printable characters, without /`);
  }
  const directory = controlDirectory();
  if (options.foreground) {
    const elevated = await context.elevate({ text });
    if (elevated !== undefined) return elevated;
    const { runStanding } = await import("../clocks/standing/run.js");
    const { stderr, signals } = context;
    return runStanding(scenario, { name, file, version: packageVersion(), directory, stderr, signals });
  }
  if ((await answeringLabs(directory)).includes(name)) {
    throw new WeirError(`a lab called ${name} is running`, { hint: `weir lab down ${name}, or another --name` });
  }
  // Warnings are told in the foreground, where somebody reads them.
  load(context, file, set, text);
  const why = reasonAgainstPrograms();
  if (why !== undefined) warn(context, `programs on libibverbs find no NIC: ${why}`);
  return launch(context, file, text, { ...options, name }, directory);
}

/** Says why programs find no NIC, though everything else works. */
function reasonAgainstPrograms(): string | undefined {
  try {
    programLibraries();
    return undefined;
  } catch (error) {
    if (!(error instanceof WeirError)) throw error;
    return `${error.message}; ${error.hint}`;
  }
}

/** Runs the same command in the background, in a session of its own, and waits until the lab is there. */
async function launch(
  context: CliContext,
  file: string,
  text: string,
  options: UpOptions & { name: string },
  directory: string,
): Promise<number> {
  const { name } = options;
  const folder = labFolder(directory, name);
  rmSync(folder, { recursive: true, force: true });
  makeFolder(folder, 0o755);
  const log = join(folder, kLogFile);
  // A source that can be read once, such as a pipe, has been read.
  const source = statSync(file, { throwIfNoEntry: false })?.isFile() ? file : join(folder, "scenario.yaml");
  if (source !== file) writeFileSync(source, text);
  const set = overrides(options).flatMap((one) => ["--set", one]);
  const part = options.part === undefined ? [] : ["--part", options.part];
  const output = openSync(log, "w");
  const args = [
    ...process.execArgv,
    process.argv[1] as string,
    "lab",
    "up",
    source,
    "--foreground",
    "--name",
    name,
    "--trust",
  ];
  const child = spawn(process.execPath, [...args, ...set, ...part], {
    stdio: ["ignore", output, output],
    detached: true,
  });
  const report = await untilSignal(context, async (signal) => {
    const found = await untilThere(child, labSocket(directory, name), signal);
    if (typeof found === "number") {
      tellWhy(context, log);
      rmSync(folder, { recursive: true, force: true });
      return found;
    }
    child.unref();
    print(context, options.json, found, (color) => describe(found, color));
    return 0;
  });
  return report;
}

/** Waits until it is there, or returns its exit status. */
async function untilThere(child: ChildProcess, socket: string, signal: AbortSignal): Promise<StandingReport | number> {
  let status: number | undefined;
  child.on("error", () => {
    status = 1;
  });
  child.on("exit", (code) => {
    status = code ?? 1;
  });
  signal.addEventListener("abort", () => void child.kill(), { once: true });
  for (;;) {
    if (status !== undefined) return status || 1;
    const report = await ask(socket, "standing").catch(() => undefined);
    if (report !== undefined) return report;
    await sleep(kLookMs);
  }
}

/** Prints the last words of the process, without lines for programs. */
function tellWhy({ stderr }: CliContext, log: string): void {
  const lines = readFileSync(log, "utf8").split("\n");
  stderr.write(lines.filter((line) => line !== "" && !line.startsWith("{")).join("\n"));
  stderr.write("\n");
}

/** Describes the lab, and what to do with it. */
function describe(lab: StandingReport, color: boolean): string {
  const { name, hosts, switches, pid } = lab;
  const [first, ...others] = hosts;
  const far = others.find((host) => host.switch !== first?.switch) ?? others[0];
  const count = `${hosts.length} hosts, ${switches.length} ${switches.length === 1 ? "switch" : "switches"}`;
  const lines = [`${printable(name)} is up: ${count}, pid ${pid}`, scaleText(lab), "", hostTable(lab, color), ""];
  if (first !== undefined && far !== undefined) {
    lines.push(
      `  weir lab exec ${first.name} -- ping -c 3 ${far.name}`,
      `  weir lab exec ${far.name} -- ib_write_bw & weir lab exec ${first.name} -- ib_write_bw -D 5 ${far.name}`,
      `  weir lab exec ${first.name}                 a shell there`,
      "  weir top                              rates, queues, marks, pauses",
    );
  }
  lines.push(`  weir lab down ${/^[\w.-]+$/.test(name) ? name : `'${name}'`}`);
  return lines.join("\n");
}
