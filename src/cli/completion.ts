/**
 * `weir completion`: scripts by which shells complete words of weir. They call `weir complete -- WORDS`, which knows verbs and
 * options from the verbs themselves, and the rest from here: running daemons and labs, and files.
 */
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { RootCommand } from "@bomb.sh/tab";
import tab from "@bomb.sh/tab/commander";
import type { Command } from "commander";
import { kLabSuffix } from "../device/control_client.js";
import { type ControlledDevice, runningDevices } from "../device/running.js";
import { controlDirectory } from "../host/control_directory.js";

const kVerb = "completion";
/** Shells that are tested; the library knows one more. */
const kShells = ["bash", "zsh", "fish"];

const kHelp = `
Examples:
  source <(weir completion bash)                                    now; for good: add the line to ~/.bashrc
  weir completion zsh > "\${fpath[1]}/_weir"                         for good
  weir completion fish > ~/.config/fish/completions/weir.fish       for good

bash needs the package bash-completion.
`;

/** Tells whether this command line asks for completions. */
export const asksForCompletions = (argv: readonly string[]) => argv[0] === "complete";

/** Names of everything that runs now. */
export interface Running {
  /** Names of daemons, labs and their devices. */
  names: readonly string[];
  /** Hosts of labs. */
  hosts: readonly string[];
}

export const kNothingRuns: Running = { names: [], hosts: [] };

/** Adds the verb; it is the last one, since it completes all others. */
export function addCompletion(program: Command, running: Running, argv: readonly string[]): void {
  const root = tab(program, { completionCommandName: kVerb });
  const verb = program.commands.find((command) => command.name() === kVerb) as Command;
  verb.description("print a script by which a shell completes weir's words").addHelpText("after", kHelp);
  const [shell] = verb.registeredArguments;
  // The list is changed in place: it is read both to refuse and to offer shells.
  shell?.argChoices?.splice(0, shell.argChoices.length, ...kShells);
  const word = argv.at(-1) ?? "";
  completeArguments(root, { running, files: () => filesFrom(word) });
}

export async function namesOfRunning(): Promise<Running> {
  try {
    const devices = await runningDevices(controlDirectory());
    const hosts = devices.filter(({ socket, kind }) => socket.endsWith(kLabSuffix) && kind === "nic");
    return { names: namesOf(devices), hosts: hosts.map(({ name }) => name) };
  } catch {
    return kNothingRuns;
  }
}

function namesOf(devices: readonly ControlledDevice[]): string[] {
  const owners = devices.flatMap(({ owner }) => owner ?? []);
  return [...new Set([...devices.map(({ name }) => name), ...owners])].sort();
}

interface Words {
  running: Running;
  files: () => string[];
}

const kFileArguments = ["file", "scenario.yaml", "result.json", "run", "dir"];
const kFileOptions = ["config", "points", "out", "output", "results", "reference", "socket", "flows"];

function completeArguments(root: RootCommand, { running, files }: Words): void {
  const offer = (words: () => readonly string[]) => (complete: (value: string, description: string) => void) => {
    for (const one of words()) complete(one, "");
  };
  for (const command of root.commands.values()) {
    for (const argument of command.arguments.values()) {
      if (kFileArguments.includes(argument.name)) argument.handler = offer(files);
      else if (argument.name === "name") argument.handler ??= offer(() => running.names);
      else if (argument.name === "host") argument.handler ??= offer(() => running.hosts);
    }
    for (const option of command.options.values()) {
      if (kFileOptions.includes(option.value)) option.handler = offer(files);
    }
  }
}

/** Lists the folder of a word that is being typed, and the folders there: the shell finds the entries that begin with the word. */
function filesFrom(word: string): string[] {
  const folder = word.endsWith("/") ? word : dirname(word);
  const prefix = word.includes("/") ? join(folder, "/") : "";
  return entries(folder).flatMap(({ name, isFolder }) => {
    const path = `${prefix}${name}`;
    if (!isFolder) return [path];
    const below = path.startsWith(word) || word === "" ? entries(join(folder, name)) : [];
    return [`${path}/`, ...below.map((entry) => `${path}/${entry.name}${entry.isFolder ? "/" : ""}`)];
  });
}

function entries(folder: string): { name: string; isFolder: boolean }[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter(({ name }) => !name.startsWith(".") && name !== "node_modules")
      .map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() }));
  } catch {
    return [];
  }
}
