/** The hosts of a lab that is up, as a table. */
import { formatRate } from "../base/units.js";
import type { StandingReport } from "../device/protocol.js";
import { printable } from "../result/report/format.js";
import { drawGrid } from "../result/report/table.js";

/** Most hosts of a table. */
const kMostRows = 32;

/** Says what a rate of the file is here. */
export function scaleText({ scale, hosts }: StandingReport): string {
  const fastest = Math.max(0, ...hosts.map(({ rate }) => rate));
  if (scale === 1 || fastest === 0) return "scale 1: rates and times are those of the file";
  return `scale ${scale}: ${formatRate(fastest, 4)} of the file are ${formatRate(fastest / scale, 4)} here, and times ${scale} times as long`;
}

export function hostTable({ hosts, scale }: StandingReport, color: boolean): string {
  const head = ["host", "address", "IPv6", "switch", "rate here", "MTU", "programs"];
  const shown = hosts.slice(0, kMostRows);
  const rows = shown.map((host) => [
    printable(host.name),
    host.addresses[0] ?? "",
    host.addresses[1] ?? "",
    printable(host.switch),
    host.rate === 0 ? "unlimited" : formatRate(host.rate / scale, 4),
    String(host.mtu),
    host.processes.map(({ pid, command }) => `${printable(command)} ${pid}`).join(", "),
  ]);
  const rest = hosts.length > shown.length ? `\n... and ${hosts.length - shown.length} more: weir lab ps --json` : "";
  return drawGrid({ title: "Hosts", head, names: 4, rows }, color) + rest;
}
