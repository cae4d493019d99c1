/** The result as plain tables for a terminal or a log: rates in Gb/s, sizes in KB (1000 B), ASCII only. */
import Table from "cli-table3";
import pc from "picocolors";
import { formatSize, formatTime } from "../base/units.js";
import { hearsCnms } from "../congestion/flow_state.js";
import type { FctResult, GroupResult, Result } from "../result/result.js";
import { fixed, gbps, kilobytes, percent, printable } from "./format.js";

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
  const drawn = grids(result, kTerminalRows).map((grid) => drawGrid(grid, options.color));
  const sections = [colors.bold(headline(result)), ...drawn];
  sections.splice(drawn.length === 0 ? 1 : 2, 0, summary);
  const { valid } = result.fidelity;
  const verdict = fidelityLines(result);
  const [changed, ...changes] = changeLines(result);
  if (changed !== undefined)
    sections.push([colors.yellow(changed), ...changes.map((line) => `  - ${line}`)].join("\n"));
  sections.push(
    [valid ? colors.green(verdict[0] ?? "") : colors.red(verdict[0] ?? ""), ...verdict.slice(1)].join("\n"),
  );
  return `${sections.join("\n\n")}\n`;
}

/** "incast-4to1: wire, scale 40, seed 1, 0.25 s". */
export function headline(result: Result): string {
  const profile = result.profile === undefined ? "" : `, profile ${printable(result.profile)}`;
  const { path_mtu } = result;
  const scale = result.clock === "wire" ? `, scale ${result.scale}` : "";
  const until = result.until_s === undefined ? "" : `${result.until_s} s of `;
  const mtu = path_mtu === undefined ? "" : `, path MTU ${[path_mtu].flat().join(" ")}`;
  return (
    `${printable(result.scenario)}: ${result.clock}${scale}, seed ${result.seed}, ` +
    `${until}${result.duration_s} s${profile}${mtu}`
  );
}

/** What senders are told of congestion by. */
export function feedbackName({ congestion_control }: Pick<Result, "congestion_control">): "CNMs" | "CNPs" {
  return hearsCnms(congestion_control) ? "CNMs" : "CNPs";
}

/** Totals as name and value: goodput, Jain's index, the share of what the headers leave where that is known, and feedback. */
export function totals(result: Result): [string, string][] {
  const { goodput_bps, jain, feedback_per_s, goodput_limit_bps } = result.totals;
  const share: [string, string][] =
    goodput_limit_bps === undefined || goodput_limit_bps <= 0
      ? []
      : [["of what the headers leave", percent(goodput_bps / goodput_limit_bps)]];
  const feedback: [string, string][] =
    feedback_per_s === undefined ? [] : [[`${feedbackName(result)}/s`, fixed(feedback_per_s)]];
  return [["total goodput Gb/s", gbps(goodput_bps)], ["Jain's index", jain.toFixed(4)], ...share, ...feedback];
}

/** A table with more than `most` rows shows `shown` of them. */
export interface RowLimit {
  most: number;
  shown: number;
}

const kTerminalRows: RowLimit = { most: 40, shown: 10 };

/**
 * The tables of a result, flows first; tables without rows are left out. Of long ones those rows are shown that have the most to
 * tell, and the title says so.
 */
export function grids(result: Result, { most, shown }: RowLimit): Grid[] {
  const others = [
    queueGrid(result),
    congestionPointGrid(result),
    switchGrid(result),
    nicGrid(result),
    linkGrid(result),
  ];
  return [
    shorten(flowGrid(result), most, { shown, omitted: result.flows_omitted }),
    groupGrid(result),
    fctGrid(result),
    ...others.map((grid) => shorten(grid, most, { shown })),
  ].filter((grid) => grid.rows.length > 0);
}

/** A grid before it is cut: what to keep first, and what its order is called. */
export interface RankedGrid extends Grid {
  ranks: readonly number[];
  ranked: string;
}

/**
 * Of a grid of more than `most` rows the `shown` ones with the highest ranks, in their order; equal ranks: those that come first.
 * `omitted`: rows that the grid itself has left out.
 */
export function shorten(
  { ranks, ranked, ...grid }: RankedGrid,
  most: number,
  { shown = most, omitted = 0 } = {},
): Grid {
  const all = grid.rows.length + omitted;
  if (all <= most) return grid;
  const order = grid.rows.map((_, i) => i).sort((a, b) => (ranks[b] as number) - (ranks[a] as number) || a - b);
  const kept = new Set(order.slice(0, shown));
  const rows = grid.rows.filter((_, i) => kept.has(i));
  return { ...grid, title: `${grid.title} (${rows.length} of ${all}, ${ranked})`, rows };
}

/** First the verdict, then one line for each reason. */
export function fidelityLines({ fidelity, clock }: Result): string[] {
  const { p50, p99, max } = fidelity.loop_gap_us;
  const onWire = `loop gap p50 ${fixed(p50)} / p99 ${fixed(p99)} / max ${fixed(max)} us wall, host drops ${fidelity.host_drops}`;
  const figures = { wire: onWire, sim: "virtual time", model: "equations" }[clock];
  return [
    `fidelity: ${fidelity.valid ? "valid" : "INVALID"}, ${figures}`,
    ...fidelity.reasons.map((reason) => `  - ${printable(reason)}`),
  ];
}

/** Of a run that somebody changed while it ran: that it is not its scenario's, then each change. */
export function changeLines({ changes = [] }: Result): string[] {
  if (changes.length === 0) return [];
  return [
    "changed by hand while it ran: not the scenario as written",
    ...changes.map(({ at_s, set }) => `at ${formatTime(Math.round(at_s * 1e9), 4)}: ${set.map(printable).join(", ")}`),
  ];
}

function flowGrid(result: Result): RankedGrid {
  const { flows } = result;
  return {
    title: "Flows",
    ranks: flows.map(() => 0),
    ranked: "the first",
    head: ["flow", "from -> to", "prio", "goodput Gb/s", "wire Gb/s", "packets", "lost", feedbackName(result)],
    names: 2,
    rows: flows.map((flow) => [
      printable(flow.id),
      `${printable(flow.from)} -> ${printable(flow.to)}`,
      String(flow.priority),
      gbps(flow.goodput_bps),
      gbps(flow.wire_bps),
      String(flow.packets),
      String(flow.lost),
      String(flow.cnm_handled ?? flow.cnp_handled),
    ]),
  };
}

/** What the flows of each traffic entry got; only where that says more than the flows do. */
function groupGrid({ groups = {} }: Result): Grid {
  const several = Object.values(groups);
  const telling = several.length > 1 && several.some(({ flows }) => flows > 1);
  const figures = ({ mean, min, p10, p50, max }: GroupResult["goodput_bps"]) => [mean, min, p10, p50, max].map(gbps);
  return {
    title: "Traffic, Gb/s",
    head: ["id", "what", "count", "mean", "min", "p10", "p50", "max"],
    names: 2,
    rows: Object.entries(telling ? groups : {}).flatMap(([name, { flows, goodput_bps, transfers }]) => [
      [printable(name), "flows", String(flows), ...figures(goodput_bps)],
      ...(transfers === undefined
        ? []
        : [[printable(name), "transfers", String(transfers.count), ...figures(transfers.throughput_bps)]]),
    ]),
  };
}

/** Completion times: all, then by size. */
function fctGrid({ fct }: Result): Grid {
  const row = (name: string, { count, slowdown, fct_us }: Pick<FctResult, "count" | "slowdown" | "fct_us">) => [
    name,
    String(count),
    ...[slowdown.mean, slowdown.p50, slowdown.p95, slowdown.p99, slowdown.max].map(fixed),
    ...[fct_us.p50, fct_us.p99].map(fixed),
  ];
  const incomplete = fct === undefined || fct.incomplete === 0 ? "" : `, ${fct.incomplete} not complete`;
  return {
    title: `Flow completion times${incomplete}`,
    head: ["size", "count", "slowdown mean", "p50", "p95", "p99", "max", "FCT us p50", "p99"],
    names: 1,
    rows: fct === undefined ? [] : [row("all", fct), ...fct.bins.map((bin) => row(sizeClass(bin), bin))],
  };
}

/** "10 KB to 100 KB". */
export function sizeClass({ above_bytes, up_to_bytes }: FctResult["bins"][number]): string {
  if (up_to_bytes === undefined) return `over ${formatSize(above_bytes, 4)}`;
  return above_bytes === 0
    ? `up to ${formatSize(up_to_bytes, 4)}`
    : `${formatSize(above_bytes, 4)} to ${formatSize(up_to_bytes, 4)}`;
}

function queueGrid({ switches }: Result): RankedGrid {
  const queues = Object.entries(switches)
    .flatMap(([name, one]) =>
      Object.entries(one.queues).flatMap(([port, priorities]) =>
        Object.entries(priorities).map(([priority, queue]) => ({ name, port, priority, queue })),
      ),
    )
    .filter(({ queue }) => queue.max > 0);
  return {
    title: "Queues, KB",
    head: ["switch", "port to", "prio", "mean", "p50", "p95", "p99", "max"],
    names: 2,
    rows: queues.map(({ name, port, priority, queue: { mean, p50, p95, p99, max } }) => [
      printable(name),
      printable(port),
      priority,
      ...[mean, p50, p95, p99, max].map(kilobytes),
    ]),
    ranks: queues.map(({ queue }) => queue.p99),
    ranked: "longest p99",
  };
}

/** Of QCN: what each congestion point saw and said. */
function congestionPointGrid({ switches }: Result): RankedGrid {
  const points = Object.entries(switches).flatMap(([name, { congestion_points = {} }]) =>
    Object.entries(congestion_points).flatMap(([port, priorities]) =>
      Object.entries(priorities).map(([priority, point]) => ({ name, port, priority, point })),
    ),
  );
  return {
    title: "Congestion points",
    head: ["switch", "port to", "prio", "frames", "CNMs", "frames per CNM", "discarded"],
    names: 2,
    rows: points.map(({ name, port, priority, point: { frames, cnms, discarded } }) => [
      printable(name),
      printable(port),
      priority,
      String(frames),
      String(cnms),
      cnms === 0 ? "-" : fixed(frames / cnms),
      String(discarded),
    ]),
    ranks: points.map(({ point }) => point.cnms),
    ranked: "most CNMs",
  };
}

function switchGrid({ switches, congestion_control }: Result): RankedGrid {
  const qcn = hearsCnms(congestion_control);
  const toldBy = (one: Result["switches"][string]) => (qcn ? (one.cnm_sent ?? 0) : one.ecn_marked);
  return {
    title: "Switches",
    head: ["switch", qcn ? "CNM sent" : "ECN marked", "PFC sent prio:n", "drops"],
    names: 1,
    rows: Object.entries(switches).map(([name, one]) => [
      printable(name),
      String(toldBy(one)),
      byKey(one.pfc_sent),
      byKey(one.drops),
    ]),
    ranks: Object.values(switches).map((one) => toldBy(one) + sum(one.pfc_sent) + sum(one.drops)),
    ranked: `most ${qcn ? "CNMs" : "marks"}, PFC and drops`,
  };
}

function nicGrid(result: Result): RankedGrid {
  return hearsCnms(result.congestion_control) ? qcnNicGrid(result) : dcqcnNicGrid(result);
}

function qcnNicGrid({ nics }: Result): RankedGrid {
  const all = Object.entries(nics).map(([name, nic]) => ({
    name,
    handled: nic.rp_cnm_handled ?? 0,
    refused: nic.rp_cnm_refused ?? {},
    limited: nic.rp_limited_s ?? {},
    paused: nic.pfc_received,
  }));
  return {
    title: "NICs",
    head: ["NIC", "CNM handled", "refused", "limited s prio:t", "PFC received prio:n"],
    names: 1,
    rows: all.map(({ name, handled, refused, limited, paused }) => [
      printable(name),
      String(handled),
      byKey(refused),
      byKey(limited, fixed),
      byKey(paused),
    ]),
    ranks: all.map(({ handled, refused, paused }) => handled + sum(refused) + sum(paused)),
    ranked: "most CNMs and PFC",
  };
}

function dcqcnNicGrid({ nics }: Result): RankedGrid {
  const rows = Object.entries(nics).map(([name, { np_cnp_sent, rp_cnp_handled, pfc_received }]) => [
    printable(name),
    String(np_cnp_sent),
    String(rp_cnp_handled),
    byKey(pfc_received),
  ]);
  return {
    title: "NICs",
    head: ["NIC", "CNP sent", "CNP handled", "PFC received prio:n"],
    names: 1,
    rows,
    ranks: Object.values(nics).map((nic) => nic.np_cnp_sent + nic.rp_cnp_handled + sum(nic.pfc_received)),
    ranked: "most CNPs and PFC",
  };
}

/** Directions that carried anything. Those that were paused longest come before those that were used most. */
function linkGrid({ links = [] }: Result): RankedGrid {
  const used = links.filter(({ packets }) => packets > 0);
  const pauses = used.map((link) => sum(link.pause_time_s));
  const paused = new Set([...pauses].sort((a, b) => b - a).slice(0, 5));
  return {
    title: "Links",
    head: ["from -> to", "Gb/s", "used", "packets", "lost", "paused us prio:t"],
    names: 1,
    rows: used.map((link) => [
      `${printable(link.from)} -> ${printable(link.to)}`,
      fixed(link.rate_bps / 1e9),
      percent(link.utilisation),
      String(link.packets),
      String(link.lost),
      byKey(link.pause_time_s, (seconds) => fixed(seconds * 1e6)),
    ]),
    ranks: used.map((link, i) => link.utilisation + (pauses[i] !== 0 && paused.has(pauses[i] as number) ? 10 : 0)),
    ranked: "most paused and most used",
  };
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, n) => total + n, 0);
}

/** "3:217 6:1", what is zero left out; "0" when nothing remains. The shape of `dcb pfc show`. */
function byKey(counts: Record<string, number>, text: (n: number) => string = String): string {
  const some = Object.entries(counts).filter(([, n]) => n > 0);
  return some.length === 0 ? "0" : some.map(([key, n]) => `${printable(key)}:${text(n)}`).join(" ");
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
