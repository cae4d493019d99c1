/** Draws `weir top`: a sample and the user's choices as the lines of a terminal of some size. */
import pc from "picocolors";
import type { Choices, Section } from "./choices.js";
import { type Column, filtered, kPairColumns, kPortColumns, sorted } from "./columns.js";
import type { Sample } from "./sample.js";

export interface Size {
  columns: number;
  rows: number;
}

type Colors = ReturnType<typeof pc.createColors>;

const kGap = "  ";
/** With fewer lines than this, and too few for all rows, only the active section is drawn. */
const kTwoSections = 10;
const kHelp = [
  "q, Ctrl-C     quit",
  "Tab           the other table: what keys act on",
  "1 2 3         both tables, queue pairs only, ports only",
  "s S           sort by the next or previous column",
  "r             reverse the order",
  "/             filter by name; Enter keeps it, Esc drops it",
  "arrows, PgUp, PgDn, Home, End   scroll",
  "space         pause",
  "+ -           longer or shorter interval",
];

/** Returns at most `size.rows` lines of at most `size.columns` characters, colours not counted. */
export function drawTop(sample: Sample | undefined, choices: Choices, size: Size, color: boolean): string[] {
  const colors = pc.createColors(color);
  const top = [heading(sample, choices, colors), ...second(sample, choices, colors)];
  const foot = prompt(choices, colors);
  const room = size.rows - top.length - 1;
  const body = choices.help
    ? kHelp
    : sample === undefined
      ? []
      : tables(sample, choices, { ...size, rows: room }, colors);
  const shown = body.slice(0, Math.max(0, room));
  const filler = Array.from({ length: Math.max(0, room - shown.length) }, () => "");
  return [...top, ...shown, ...filler, foot].slice(0, size.rows).map((line) => cut(line, size.columns));
}

function heading(sample: Sample | undefined, { paused, interval }: Choices, { bold, yellow }: Colors): string {
  const time = sample?.time.slice(11, 19) ?? "";
  const counts = sample === undefined ? "looking" : summary(sample);
  return `${bold("weir top")} ${time}  ${paused ? `${yellow("paused")}  ` : ""}${counts}  every ${interval} s`;
}

/** Returns "5 NICs, 1 switch, 8 queue pairs". */
export function summary({ devices, queue_pairs }: Sample): string {
  if (devices.length === 0) return "no daemon or lab is running";
  const switches = devices.filter(({ kind }) => kind === "switch").length;
  const plural = (n: number, what: string, many = `${what}s`) => `${n} ${n === 1 ? what : many}`;
  return [
    ...(devices.length > switches ? [plural(devices.length - switches, "NIC")] : []),
    ...(switches > 0 ? [plural(switches, "switch", "switches")] : []),
    plural(queue_pairs.length, "queue pair"),
  ].join(", ");
}

/** Lists labs and their scales. */
export function scales({ devices }: Sample): string {
  const labs = new Map<string, number>();
  for (const { name, scale } of devices) if (scale !== 1) labs.set(name.split(".")[0] ?? name, scale);
  if (labs.size === 0) return "";
  const each = [...labs].map(([name, scale]) => `${name} at scale 1/${Number(scale.toPrecision(4))}`);
  return `${each.join(", ")}: meant units`;
}

function second(sample: Sample | undefined, { filter }: Choices, { dim }: Colors): string[] {
  const parts = [...(sample ? [scales(sample)] : []), ...(filter === "" ? [] : [`filter: ${filter}`])];
  const text = parts.filter((part) => part !== "").join("  ");
  return text === "" ? [] : [dim(text)];
}

function prompt({ typing, filter }: Choices, { dim }: Colors): string {
  return typing ? `filter: ${filter}_` : dim("q quit  h help  Tab table  s sort  r reverse  / filter  space pause");
}

function tables(sample: Sample, choices: Choices, size: Size, colors: Colors): string[] {
  const draw = {
    pairs: (rows: number) => table(sample.queue_pairs, kPairColumns, choices, "pairs", { ...size, rows }, colors),
    ports: (rows: number) => table(sample.ports, kPortColumns, choices, "ports", { ...size, rows }, colors),
  };
  // A switch has ports only.
  if (sample.queue_pairs.length === 0 && sample.ports.length > 0 && choices.shown === "both") choices.active = "ports";
  const room = size.rows - 1;
  const [pairs, ports] = [sample.queue_pairs.length + 1, sample.ports.length + 1];
  const both = choices.shown === "both" && (size.rows >= kTwoSections || pairs + ports <= room);
  if (!both) return draw[choices.shown === "both" ? choices.active : choices.shown](size.rows);
  // Each section gets the lines that it needs, and half of the room if both need more.
  const first = Math.min(pairs, Math.max(Math.ceil(room / 2), room - ports));
  return [...draw.pairs(first), "", ...draw.ports(room - first)];
}

function table<Row>(
  all: readonly Row[],
  columns: readonly Column<Row>[],
  choices: Choices,
  section: Section,
  size: Size,
  colors: Colors,
): string[] {
  const sort = choices.sort[section];
  const rows = sorted(filtered(all, columns, choices.filter), columns, sort);
  const room = Math.max(0, size.rows - 1);
  const offset = choices.scroll(section, rows.length, room);
  const cells = rows.slice(offset, offset + room).map((row) => columns.map((column) => column.text(row)));
  const widths = columns.map(({ head }, i) => Math.max(head.length + 1, ...cells.map((row) => row[i]?.length ?? 0)));
  const kept = fitting(columns, widths, size.columns);
  const line = (texts: readonly string[]) =>
    kept
      .map((i) =>
        columns[i]?.name ? (texts[i] ?? "").padEnd(widths[i] ?? 0) : (texts[i] ?? "").padStart(widths[i] ?? 0),
      )
      .join(kGap)
      .trimEnd();
  const heads = columns.map(({ key, head }) => (key === sort.key ? `${head}${sort.reverse ? "↑" : "↓"}` : head));
  const head = cut(line(heads), size.columns);
  const hidden = rows.length - cells.length;
  const note = hidden > 0 ? `  ${offset + 1}-${offset + cells.length} of ${rows.length}` : "";
  const fits = head.length + note.length <= size.columns ? `${head}${note}` : head;
  return [section === choices.active ? colors.inverse(fits) : colors.bold(fits), ...cells.map(line)];
}

/** Positions of the columns that there is room for. */
function fitting<Row>(columns: readonly Column<Row>[], widths: readonly number[], room: number): number[] {
  const kept = new Set(columns.map((_, i) => i));
  const width = () => [...kept].reduce((sum, i) => sum + (widths[i] ?? 0) + kGap.length, -kGap.length);
  const byRank = columns.map(({ rank }, i) => ({ rank, i })).sort((a, b) => a.rank - b.rank);
  for (const { rank, i } of byRank) {
    if (width() <= room) break;
    if (rank > 0) kept.delete(i);
  }
  return [...kept];
}

/** Cuts a line to so many columns; escape sequences take no room. */
function cut(line: string, columns: number): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what picocolors writes
  const plain = line.replace(/\x1b\[[0-9;]*m/g, "");
  return plain.length <= columns ? line : plain.slice(0, columns);
}
