/** `weir lab run --metrics`: Prometheus metrics of the run that is under way. */

import { WeirError } from "../base/error.js";
import { isLoopback } from "../base/http/address.js";
import type { Where } from "../base/http/http_server.js";
import { packageVersion } from "../base/package_version.js";
import type { LabAccess, LabObserver } from "../clocks/lab/access.js";
import { labDevices } from "../clocks/lab/devices.js";
import type { Device } from "../device/device.js";
import { assessHealth, type Health } from "../device/health.js";
import { inheritedListener } from "../host/rootless.js";
import { loadAddon } from "../native/addon.js";
import type { NativeAddon } from "../native/types.js";
import { metricsOf } from "../watch/metrics/devices.js";
import { MetricsRegistry } from "../watch/metrics/registry.js";
import { MetricsServer } from "../watch/metrics/server.js";
import { type CliContext, warn } from "./context.js";
import { purposeOf } from "./listen_address.js";

/** Queue pairs with series of their own: those that have moved most bytes lately. */
const kMostPairs = 100;

interface Running {
  lab: LabAccess;
  devices: readonly Device[];
  registry: MetricsRegistry;
}

export class LabMetrics implements LabObserver {
  private server: MetricsServer | undefined;
  private running: Running | undefined;

  private constructor(private readonly name: string) {}

  /** @throws WeirError when the address cannot be listened at. */
  static async open(context: Pick<CliContext, "stderr">, where: Where, name: string): Promise<LabMetrics> {
    const metrics = new LabMetrics(name);
    metrics.server = await MetricsServer.listen(where, {
      purpose: purposeOf("metrics"),
      scrape: async (format) => {
        if (metrics.running === undefined) throw new WeirError("no run of the lab is under way");
        return metrics.running.registry.scrape(format);
      },
      health: () => metrics.#health(),
      descriptor: inheritedListener("metrics"),
    });
    context.stderr.write(`metrics: ${metrics.url}/metrics\n`);
    if (!isLoopback(where.address)) warn(context, "metrics are open to other hosts");
    return metrics;
  }

  get url(): string {
    return this.server?.url ?? "";
  }

  begun(lab: LabAccess): void {
    const version = packageVersion();
    const devices = labDevices(lab, { version, control: "", metrics: this.url });
    const workers = Object.entries({ switches: lab.switches, nics: lab.nics });
    const source = metricsOf(
      devices,
      workers.map(([name, { worker }]) => ({ name, worker })),
    );
    const options = {
      version,
      kind: "lab",
      queuePairs: kMostPairs,
      nodeInfiniband: false,
    } as const;
    this.running = { lab, devices, registry: new MetricsRegistry({ ...source, scale: () => lab.scale }, options) };
  }

  ended(): void {
    this.running = undefined;
  }

  /** Idempotent. */
  close(): void {
    this.server?.close();
  }

  #health(): Health | { status: "starting"; name: string } {
    const { name, running } = this;
    const workers = running === undefined ? [] : [running.lab.switches, running.lab.nics];
    if (running === undefined || workers.some(({ counters }) => counters.manifest.length === 0)) {
      return { status: "starting", name };
    }
    const now = loadAddon<NativeAddon>().monotonicNow();
    return assessHealth({
      name,
      failure: undefined,
      silence: Math.max(...workers.map(({ counters }) => now - counters.asOf)),
      gap: Math.max(...workers.map(({ worker }) => worker.recentGap())),
      ports: running.devices.flatMap((device) =>
        device.ports().map((port) => ({ ...port, name: `${device.name}:${port.name}` })),
      ),
    });
  }
}
