/** The result as plain tables for a terminal or a log: rates in Gb/s, sizes in KB (1000 B), ASCII only. */
import Table from "cli-table3";
import pc from "picocolors";
import { resultExtras } from "./extra_fields.js";
import { fixed, gbps, kilobytes, percent, printable } from "./format.js";
import type { Result } from "./result.js";

/** A table of cells, for whatever draws it (terminal or HTML). Columns named in `left` hold text, the rest numbers. */
export interface Grid {
  title: string;
  head: string[];
  /** How many columns from the left hold names. */
  names: number;
  rows: string[][];
}

export interface TableOptions {
  /** Escape sequences for a terminal; leave off for files, pipes and NO_COLOR. */
  color?: boolean;
}

/** Everything a person wants to know at the end of a run; ends with a line feed. */
export function renderTable(result: Result, options: TableOptions = {}): string {
  const colors = pc.createColors(options.color ?? false);
  const summary = totals(result)
    .map(([name, value]) => `${name} ${value}`)
    .join("   ");
  const sections = [colors.bold(headline(result)), ...grids(result).map((grid) => drawGrid(grid, options.color))];
  sections.splice(2, 0, summary);
  const { valid } = result.fidelity;
  const verdict = fidelityLines(result);
  sections.push(
    [valid ? colors.green(verdict[0] ?? "") : colors.red(verdict[0] ?? ""), ...verdict.slice(1)].join("\n"),
  );
  return `${sections.join("\n\n")}\n`;
}

/** "incast-4to1: wire, scale 40, seed 1, 0.25 s". */
export function headline(result: Result): string {
  const profile = result.profile === undefined ? "" : `, profile ${printable(result.profile)}`;
  const { path_mtu } = resultExtras(result);
  const mtu = path_mtu === undefined ? "" : `, path MTU ${[path_mtu].flat().join(" ")}`;
  return (
    `${printable(result.scenario)}: ${result.clock}, scale ${result.scale}, seed ${result.seed}, ` +
    `${result.duration_s} s${profile}${mtu}`
  );
}

/** Totals as name and value: goodput, Jain's index, and the share of what the headers leave where that is known. */
export function totals(result: Result): [string, string][] {
  const { goodput_bps, jain } = result.totals;
  const { goodput_limit_bps } = resultExtras(result).totals;
  const share: [string, string][] =
    goodput_limit_bps === undefined || goodput_limit_bps <= 0
      ? []
      : [["of what the headers leave", percent(goodput_bps / goodput_limit_bps)]];
  return [["total goodput Gb/s", gbps(goodput_bps)], ["Jain's index", jain.toFixed(4)], ...share];
}

/** The tables of a result, flows first; tables without rows are left out. */
export function grids(result: Result): Grid[] {
  return [flowGrid(result), queueGrid(result), switchGrid(result), nicGrid(result)].filter(
    (grid) => grid.rows.length > 0,
  );
}

/** First the verdict, then one line for each reason. */
export function fidelityLines({ fidelity }: Result): string[] {
  const { p50, p99, max } = fidelity.loop_gap_us;
  const figures = `loop gap p50 ${fixed(p50)} / p99 ${fixed(p99)} / max ${fixed(max)} us wall, host drops ${fidelity.host_drops}`;
  return [
    `fidelity: ${fidelity.valid ? "valid" : "INVALID"}, ${figures}`,
    ...fidelity.reasons.map((reason) => `  - ${printable(reason)}`),
  ];
}

function flowGrid({ flows }: Result): Grid {
  return {
    title: "Flows",
    head: ["flow", "from -> to", "prio", "goodput Gb/s", "wire Gb/s", "packets", "lost", "CNPs"],
    names: 2,
    rows: flows.map((flow) => [
      printable(flow.id),
      `${printable(flow.from)} -> ${printable(flow.to)}`,
      String(flow.priority),
      gbps(flow.goodput_bps),
      gbps(flow.wire_bps),
      String(flow.packets),
      String(flow.lost),
      String(flow.cnp_handled),
    ]),
  };
}

function queueGrid({ switches }: Result): Grid {
  const rows = Object.entries(switches).flatMap(([name, { queues }]) =>
    Object.entries(queues).flatMap(([port, priorities]) =>
      Object.entries(priorities)
        .filter(([, queue]) => queue.max > 0)
        .map(([priority, { mean, p50, p95, p99, max }]) => [
          printable(name),
          printable(port),
          priority,
          ...[mean, p50, p95, p99, max].map(kilobytes),
        ]),
    ),
  );
  return {
    title: "Queues, KB",
    head: ["switch", "port to", "prio", "mean", "p50", "p95", "p99", "max"],
    names: 2,
    rows,
  };
}

function switchGrid({ switches }: Result): Grid {
  const rows = Object.entries(switches).map(([name, { ecn_marked, pfc_sent, drops }]) => [
    printable(name),
    String(ecn_marked),
    byKey(pfc_sent),
    byKey(drops),
  ]);
  return { title: "Switches", head: ["switch", "ECN marked", "PFC sent prio:n", "drops"], names: 1, rows };
}

function nicGrid({ nics }: Result): Grid {
  const rows = Object.entries(nics).map(([name, { np_cnp_sent, rp_cnp_handled, pfc_received }]) => [
    printable(name),
    String(np_cnp_sent),
    String(rp_cnp_handled),
    byKey(pfc_received),
  ]);
  return { title: "NICs", head: ["NIC", "CNP sent", "CNP handled", "PFC received prio:n"], names: 1, rows };
}

/** "3:217 6:1", what is zero left out; "0" when nothing remains. The shape of `dcb pfc show`. */
function byKey(counts: Record<string, number>): string {
  const some = Object.entries(counts).filter(([, n]) => n > 0);
  return some.length === 0 ? "0" : some.map(([key, n]) => `${printable(key)}:${n}`).join(" ");
}

/** One table under its title, no trailing blanks and no final line feed. */
export function drawGrid(grid: Grid, color = false): string {
  const colors = pc.createColors(color);
  const none = { top: "", "top-mid": "", "top-left": "", "top-right": "", left: "", right: "", "left-mid": "" };
  const table = new Table({
    head: grid.head.map((name) => colors.dim(name)),
    colAligns: grid.head.map((_, i) => (i < grid.names ? "left" : "right")),
    chars: {
      ...none,
      bottom: "",
      "bottom-mid": "",
      "bottom-left": "",
      "bottom-right": "",
      "right-mid": "",
      mid: "-",
      "mid-mid": "  ",
      middle: "  ",
    },
    style: { "padding-left": 0, "padding-right": 0, head: [], border: [], compact: true },
  });
  table.push(...grid.rows);
  const lines = table.toString().split("\n");
  return [colors.bold(grid.title), ...lines.map((line) => line.trimEnd())].join("\n");
}
