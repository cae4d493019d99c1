/** `weir show`: tables of running daemons and labs, in Weir's own form and in those of tools that people know. */
import type { Command } from "commander";
import { WeirError } from "../base/error.js";
import { nearest } from "../base/nearest.js";
import { askDevice, type ControlledDevice, findDevices, NotRunning } from "../device/running.js";
import { drawGrid } from "../result/report/table.js";
import { wantsColor } from "../result/report/terminal.js";
import { onlyPort } from "../watch/show/port_choice.js";
import type { Answers, View } from "../watch/show/view.js";
import { kViews } from "../watch/show/views.js";
import { type AddVerb, type CliContext, kExit, UsageError } from "./context.js";
import { intervalOption, repeat } from "./repeat.js";
import { socketOption } from "./socket_option.js";

interface ShowOptions {
  json?: boolean;
  watch?: boolean;
  interval: number;
  port?: string;
  socket?: string;
}

const kExamples = `
NAME is a daemon, a lab, or a device of a lab (incast-4to1.h1); all that run, unless one is named.

Examples:
  weir show pfc
  weir show queue sw0 --watch
  weir show queue wredcounters incast-4to1.sw --port r
  weir show rdma statistic incast-4to1.h1

A port that sends PFC has an ingress that is backed up; a port that receives PFC has a neighbour that is. Follow received PFC
downstream, to the switch that sends and does not receive.
`;

export const addShow: AddVerb = (parent, context, done) => {
  const show = parent
    .command("show")
    .description("show counters and state of running switches and NICs")
    .usage("<what> [name] [options]")
    .showHelpAfterError("(weir show --help lists what there is)")
    .addHelpText("after", kExamples);
  for (const [words, view] of Object.entries(kViews)) {
    addView(commandOf(show, words.split(" ")), view, async (command) => done(await run(context, view, command)));
  }
  for (const command of show.commands) summarize(command);
};

/** Words that show nothing by themselves. */
const kGroups: Readonly<Record<string, string>> = {
  rdma: "a NIC in the shape of iproute2's rdma",
  dcb: "ports in the shape of iproute2's dcb",
  "priority-group": "ingress priority groups in the shape of SONiC",
  buffer_pool: "the shared buffer in the shape of SONiC",
};

/** In the list of its parent a command tells which words may follow it. */
function summarize(command: Command): void {
  if (command.commands.length === 0) return;
  for (const below of command.commands) summarize(below);
  if (command.description() === "") {
    command.description(kGroups[command.name()] ?? "more words follow");
    command.showHelpAfterError(`(one of ${wordsBelow(command).join(", ")} follows)`);
  }
  command.summary(`${command.description()}; ${wordsBelow(command).join(", ")}`);
}

const wordsBelow = (command: Command) => command.commands.map((below) => below.name());

/** The command under these words, made with those above it. */
function commandOf(show: Command, words: readonly string[]): Command {
  return words.reduce(
    (parent, word) => parent.commands.find((command) => command.name() === word) ?? parent.command(word),
    show,
  );
}

function addView(command: Command, { description }: View, action: (command: Command) => Promise<void>): void {
  command
    .description(description)
    .argument("[name]", "daemon, lab, or a lab's device")
    // devicesOf() tells mistyped words from too many names.
    .allowExcessArguments()
    .option("--port <name>", "only this port, or interface")
    .option("--json", "one JSON document on stdout")
    .option("--watch", "again and again, until Ctrl-C")
    .addOption(intervalOption("with --watch: seconds between two looks"))
    .addOption(socketOption())
    .action((_name: unknown, _options: unknown, own: Command) => action(own));
}

async function run(context: CliContext, view: View, command: Command): Promise<number> {
  const options = command.opts<ShowOptions>();
  const devices = chooseDevices(view, await devicesOf(command, options.socket), command.args[0]);
  const look = () => render(context, view, devices, options);
  if (options.watch) return repeat(context, options.interval, look);
  context.stdout.write(await look());
  return kExit.ok;
}

/** One NAME follows a command; a word that nothing is named by may be a mistyped word of the command. */
async function devicesOf(command: Command, socket: string | undefined): Promise<ControlledDevice[]> {
  const [name, ...others] = command.args;
  const words = wordsBelow(command);
  const meant = nearest(name ?? "", words);
  const known = words.length === 0 ? [] : [`words behind ${command.name()}: ${words.join(", ")}`];
  const hint = [...(meant === undefined ? [] : [`did you mean ${meant}?`]), ...known].join(" ");
  if (others.length > 0) {
    throw new UsageError(`${command.name()} takes one name, not ${command.args.join(" ")}`, { hint });
  }
  try {
    return await findDevices({ name, socket });
  } catch (error) {
    if (!(error instanceof NotRunning) || hint === "") throw error;
    if (meant !== undefined) throw new UsageError(error.message, { hint });
    throw new NotRunning(error.message, { hint: `${error.hint}; ${hint}` });
  }
}

/** Chooses those of several devices that can show it. @throws WeirError when none can. */
function chooseDevices(view: View, devices: ControlledDevice[], name: string | undefined): ControlledDevice[] {
  if (devices.length === 1) return devices;
  const fitting = devices.filter(({ kind }) => view.of === "any" || kind === undefined || kind === view.of);
  if (fitting.length > 0) return fitting;
  const what = view.of === "nic" ? "NIC" : "switch";
  const among = devices.map((device) => device.name).join(", ");
  throw new WeirError(name === undefined ? `no ${what} is running` : `${name} has no ${what}`, {
    hint: `running: ${among}`,
  });
}

async function render(
  context: CliContext,
  view: View,
  devices: readonly ControlledDevice[],
  { json, port }: ShowOptions,
): Promise<string> {
  const all = await Promise.all(devices.map((device) => answersOf(device, view, port)));
  if (json) return `${JSON.stringify(documentOf(view, devices, all), undefined, 2)}\n`;
  const texts = all.map((answers, position) => draw(context, view, answers, position));
  if (view.joins || texts.length === 1) return texts.join("");
  return texts.map((text, i) => `${devices[i]?.name}:\n${text}`).join("\n");
}

/** A single device has its own document; those of several go by their names, or all in one list. */
function documentOf(view: View, devices: readonly ControlledDevice[], all: readonly Answers[]): unknown {
  const documents = all.map((answers, position) => view.json?.(answers, position) ?? only(answers, view));
  if (view.joins) return documents.flat();
  return documents.length === 1 ? documents[0] : Object.fromEntries(documents.map((one, i) => [devices[i]?.name, one]));
}

async function answersOf(device: ControlledDevice, view: View, port: string | undefined): Promise<Answers> {
  const requests = port === undefined ? view.requests : [...new Set([...view.requests, "ports" as const])];
  const answers = Object.fromEntries(
    await Promise.all(requests.map(async (request) => [request, await askDevice(device, request)] as const)),
  ) as unknown as Answers;
  return port === undefined ? answers : onlyPort(answers, port);
}

/** As they were asked for, also where a port was chosen by another. What counters mean is for those who add them up. */
function only(answers: Answers, { requests }: View) {
  const own = Object.fromEntries(requests.map((request) => [request, answers[request]]));
  if (!requests.includes("counters")) return own;
  const { counters, ...about } = answers.counters;
  return { ...own, counters: { ...about, counters: counters.map(({ meaning: _, ...counter }) => counter) } };
}

function draw(context: CliContext, view: View, answers: Answers, position: number): string {
  if (view.text !== undefined) return view.text(answers, position);
  const grids = view.grids?.(answers) ?? [];
  const shown = grids.filter((grid) => grid.rows.length > 0);
  if (shown.length === 0) return `${grids[0]?.title ?? ""}: nothing so far\n`;
  return `${shown.map((grid) => drawGrid(grid, wantsColor(context.stdout))).join("\n\n")}\n`;
}
