/** The dashboard of a daemon: server and board together. */

import { WeirError } from "../base/error.js";
import { DeviceBoard, type WatchedDaemon } from "../dashboard/device_board.js";
import { EventStreams } from "../dashboard/event_streams.js";
import { pageFiles } from "../dashboard/page_files.js";
import { DashboardServer } from "../dashboard/server.js";
import type { DashboardConfig } from "../device/file/load.js";

const kPurpose = {
  name: "dashboard",
  field: "dashboard",
  hint: "set dashboard.address and dashboard.port, or dashboard: false",
};

export class DaemonDashboard {
  private readonly streams = new EventStreams((watched) => this.board?.watched(watched));
  private server: DashboardServer | undefined;
  /** Of a device that runs. */
  private board: DeviceBoard | undefined;

  private constructor(private readonly options: WatchedDaemon) {}

  /** Listens; there is nothing to be seen before begin(). @throws WeirError when it cannot, or the page is not built. */
  static async open(where: DashboardConfig, options: WatchedDaemon): Promise<DaemonDashboard> {
    const dashboard = new DaemonDashboard(options);
    dashboard.server = await DashboardServer.listen(where, {
      source: {
        session: () => dashboard.#running().session(),
        change: (set) => dashboard.#running().change(set),
        inspect: (what) => dashboard.#running().inspect(what),
      },
      streams: dashboard.streams,
      files: pageFiles(),
      purpose: kPurpose,
    });
    return dashboard;
  }

  /** The device runs. */
  begin(): void {
    this.board = new DeviceBoard(this.streams, this.options);
    this.board.watched(this.streams.watched);
  }

  /** Where it is. */
  get address(): string {
    return this.server?.address ?? "";
  }

  /** The same with the token that changes take, where the file has none. */
  get url(): string {
    return this.server?.url ?? "";
  }

  /** The configuration is another one. */
  told(): void {
    this.board?.told();
  }

  /** Idempotent. */
  close(): void {
    this.board?.close();
    this.server?.close();
  }

  /** @throws WeirError while the device does not. */
  #running(): DeviceBoard {
    if (this.board === undefined) throw new WeirError("the daemon is starting", { hint: "try again in a moment" });
    return this.board;
  }
}
