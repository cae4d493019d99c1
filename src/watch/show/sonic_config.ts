/** Settings of a switch, in the shapes of SONiC's `pfcwd`, `ecnconfig` and `mmuconfig`. */
import type { SwitchReport } from "../../device/protocol.js";
import { printable } from "../../result/report/format.js";
import { ShownCounters, text } from "./counts.js";
import { kPool } from "./sonic.js";
import { kNotAvailable, tabulate } from "./tabulate.js";
import { textView } from "./view.js";

type Port = SwitchReport["ports"][number];

/** SONiC's counts by storm, and in the other direction, do not exist here. */
const pfcwdStats = textView({
  description: "PFC watchdog: storms by queue",
  of: "switch",
  requests: ["counters", "switch"],
  text: ({ counters, switch: report }) => {
    const rows = stormsOf(new ShownCounters(counters), report).map(({ queue, status, storms, tx }) => [
      ...[queue, status, storms, tx],
      ...[kNotAvailable, kNotAvailable, kNotAvailable],
    ]);
    const head = ["QUEUE", "STATUS", "STORM DETECTED/RESTORED", "TX OK/DROP"];
    return tabulate([...head, "RX OK/DROP", "TX LAST OK/DROP", "RX LAST OK/DROP"], rows);
  },
  json: ({ counters, switch: report }) =>
    Object.fromEntries(
      stormsOf(new ShownCounters(counters), report).map(({ queue, status, storms, tx }) => [
        queue,
        { STATUS: status, "STORM DETECTED/RESTORED": storms, "TX OK/DROP": tx },
      ]),
    ),
});

/** Storms of each queue that the watchdog looks after. */
export function stormsOf(own: ShownCounters, { pfc_priorities, pfc_watchdog, ports }: SwitchReport) {
  return ports.flatMap(({ name: port, pfc_storms }) =>
    (pfc_watchdog.enabled ? pfc_priorities : []).map((priority) => {
      const of = (counter: string) => text(own.get(counter, { port, priority: String(priority) }));
      return {
        ...{ port, priority },
        queue: `${printable(port)}:${priority}`,
        status: (pfc_storms >> priority) & 1 ? "stormed" : "operational",
        storms: `${of("pfc_wd_storm_detected")}/${of("pfc_wd_storm_restored")}`,
        tx: `${of("queue_packets")}/${of("pfc_wd_tx_drop")}`,
        rx: of("pfc_wd_rx_drop"),
      };
    }),
  );
}

const pfcwdConfig = textView({
  description: "PFC watchdog: what it is set to, times in ms",
  of: "switch",
  requests: ["switch"],
  text: ({ switch: { pfc_watchdog: w, ports } }) =>
    tabulate(
      ["PORT", "ACTION", "DETECTION TIME", "RESTORATION TIME", "HISTORY"],
      (w.enabled ? ports : []).map(({ name }) => [
        ...[printable(name), w.action, String(w.detection_time / 1e6), String(w.restoration_time / 1e6), "disable"],
      ]),
    ),
  json: ({ switch: { pfc_watchdog: w, ports } }) =>
    Object.fromEntries(
      (w.enabled ? ports : []).map(({ name }) => [
        name,
        { action: w.action, detection_time: w.detection_time / 1e6, restoration_time: w.restoration_time / 1e6 },
      ]),
    ),
});

const kDefaultProfile = "default";

/** Ports by the profile that they have. */
function byProfile(ports: readonly Port[]): { profile: string; ports: readonly [Port, ...Port[]] }[] {
  const found = new Map<string, [Port, ...Port[]]>();
  for (const port of ports) {
    const name = port.profile ?? kDefaultProfile;
    const others = found.get(name);
    if (others === undefined) found.set(name, [port]);
    else others.push(port);
  }
  return [...found].map(([profile, of]) => ({ profile, ports: of }));
}

const names = (ports: readonly Port[]) => ports.map(({ name }) => printable(name)).join(",");

/** A table without a head, under a line of its own. */
function profileText(title: string, fields: Readonly<Record<string, string | number>>): string {
  const rows = Object.entries(fields).map(([name, value]) => [name, String(value)] as const);
  const widths = [0, 1].map((i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  const rule = widths.map((width) => "-".repeat(width)).join("  ");
  const lines = rows.map(([name, value]) => `${name.padEnd(widths[0] ?? 0)}  ${value}`);
  return [title, rule, ...lines, rule, ""].map((line) => `${line}\n`).join("");
}

const marks = ({ ecn }: SwitchReport, [port]: readonly [Port, ...Port[]], of: string) => ({
  ecn: ecn.enabled ? "ecn_all" : "ecn_none",
  green_min_threshold: port.settings.ecn.kmin,
  green_max_threshold: port.settings.ecn.kmax,
  green_drop_probability: Number((port.settings.ecn.pmax * 100).toPrecision(6)),
  queues: ecn.priorities.join(","),
  ports: of,
});

const ecnConfig = textView({
  description: "what queues are marked by, of each profile of ports",
  of: "switch",
  requests: ["switch"],
  text: ({ switch: report }) =>
    byProfile(report.ports)
      .map(({ profile, ports }) => profileText(`Profile: ${profile}`, marks(report, ports, names(ports))))
      .join(""),
  json: ({ switch: report }) =>
    Object.fromEntries(
      byProfile(report.ports).map(({ profile, ports }) => [profile, marks(report, ports, names(ports))]),
    ),
});

/** SONiC's dynamic_th is the exponent of a power of two. */
const exponent = (alpha: number) => Number(Math.log2(alpha).toPrecision(4));

function buffers({ thresholds }: SwitchReport, [port]: readonly [Port, ...Port[]], of: string) {
  const { headroom, beta, threshold, xon_offset, lossy_alpha } = port.settings.buffer;
  return {
    pool: kPool,
    ...(thresholds.mode === "static"
      ? { static_th: threshold }
      : { dynamic_th: exponent(beta / thresholds.priorities) }),
    xoff: headroom,
    xon_offset,
    lossy_dynamic_th: exponent(lossy_alpha),
    ports: of,
  };
}

const bufferConfiguration = textView({
  description: "the shared buffer, and what priority groups may have of it, of each profile of ports",
  of: "switch",
  requests: ["switch"],
  text: ({ switch: report }) =>
    profileText(`Pool: ${kPool}`, { mode: report.thresholds.mode, size: report.buffer.total, type: "both" }) +
    byProfile(report.ports)
      .map(({ profile, ports }) => profileText(`Profile: ${profile}`, buffers(report, ports, names(ports))))
      .join(""),
  json: ({ switch: report }) => ({
    pools: { [kPool]: { mode: report.thresholds.mode, size: report.buffer.total, type: "both" } },
    profiles: Object.fromEntries(
      byProfile(report.ports).map(({ profile, ports }) => [profile, buffers(report, ports, names(ports))]),
    ),
  }),
});

export const kSonicConfigViews = {
  "pfcwd stats": pfcwdStats,
  "pfcwd config": pfcwdConfig,
  "ecn config": ecnConfig,
  "buffer configuration": bufferConfiguration,
};
