/** `weir top`: shows what queue pairs and ports do now, live at a terminal, as snapshots elsewhere. */
import { setTimeout as sleep } from "node:timers/promises";
import { InvalidArgumentError, Option } from "commander";
import { WeirError } from "../base/error.js";
import { NoAnswer } from "../device/control_client.js";
import { type ControlledDevice, type DeviceChoice, findDevices } from "../device/running.js";
import { controlDirectory } from "../host/control_directory.js";
import { drawGrid } from "../result/report/table.js";
import { movesCursor, wantsColor } from "../result/report/terminal.js";
import { Choices } from "../watch/top/choices.js";
import { type Column, filtered, kPairColumns, kPortColumns, kSortKeys, sorted } from "../watch/top/columns.js";
import { liveTop } from "../watch/top/live.js";
import { Poll } from "../watch/top/poll.js";
import type { Sample } from "../watch/top/sample.js";
import { scales, summary } from "../watch/top/screen.js";
import { type AddVerb, type CliContext, kExit } from "./context.js";
import { intervalOption } from "./repeat.js";
import { socketOption } from "./socket_option.js";
import { untilSignal } from "./stop_signals.js";

interface TopOptions {
  interval: number;
  count?: number;
  sort: string;
  filter: string;
  json?: boolean;
  socket?: string;
}

const kHelp = `
Of labs all is in meant units, as if the scale were 1. RATE and TARGET are R_C and R_T of the reaction point, TX and RX what
crosses the link. At a terminal press h for the keys.

Examples:
  weir top
  weir top incast-4to1 --sort queue
  weir top --json --interval 0.5 --count 10 | jq '.queue_pairs[] | [.qp, .rate_bps]'
`;

export const addTop: AddVerb = (parent, context, done) => {
  parent
    .command("top")
    .description("rates of queue pairs and ports of running daemons and labs, live")
    .argument("[name]", "daemon, lab, or a lab's device; all that run if left out")
    .addOption(intervalOption("seconds between two looks"))
    .option("--count <n>", "end after so many snapshots", countOf)
    .addOption(new Option("--sort <column>", "order of the rows").choices(kSortKeys).default("name"))
    .option("--filter <text>", "only rows with this in a name", "")
    .option("--json", "one JSON document per line")
    .addOption(socketOption())
    .addHelpText("after", kHelp)
    .action(async (name: string | undefined, options: TopOptions) => done(await run(context, name, options)));
};

function countOf(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It is a whole number from 1.");
}

async function run(context: CliContext, name: string | undefined, options: TopOptions): Promise<number> {
  const { stdin, stdout } = context;
  const choice = { name, socket: options.socket };
  const live = movesCursor(stdout) && stdin.isTTY === true && !options.json && options.count === undefined;
  if (name !== undefined || options.socket !== undefined || !live) await findDevices(choice);
  else controlDirectory();
  const poll = new Poll(() => nowRunning(choice, live));
  return untilSignal(context, async (signal) => {
    if (!live) return snapshots(context, poll, options, signal);
    const choices = new Choices(options, options.interval);
    // The signal goes to the whole job, which may be more than this process (npx weir top).
    const suspend = () => process.kill(0, "SIGTSTP");
    const color = wantsColor(stdout);
    const interrupted = await liveTop(poll, choices, { ...context, color, suspend, signal });
    return interrupted ? kExit.sigint : kExit.ok;
  });
}

/** Looks for all that runs now, since devices that have ended may come again, and those that say nothing may answer later. */
async function nowRunning(choice: DeviceChoice, goesOn: boolean): Promise<ControlledDevice[]> {
  try {
    return await findDevices(choice);
  } catch (error) {
    if (error instanceof WeirError && (goesOn || !(error instanceof NoAnswer))) return [];
    throw error;
  }
}

/** Prints until there is nothing left to look at. The first has rates already, so it comes after an interval. */
async function snapshots(
  { stdout }: CliContext,
  poll: Poll,
  options: TopOptions,
  signal: AbortSignal,
): Promise<number> {
  let broken = false;
  const onError = () => {
    broken = true;
  };
  stdout.on("error", onError);
  try {
    await poll.next();
    for (let left = options.count ?? Number.POSITIVE_INFINITY; left > 0 && !broken; left--) {
      await sleep(options.interval * 1000, undefined, { signal });
      const sample = await poll.next();
      if (sample.devices.length === 0) break;
      stdout.write(
        options.json ? `${JSON.stringify(chosen(sample, options))}\n` : snapshot(sample, options, wantsColor(stdout)),
      );
    }
    return kExit.ok;
  } finally {
    stdout.off("error", onError);
  }
}

function chosen(sample: Sample, options: TopOptions): Sample {
  const rows = <Row>(all: readonly Row[], columns: readonly Column<Row>[]) =>
    sorted(filtered(all, columns, options.filter), columns, { key: options.sort, reverse: false });
  return {
    ...sample,
    queue_pairs: rows(sample.queue_pairs, kPairColumns),
    ports: rows(sample.ports, kPortColumns),
  };
}

function snapshot(sample: Sample, options: TopOptions, color: boolean): string {
  const { queue_pairs, ports } = chosen(sample, options);
  const grid = <Row>(title: string, rows: readonly Row[], columns: readonly Column<Row>[]) => ({
    title,
    head: columns.map(({ head }) => head),
    names: columns.findIndex(({ name }) => !name),
    rows: rows.map((row) => columns.map((column) => column.text(row))),
  });
  const grids = [grid("Queue pairs", queue_pairs, kPairColumns), grid("Ports", ports, kPortColumns)];
  const scale = scales(sample);
  const head = `${sample.time}  ${summary(sample)}${scale === "" ? "" : `  ${scale}`}`;
  const drawn = grids.filter(({ rows }) => rows.length > 0).map((one) => drawGrid(one, color));
  return `${[head, ...drawn].join("\n\n")}\n\n`;
}
