/** Servers of daemons: metrics, dashboard. */
import { WeirError } from "../base/error.js";
import { isLoopback } from "../base/http/address.js";
import type { DaemonService, DaemonServices, ServedDaemon } from "../daemon/run.js";
import { openDaemonDashboard } from "../watch/dashboard/daemon_dashboard.js";
import { metricsOf } from "../watch/metrics/devices.js";
import { MetricsRegistry } from "../watch/metrics/registry.js";
import { MetricsServer } from "../watch/metrics/server.js";

const kMetricsPurpose = {
  name: "metrics",
  field: "metrics",
  hint: "set metrics.address and metrics.port, or metrics: false",
};

export const kDaemonServices: DaemonServices = {
  metrics: serveMetrics,
  dashboard: async (daemon) => {
    const [device] = daemon.devices;
    const where = device.config().dashboard;
    return where && openDaemonDashboard(where, { ...daemon, ...device });
  },
};

async function serveMetrics(daemon: ServedDaemon): Promise<DaemonService | undefined> {
  const { name, devices, reloads, version } = daemon;
  const { kind, metrics: where } = devices[0].config();
  if (where === undefined) return undefined;
  const workers = devices.map(({ device, worker }) => ({ name: device.name, worker }));
  const source = {
    ...metricsOf(
      devices.map(({ device }) => device),
      workers,
    ),
    reloads: () => reloads,
  };
  const registry = new MetricsRegistry(source, {
    version,
    kind,
    queuePairs: where.per_qp === true ? Number.POSITIVE_INFINITY : Number(where.per_qp),
    nodeInfiniband: where.node_infiniband,
  });
  const server = await MetricsServer.listen(where, {
    purpose: kMetricsPurpose,
    scrape: async (format) => {
      if (daemon.health() === undefined) throw new WeirError("the daemon is starting");
      return registry.scrape(format);
    },
    health: () => daemon.health() ?? { status: "starting", name },
  });
  if (!isLoopback(where.address)) daemon.warn({ url: server.url }, "metrics are open to other hosts");
  return server;
}
