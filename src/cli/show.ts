/** `weir show`: tables of a running daemon. */
import { setTimeout as sleep } from "node:timers/promises";
import { Argument, Option } from "commander";
import { ask, findDaemon } from "../daemon/control_client.js";
import { kViews, type View, type ViewName } from "../daemon/views.js";
import { drawGrid } from "../report/table.js";
import { type CliContext, kExit, wantsColor } from "./context.js";
import type { AddVerb } from "./program.js";

interface ShowOptions {
  json?: boolean;
  watch?: boolean;
  socket?: string;
}

const kWatchMs = 1000;
const kHome = "\x1b[H\x1b[2J";

/** For every verb that talks to a daemon. */
export const socketOption = () => new Option("--socket <path>", "control socket of the daemon");

export const addShow: AddVerb = (parent, context, done) => {
  const names = Object.keys(kViews) as ViewName[];
  const list = names.map((name) => `  ${name.padEnd(10)}${kViews[name].description}`).join("\n");
  parent
    .command("show")
    .description("show counters and state of a running switch or NIC")
    .addArgument(new Argument("<what>", `one of ${names.join(", ")}`).choices(names))
    .argument("[name]", "name of the daemon, when several run")
    .option("--json", "one JSON document on stdout")
    .option("--watch", "again every second, until Ctrl-C")
    .addOption(socketOption())
    .addHelpText("after", `\nWhat there is:\n${list}\n\nExamples:\n  weir show pfc\n  weir show queue sw0 --watch\n`)
    .action(async (what: ViewName, name: string | undefined, options: ShowOptions) => {
      const socket = await findDaemon({ name, socket: options.socket });
      done(await show(context, kViews[what], socket, options));
    });
};

async function show(context: CliContext, view: View, socket: string, options: ShowOptions): Promise<number> {
  const abort = new AbortController();
  const stop = () => abort.abort();
  if (options.watch) context.signals.on("SIGINT", stop).on("SIGTERM", stop);
  try {
    do {
      const text = await render(context, view, socket, options.json === true);
      context.stdout.write(options.watch && context.stdout.isTTY ? `${kHome}${text}` : text);
    } while (options.watch && !(await interrupted(abort.signal)));
    return kExit.ok;
  } finally {
    context.signals.off("SIGINT", stop).off("SIGTERM", stop);
  }
}

async function interrupted(signal: AbortSignal): Promise<boolean> {
  await sleep(kWatchMs, undefined, { signal }).catch(() => {});
  return signal.aborted;
}

async function render(context: CliContext, view: View, socket: string, json: boolean): Promise<string> {
  const answers: Record<string, unknown> = {};
  for (const request of view.requests) answers[request] = await ask(socket, request);
  if (json) return `${JSON.stringify(answers, undefined, 2)}\n`;
  const grids = view.grids(answers as unknown as Parameters<View["grids"]>[0]);
  const shown = grids.filter((grid) => grid.rows.length > 0);
  if (shown.length === 0) return `${grids[0]?.title ?? ""}: nothing so far\n`;
  return `${shown.map((grid) => drawGrid(grid, wantsColor(context.stdout))).join("\n\n")}\n`;
}
