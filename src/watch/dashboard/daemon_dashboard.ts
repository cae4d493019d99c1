/** The dashboard of a daemon: server and board together. */

import { WeirError } from "../../base/error.js";
import type { DaemonService } from "../../daemon/run.js";
import type { DashboardConfig } from "../../device/file/load.js";
import { DeviceBoard, type WatchedDaemon } from "./device_board.js";
import { EventStreams } from "./event_streams.js";
import { pageFiles } from "./page_files.js";
import { DashboardServer } from "./server.js";

const kPurpose = {
  name: "dashboard",
  field: "dashboard",
  hint: "set dashboard.address and dashboard.port, or dashboard: false",
};

/** Listens; there is nothing to be seen before begin(). @throws WeirError when it cannot, or the page is not built. */
export async function openDaemonDashboard(where: DashboardConfig, daemon: WatchedDaemon): Promise<DaemonService> {
  /** Board of the device, once it runs. */
  let board: DeviceBoard | undefined;
  const running = () => {
    if (board === undefined) throw new WeirError("the daemon is starting", { hint: "try again in a moment" });
    return board;
  };
  const streams = new EventStreams((watched) => board?.watched(watched));
  const server = await DashboardServer.listen(where, {
    source: {
      session: () => running().session(),
      change: (set) => running().change(set),
      inspect: (what) => running().inspect(what),
    },
    streams,
    files: pageFiles(),
    purpose: kPurpose,
  });
  return {
    address: server.address,
    url: server.url,
    begin() {
      board = new DeviceBoard(streams, daemon);
      board.watched(streams.watched);
    },
    told: (what) => board?.told(what),
    close() {
      board?.close();
      server.close();
    },
  };
}
