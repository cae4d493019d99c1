/** Columns of the tables of `weir top`: their names, their order in sorting, their texts, and which are left out first for want of room. */
import { formatSize } from "../../base/units.js";
import { count, fixed, gbps, kilobytes, printable } from "../../result/report/format.js";
import type { PairSample, PortSample } from "./sample.js";

export interface Column<Row> {
  /** Name of the column in --sort. */
  key: string;
  head: string;
  /** Names are aligned to the left, and sort from the smallest. */
  name?: boolean;
  /** Columns of the lowest rank are left out first for want of room; 0: it stays. */
  rank: number;
  value(row: Row): string | number | null;
  text(row: Row): string;
}

const kNone = "-";
const kStages: Readonly<Record<string, string>> = {
  fast_recovery: "fast",
  additive_increase: "additive",
  hyper_increase: "hyper",
};

function named<Row>(key: string, head: string, rank: number, of: (row: Row) => string): Column<Row> {
  return { key, head, name: true, rank, value: of, text: (row) => printable(of(row)) };
}

function number<Row>(
  key: string,
  head: string,
  rank: number,
  [of, show]: readonly [(row: Row) => number | null, (value: number) => string],
): Column<Row> {
  return {
    key,
    head,
    rank,
    value: of,
    text: (row) => {
      const value = of(row);
      return value === null ? kNone : show(value);
    },
  };
}

/** Writes rates of events: whole ones from 10 on, so that columns stand still. */
const perSecond = (value: number) => (value >= 10 || value === 0 ? count(value) : fixed(value));
const size = (bytes: number) => formatSize(bytes, 4);

export const kPairColumns: readonly Column<PairSample>[] = [
  named("name", "DEVICE", 0, ({ device }) => device),
  named("qp", "QP", 0, ({ qp }) => qp),
  named("peer", "PEER", 2, ({ peer }) => peer),
  named("stage", "STAGE", 3, ({ stage }) => (stage === null ? kNone : (kStages[stage] ?? stage))),
  number("rate", "RATE Gb/s", 9, [({ rate_bps }) => rate_bps, gbps]),
  number("target", "TARGET", 6, [({ target_rate_bps }) => target_rate_bps, gbps]),
  number("alpha", "ALPHA", 7, [({ alpha }) => alpha, (alpha) => alpha.toFixed(4)]),
  number("tx", "TX Gb/s", 8, [({ tx_bps }) => tx_bps, gbps]),
  number("rx", "RX Gb/s", 5, [({ rx_bps }) => rx_bps, gbps]),
  number("bytes", "BYTES", 4, [({ bytes }) => bytes, size]),
];

export const kPortColumns: readonly Column<PortSample>[] = [
  named("name", "DEVICE", 0, ({ device }) => device),
  named("port", "PORT", 0, ({ port }) => port),
  number("rx", "RX Gb/s", 8, [({ rx_bps }) => rx_bps, gbps]),
  number("tx", "TX Gb/s", 9, [({ tx_bps }) => tx_bps, gbps]),
  number("rxpps", "RX pps", 1, [({ rx_pps }) => rx_pps, count]),
  number("txpps", "TX pps", 2, [({ tx_pps }) => tx_pps, count]),
  number("queue", "QUEUE KB", 7, [({ queue_bytes }) => queue_bytes, kilobytes]),
  number("marks", "MARKS/s", 6, [({ marks_per_s }) => marks_per_s, perSecond]),
  number("pauses-rx", "PFC RX/s", 4, [({ pauses_rx_per_s }) => pauses_rx_per_s, perSecond]),
  number("pauses-tx", "PFC TX/s", 3, [({ pauses_tx_per_s }) => pauses_tx_per_s, perSecond]),
  number("drops", "DROPS/s", 5, [({ drops_per_s }) => drops_per_s, perSecond]),
];

/** Keys that --sort takes. */
export const kSortKeys: readonly string[] = [...new Set([...kPairColumns, ...kPortColumns].map(({ key }) => key))];

/** Returns the rows whose names contain `filter`, whatever its case. */
export function filtered<Row>(rows: readonly Row[], columns: readonly Column<Row>[], filter: string): readonly Row[] {
  const wanted = filter.toLowerCase();
  const names = columns.filter(({ name }) => name);
  return rows.filter((row) => names.some((column) => String(column.value(row)).toLowerCase().includes(wanted)));
}

/**
 * Sorts by `key`: names from the smallest, numbers from the largest; by `name`, and where values are equal, the order of the sample stays.
 */
export function sorted<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  { key, reverse }: { key: string; reverse: boolean },
): Row[] {
  const column = columns.find((candidate) => candidate.key === key);
  const ordered =
    column === undefined || key === "name"
      ? [...rows]
      : [...rows].sort((a, b) => compare(column.value(a), column.value(b)));
  return reverse ? ordered.reverse() : ordered;
}

function compare(a: string | number | null, b: string | number | null): number {
  if (typeof a === "string" && typeof b === "string") return a.localeCompare(b, "en", { numeric: true });
  return Number(b ?? -1) - Number(a ?? -1);
}
