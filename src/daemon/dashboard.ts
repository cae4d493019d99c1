/** The dashboard of a daemon: server and board together. */
import type { DashboardConfig } from "../config/daemon.js";
import { DeviceBoard, type DeviceBoardOptions } from "../dashboard/device_board.js";
import { EventStreams } from "../dashboard/event_streams.js";
import { pageFiles } from "../dashboard/page_files.js";
import { DashboardServer } from "../dashboard/server.js";

const kPurpose = {
  name: "dashboard",
  field: "dashboard",
  hint: "set dashboard.address and dashboard.port, or dashboard: false",
};

export class DaemonDashboard {
  private constructor(
    private readonly board: DeviceBoard,
    private readonly server: DashboardServer,
  ) {}

  /** @throws WeirError when the address cannot be listened at, or the page is not built. */
  static async open(where: DashboardConfig, options: DeviceBoardOptions): Promise<DaemonDashboard> {
    const streams: EventStreams = new EventStreams((watched) => board.watched(watched));
    const board = new DeviceBoard(streams, options);
    const server = await DashboardServer.listen(where, {
      source: board,
      streams,
      files: pageFiles(),
      purpose: kPurpose,
    });
    board.watched(streams.watched);
    return new DaemonDashboard(board, server);
  }

  /** Where it is. */
  get address(): string {
    return this.server.address;
  }

  /** The same with the token that changes take, where the file has none. */
  get url(): string {
    return this.server.url;
  }

  /** The configuration is another one. */
  told(): void {
    this.board.told();
  }

  /** Idempotent. */
  close(): void {
    this.board.close();
    this.server.close();
  }
}
