/** `weir lab run --dashboard`: runs at once, then whatever the page asks for, until a signal. */
import { existsSync } from "node:fs";
import { packageVersion } from "../base/package_version.js";
import { inheritedListener } from "../host/rootless.js";
import type { DashboardAddress } from "../watch/dashboard/address.js";
import { EventStreams } from "../watch/dashboard/event_streams.js";
import { LabBoard, type RunEnd, type RunOrder } from "../watch/dashboard/lab_board.js";
import type { LabScenario } from "../watch/dashboard/lab_scenario.js";
import { pageFiles } from "../watch/dashboard/page_files.js";
import { DashboardServer } from "../watch/dashboard/server.js";
import { type CliContext, describeError, kExit, warn } from "./context.js";
import { purposeOf } from "./listen_address.js";
import { StopSignals } from "./stop_signals.js";

/**
 * Returns an exit status: that of the signal that ended it, or 1 if the first run cannot be made.
 * @param execute Makes one run, with its files, and prints its result.
 */
export async function runDashboard(
  context: CliContext,
  settings: LabScenario,
  where: DashboardAddress,
  quiet: boolean,
  execute: (order: RunOrder) => Promise<RunEnd>,
): Promise<number> {
  const { stderr } = context;
  const streams = new EventStreams();
  const board = new LabBoard(settings, streams, {
    version: packageVersion(),
    warn: (text) => warn(context, text),
    execute: async (order) => {
      try {
        return await execute(order);
      } catch (error) {
        if (!order.signal.aborted) stderr.write(describeError(error));
        else if (!quiet) stderr.write(`run ${order.id}: ${(order.signal.reason as Error).message}\n`);
        throw error;
      }
    },
  });
  const stop = new StopSignals(context, quiet);
  const server = await DashboardServer.listen(where, {
    source: board,
    streams,
    files: pageFiles(),
    purpose: purposeOf("dashboard"),
    descriptor: inheritedListener("dashboard"),
  });
  try {
    stderr.write(`dashboard: ${server.url}\n`);
    const stopped = new Promise<void>((resolve) => stop.signal.addEventListener("abort", () => resolve()));
    board.start();
    const first = await Promise.race([board.settled(), stopped]);
    if (first?.state === "failed") return kExit.failure;
    if (first !== undefined && !quiet) stderr.write(`dashboard: still at ${server.url}, until Ctrl-C\n`);
    await stopped;
    await board.settled(stop.signal.reason as Error);
    return stop.status ?? kExit.ok;
  } finally {
    server.close();
    stop.release();
  }
}

/** `folder`, or the first of folder-2, folder-3 ... that is not there. */
export function unusedFolder(folder: string): string {
  if (!existsSync(folder)) return folder;
  for (let i = 2; ; i++) if (!existsSync(`${folder}-${i}`)) return `${folder}-${i}`;
}
