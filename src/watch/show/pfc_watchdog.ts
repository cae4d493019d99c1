/** PFC watchdog of a switch: Weir's own table, and those of SONiC's `pfcwd`. */
import { formatTime } from "../../base/units.js";
import type { SwitchReport } from "../../device/protocol.js";
import { printable } from "../../result/report/format.js";
import { ShownCounters, text } from "./counts.js";
import { kNotAvailable, tabulate } from "./tabulate.js";
import { gridView, textView } from "./view.js";

export const pfcwd = gridView({
  description: "PFC watchdog of a switch: storms at its egress queues, and what they cost",
  of: "switch",
  requests: ["counters", "switch"],
  grids({ counters, switch: report }) {
    const own = new ShownCounters(counters);
    const { enabled, detection_time, restoration_time, action } = report.pfc_watchdog;
    const times = `detection ${formatTime(detection_time)}, restoration ${formatTime(restoration_time)}`;
    return [
      {
        title: `PFC watchdog ${enabled ? `on: ${action}, ${times}` : "off"}`,
        head: ["Port", "TxQ", "Status", "Storm detected/restored", "Tx ok/drop", "Rx drop"],
        names: 3,
        rows: stormsOf(own, report).map(({ port, priority, status, storms, tx, rx }) => [
          ...[printable(port), `UC${priority}`, status, storms, tx, rx],
        ]),
      },
    ];
  },
});

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
function stormsOf(own: ShownCounters, { pfc_priorities, pfc_watchdog, ports }: SwitchReport) {
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

export const kPfcwdViews = { "pfcwd stats": pfcwdStats, "pfcwd config": pfcwdConfig };
