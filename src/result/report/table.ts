/** The result as plain tables for a terminal or a log: rates in Gb/s, sizes in KB (1000 B), ASCII only. */
import pc from "picocolors";
import { formatTime } from "../../base/units.js";
import { hearsCnms } from "../../congestion/flow_state.js";
import { placeOfFault } from "../../scenario/faults.js";
import { describeMade } from "../made_schema.js";
import { eachQueue, type QueuePlace } from "../queues.js";
import type { FlowResult, LinkResult, NicResult, Result } from "../result.js";
import { type CompletionClass, completionClasses } from "./completion_classes.js";
import { fixed, gbps, kilobytes, percent, printable } from "./format.js";
import { graphGrid, phaseGrid } from "./graph_tables.js";
import type { Grid } from "./grid.js";

export type { Grid } from "./grid.js";

export interface TableOptions {
  /** Whether escape sequences for a terminal are written; leave it off for files, pipes and NO_COLOR. */
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
  if (summary !== "") sections.splice(drawn.length === 0 ? 1 : 2, 0, summary);
  const { valid } = result.fidelity;
  const verdict = fidelityLines(result);
  for (const [head, ...lines] of [changeLines(result), eventLines(result)]) {
    if (head !== undefined) sections.push([colors.yellow(head), ...lines.map((line) => `  - ${line}`)].join("\n"));
  }
  sections.push(
    [valid ? colors.green(verdict[0] ?? "") : colors.red(verdict[0] ?? ""), ...verdict.slice(1)].join("\n"),
  );
  if (result.made !== undefined) sections.push(`made by ${printable(describeMade(result.made))}`);
  return `${sections.join("\n\n")}\n`;
}

/** Returns "incast-4to1: wire, scale 40, seed 1, 0.25 s". */
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

/** Name of the frames that tell senders of congestion. */
export function feedbackName({ congestion_control }: Pick<Result, "congestion_control">): "CNMs" | "CNPs" {
  return hearsCnms(congestion_control) ? "CNMs" : "CNPs";
}

/** Totals as name and value: goodput and Jain's index where there are flows, the share of the payload limit where that is known, and feedback. */
export function totals(result: Result): [string, string][] {
  const { goodput_bps, jain, feedback_per_s, goodput_limit_bps } = result.totals;
  const share: [string, string][] =
    goodput_limit_bps === undefined || goodput_limit_bps <= 0
      ? []
      : [["share of the payload limit", percent(goodput_bps / goodput_limit_bps)]];
  const feedback: [string, string][] =
    feedback_per_s === undefined ? [] : [[`${feedbackName(result)}/s`, fixed(feedback_per_s)]];
  // What programs move is in no flow.
  const flows: [string, string][] =
    result.flows.length === 0 && result.programs !== undefined
      ? []
      : [
          ["total goodput Gb/s", gbps(goodput_bps)],
          ["Jain's index", jain.toFixed(4)],
        ];
  return [...flows, ...share, ...feedback];
}

/** A table with more than `most` rows shows `shown` of them. */
export interface RowLimit {
  most: number;
  shown: number;
}

const kTerminalRows: RowLimit = { most: 40, shown: 10 };

/**
 * Tables of a result, flows first; tables without rows are left out. Long ones show the rows that have the most to tell, and the title says
 * so.
 */
export function grids(result: Result, { most, shown }: RowLimit): Grid[] {
  const others = [
    programGrid(result),
    queueGrid(result),
    congestionPointGrid(result),
    switchGrid(result),
    nicGrid(result),
    linkGrid(result),
    faultGrid(result),
    jointGrid(result),
  ];
  return [
    shorten(flowGrid(result), most, { shown, omitted: result.flows_omitted }),
    groupGrid(result),
    fctGrid(result),
    graphGrid(result.graphs),
    phaseGrid(result.graphs),
    ...others.map((grid) => shorten(grid, most, { shown })),
  ].filter((grid) => grid.rows.length > 0);
}

/** A grid before it is cut, with the rank of each row and a name for the order of the ranks. */
export interface RankedGrid extends Grid {
  ranks: readonly number[];
  ranked: string;
}

/**
 * Cuts a grid of more than `most` rows to the `shown` ones with the highest ranks, in their order; of equal ranks the first come first.
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

/** Gives the verdict first, then one line for each reason. */
export function fidelityLines({ fidelity, clock }: Result): string[] {
  const { p50, p99, max } = fidelity.loop_gap_us;
  const onWire = `poll loop gap p50 ${fixed(p50)} / p99 ${fixed(p99)} / max ${fixed(max)} us wall, host drops ${fidelity.host_drops}`;
  const figures = { wire: onWire, sim: "virtual time", model: "equations" }[clock];
  return [
    `fidelity: ${fidelity.valid ? "valid" : "INVALID"}, ${figures}`,
    ...fidelity.reasons.map((reason) => `  - ${printable(reason)}`),
    ...(fidelity.varies ?? []).map((reason) => `  runs differ: ${printable(reason)}`),
  ];
}

/** Tells of a run that somebody changed while it ran: first that it is not its scenario's, then each change. */
export function changeLines({ changes = [] }: Result): string[] {
  if (changes.length === 0) return [];
  return [
    "changed by hand while it ran: not the scenario as written",
    ...changes.map(({ at_s, set }) => `${moment(at_s)}: ${set.map(printable).join(", ")}`),
  ];
}

/** Tells of a run whose links or switches failed, as its scenario says: each time at which one did. */
export function eventLines({ events = [] }: Result): string[] {
  if (events.length === 0) return [];
  return ["what happened to the network", ...events.map(({ at_s, what }) => `${moment(at_s)}: ${printable(what)}`)];
}

const moment = (seconds: number) => `at ${formatTime(Math.round(seconds * 1e9), 4)}`;

/** Heading of a column, and the text of a row's cell. */
type Column<T> = readonly [head: string, text: (row: T) => string];

/** `ranks` and `ranked` decide which rows of a table that is too long are kept. */
function gridOf<T>(
  title: string,
  of: readonly T[],
  columns: readonly Column<T>[],
  {
    names = 1,
    rank = () => 0,
    ranked = "the first",
  }: { names?: number; rank?: (row: T) => number; ranked?: string } = {},
): RankedGrid {
  const head = columns.map(([name]) => name);
  return {
    title,
    head,
    names,
    rows: of.map((row) => columns.map(([, text]) => text(row))),
    ranks: of.map(rank),
    ranked,
  };
}

function flowGrid(result: Result): RankedGrid {
  // In the result of a part the other end's figures are missing: another part has them.
  const of = (one: "sender" | "receiver", text: (flow: FlowResult) => string) => (flow: FlowResult) =>
    flow.end === undefined || flow.end === one ? text(flow) : "-";
  const columns: Column<FlowResult>[] = [
    ["flow", ({ id }) => printable(id)],
    ["from -> to", ({ from, to }) => `${printable(from)} -> ${printable(to)}`],
    ["prio", ({ priority }) => String(priority)],
    ["goodput Gb/s", of("receiver", ({ goodput_bps }) => gbps(goodput_bps))],
    ["wire Gb/s", of("receiver", ({ wire_bps }) => gbps(wire_bps))],
    ["packets", of("sender", ({ packets }) => String(packets))],
    ["lost", ({ lost, end }) => (end === undefined ? String(lost) : "-")],
    [feedbackName(result), of("sender", ({ cnm_handled, cnp_handled }) => String(cnm_handled ?? cnp_handled))],
  ];
  return gridOf("Flows", result.flows, columns, { names: 2 });
}

/** Times are those that the scenario means, as everywhere else. */
function programGrid({ programs = {} }: Result): RankedGrid {
  const all = Object.entries(programs).map(([id, program]) => ({ id, ...program }));
  const time = (seconds: number | undefined) => (seconds === undefined ? "" : formatTime(Math.round(seconds * 1e9), 4));
  const columns: Column<(typeof all)[number]>[] = [
    ["program", ({ id }) => printable(id)],
    ["on", ({ host }) => printable(host)],
    ["from", ({ started_s }) => time(started_s)],
    ["to", ({ ended_s }) => time(ended_s)],
    ["ended with", ({ status, signal }) => String(signal ?? status ?? "")],
  ];
  // In virtual time hosts have no such interface.
  if (all.some((row) => row.interface !== undefined)) {
    columns.push(
      ["sent KB", (row) => kilobytes(row.interface?.tx_bytes ?? 0)],
      ["received KB", (row) => kilobytes(row.interface?.rx_bytes ?? 0)],
    );
  }
  const failed = { rank: ({ failure }: (typeof all)[number]) => Number(failure !== undefined), ranked: "failed first" };
  return gridOf("Programs", all, columns, { names: 2, ...failed });
}

/** Results of the flows of each traffic entry; only where they say more than the flows do. */
function groupGrid({ groups = {} }: Result): Grid {
  const several = Object.values(groups);
  const telling = several.length > 1 && several.some(({ flows }) => flows > 1);
  const rows = Object.entries(telling ? groups : {}).flatMap(([name, { flows, goodput_bps, transfers }]) => [
    { name, what: "flows", count: flows, figures: goodput_bps },
    ...(transfers ? [{ name, what: "transfers", count: transfers.count, figures: transfers.throughput_bps }] : []),
  ]);
  const columns: Column<(typeof rows)[number]>[] = [
    ["id", ({ name }) => printable(name)],
    ["what", ({ what }) => what],
    ["count", ({ count }) => String(count)],
    ...(["mean", "min", "p10", "p50", "max"] as const).map(
      (name): Column<(typeof rows)[number]> => [name, ({ figures }) => gbps(figures[name])],
    ),
  ];
  return gridOf("Traffic, Gb/s", rows, columns, { names: 2 });
}

/** Completion times: all, then by size. */
function fctGrid({ fct }: Result): Grid {
  const rows = completionClasses({ fct });
  const slowdown = (head: string, name: keyof CompletionClass["slowdown"] & string): Column<CompletionClass> => [
    head,
    (row) => fixed(row.slowdown[name] as number),
  ];
  const columns: Column<CompletionClass>[] = [
    ["size", ({ name }) => name],
    ["count", ({ count }) => String(count)],
    slowdown("slowdown mean", "mean"),
    ...["p50", "p95", "p99", "max"].map((name) => slowdown(name, name)),
    ["FCT us p50", ({ fct_us }) => fixed(fct_us.p50)],
    ["p99", ({ fct_us }) => fixed(fct_us.p99)],
  ];
  const incomplete = fct === undefined || fct.incomplete === 0 ? "" : `, ${fct.incomplete} not complete`;
  const omitted = fct?.omitted === undefined ? "" : `, ${fct.omitted} left out`;
  return gridOf(`Flow completion times${incomplete}${omitted}`, rows, columns);
}

const kQueuePlace: Column<QueuePlace>[] = [
  ["switch", ({ device }) => printable(device)],
  ["port to", ({ port }) => printable(port)],
  ["prio", ({ priority }) => priority],
];

function queueGrid({ switches }: Result): RankedGrid {
  const queues = eachQueue(switches, (one) => one.queues).filter(({ value }) => value.max > 0);
  const figures = (["mean", "p50", "p95", "p99", "max"] as const).map(
    (name): Column<(typeof queues)[number]> => [name, ({ value }) => kilobytes(value[name])],
  );
  const kept = { rank: ({ value }: (typeof queues)[number]) => value.p99, ranked: "longest p99" };
  return gridOf("Queues, KB", queues, [...kQueuePlace, ...figures], { names: 2, ...kept });
}

/** Observations and messages of QCN's congestion points. */
function congestionPointGrid({ switches }: Result): RankedGrid {
  const points = eachQueue(switches, (one) => one.congestion_points);
  const columns: Column<(typeof points)[number]>[] = [
    ...kQueuePlace,
    ["frames", ({ value }) => String(value.frames)],
    ["CNMs", ({ value }) => String(value.cnms)],
    ["frames per CNM", ({ value: { frames, cnms } }) => (cnms === 0 ? "-" : fixed(frames / cnms))],
    ["discarded", ({ value }) => String(value.discarded)],
  ];
  return gridOf("Congestion points", points, columns, {
    ...{ names: 2, rank: ({ value }) => value.cnms, ranked: "most CNMs" },
  });
}

function switchGrid({ switches, congestion_control }: Result): RankedGrid {
  type Row = readonly [name: string, one: Result["switches"][string]];
  const qcn = hearsCnms(congestion_control);
  const toldBy = ([, one]: Row) => (qcn ? (one.cnm_sent ?? 0) : one.ecn_marked);
  const any = Object.values(switches).some((one) => one.pfc_storms !== undefined);
  const storms: Column<Row>[] = any ? [["PFC storms prio:n", ([, one]) => byKey(one.pfc_storms ?? {})]] : [];
  const trims = Object.values(switches).some((one) => one.trimmed !== undefined);
  const trimmed: Column<Row>[] = trims ? [["trimmed prio:n", ([, one]) => byKey(one.trimmed ?? {})]] : [];
  const columns: Column<Row>[] = [
    ["switch", ([name]) => printable(name)],
    [qcn ? "CNM sent" : "ECN marked", (row) => String(toldBy(row))],
    ["PFC sent prio:n", ([, one]) => byKey(one.pfc_sent)],
    ...storms,
    ...trimmed,
    ["drops", ([, one]) => byKey(one.drops)],
  ];
  return gridOf("Switches", Object.entries(switches), columns, {
    rank: (row) => toldBy(row) + sum(row[1].pfc_sent) + sum(row[1].drops),
    ranked: `most ${qcn ? "CNMs" : "marks"}, PFC and drops`,
  });
}

function nicGrid({ nics, congestion_control }: Result): RankedGrid {
  type Row = readonly [name: string, nic: NicResult];
  const qcn = hearsCnms(congestion_control);
  const own: Column<Row>[] = qcn
    ? [
        ["CNM handled", ([, nic]) => String(nic.rp_cnm_handled ?? 0)],
        ["refused", ([, nic]) => byKey(nic.rp_cnm_refused ?? {})],
        ["limited s prio:t", ([, nic]) => byKey(nic.rp_limited_s ?? {}, fixed)],
      ]
    : [
        ["CNP sent", ([, nic]) => String(nic.np_cnp_sent)],
        ["CNPs acted on", ([, nic]) => String(nic.rp_cnp_handled)],
      ];
  const told = (nic: NicResult) =>
    qcn ? (nic.rp_cnm_handled ?? 0) + sum(nic.rp_cnm_refused ?? {}) : nic.np_cnp_sent + nic.rp_cnp_handled;
  const columns: Column<Row>[] = [
    ["NIC", ([name]) => printable(name)],
    ...own,
    ["PFC received prio:n", ([, nic]) => byKey(nic.pfc_received)],
  ];
  return gridOf("NICs", Object.entries(nics), columns, {
    rank: ([, nic]) => told(nic) + sum(nic.pfc_received),
    ranked: `most ${qcn ? "CNMs" : "CNPs"} and PFC`,
  });
}

/** Directions that carried anything. Those that were paused longest come before those that were used most. */
function linkGrid({ links = [] }: Result): RankedGrid {
  const used = links.filter(({ packets }) => packets > 0);
  const pauses = used.map((link) => sum(link.pause_time_s));
  const paused = new Set(pauses.sort((a, b) => b - a).slice(0, 5));
  const columns: Column<LinkResult>[] = [
    ["from -> to", ({ from, to }) => `${printable(from)} -> ${printable(to)}`],
    ["Gb/s", ({ rate_bps }) => fixed(rate_bps / 1e9)],
    ["used", ({ utilisation }) => percent(utilisation)],
    ["packets", ({ packets }) => String(packets)],
    ["lost", ({ lost, link_down = 0 }) => String(lost + link_down)],
    ["paused us prio:t", ({ pause_time_s }) => byKey(pause_time_s, (seconds) => fixed(seconds * 1e6))],
  ];
  const rank = ({ utilisation, pause_time_s }: LinkResult) => {
    const time = sum(pause_time_s);
    return utilisation + (time !== 0 && paused.has(time) ? 10 : 0);
  };
  return gridOf("Links", used, columns, { rank, ranked: "most paused and most used" });
}

function faultGrid({ faults = [] }: Result): RankedGrid {
  const columns: Column<(typeof faults)[number]>[] = [
    ["fault", ({ kind }) => kind],
    ["at", (fault) => printable(placeOfFault(fault))],
    ["from", ({ at_s }) => formatTime(Math.round(at_s * 1e9), 4)],
    ["for", ({ for_s }) => (for_s === undefined ? "" : formatTime(Math.round(for_s * 1e9), 4))],
    ["matched", ({ matched }) => String(matched)],
    ["hits", ({ hits }) => String(hits)],
    [
      "recovered in",
      ({ recovery_s }) => (recovery_s === undefined ? "-" : formatTime(Math.round(recovery_s * 1e9), 4)),
    ],
  ];
  return gridOf("Faults", faults, columns, { rank: ({ hits }) => hits, ranked: "most hits" });
}

/** In one part these are its ends of links to others; in all parts merged they tell what has crossed those links. */
function jointGrid({ part, merged }: Result): RankedGrid {
  type Row = { link: string; from: string; to: string; by: string; sent: number; received: string; lost: string };
  const crossed = (merged?.links ?? []).map(
    (one): Row => ({ ...one, by: "", received: String(one.received), lost: String(one.lost) }),
  );
  const ends = (part?.links ?? []).map((one): Row => {
    const ways = { from: part?.name ?? "", to: one.part, by: one.interface };
    return { ...ways, link: one.link, sent: one.sent, received: `${one.received} back`, lost: "" };
  });
  const columns: Column<Row>[] = [
    ["link", ({ link }) => printable(link)],
    ["from -> to", ({ from, to }) => `${printable(from)} -> ${printable(to)}`],
    ...(part ? [["interface", ({ by }: Row) => printable(by)] as Column<Row>] : []),
    ["frames sent", ({ sent }) => String(sent)],
    ["received", ({ received }) => received],
    ...(part ? [] : [["lost", ({ lost }: Row) => lost] as Column<Row>]),
  ];
  return gridOf("Links between parts", [...ends, ...crossed], columns, {
    rank: ({ sent }) => sent,
    ranked: "most used",
  });
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, n) => total + n, 0);
}

/** Writes "3:217 6:1" without zeros; "0" when nothing remains. The shape is that of `dcb pfc show`. */
function byKey(counts: Record<string, number>, text: (n: number) => string = String): string {
  const some = Object.entries(counts).filter(([, n]) => n > 0);
  return some.length === 0 ? "0" : some.map(([key, n]) => `${printable(key)}:${text(n)}`).join(" ");
}

/**
 * Draws one table under its title, no trailing blanks and no final line feed. Linear in the number of cells: the kernel's routes are many.
 */
export function drawGrid({ title, head, names, rows }: Grid, color = false): string {
  const colors = pc.createColors(color);
  // Cells are ASCII: a character is a column of the terminal.
  const widths = head.map((name) => name.length);
  for (const row of rows)
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, cell.length);
    });
  const draw = (cells: readonly string[]) =>
    widths
      .map((width, i) => (i < names ? (cells[i] ?? "").padEnd(width) : (cells[i] ?? "").padStart(width)))
      .join("  ");
  const rule = widths.map((width) => "-".repeat(width)).join("  ");
  const lines = [
    colors.dim(draw(head).trimEnd()),
    ...(rows.length > 0 ? [rule] : []),
    ...rows.map((row) => draw(row).trimEnd()),
  ];
  return [colors.bold(title), ...lines].join("\n");
}
