/**
 * The rows of a forwarding benchmark of several switches, as printed: columns between blanks, one line per device and frame size,
 *
 *   DUT size median min..max Gbit/s offered usr sys NAPI% CPU0 CPU1 other% note
 *
 * rates in kpps, and one line per device for latency, in us,
 *
 *   DUT sent lost p50 p90 p99 p99.9 max
 */
import type { Grid } from "../src/result/report/table.js";

export interface PrintedResult {
  /** What its rows "custom" are called. */
  label: string;
  text: string;
}

interface ForwardingRow {
  device: string;
  size: number;
  median: number;
  min: number;
  max: number;
  offered: number;
  note: string;
}

interface LatencyRow {
  device: string;
  lost: string;
  quantiles: string[];
}

const kQuantiles = ["p50", "p90", "p99", "p99.9", "max"];
const kNumber = /^\d+(\.\d+)?$/;

/** How the frames came, and where they were received, as the notes say it. */
const kSources = [
  { title: "Sockets' frames, kpps: median (min..max)", has: (note: string) => !/xdp-source|onecore/.test(note) },
  {
    title: "Live XDP frames, kpps: median (min..max)",
    has: (note: string) => /xdp-source/.test(note) && !/onecore/.test(note),
  },
  {
    title: "One core for receiving, switching and delivery, kpps: median (min..max)",
    has: (note: string) => /onecore/.test(note),
  },
];

export function peerGrids(results: readonly PrintedResult[]): Grid[] {
  const forwarding = results.flatMap(({ label, text }) => forwardingRows(text, label));
  const latencies = results.flatMap(({ label, text }) => latencyRows(text, label));
  const grids = kSources.map(({ title, has }) =>
    forwardingGrid(
      title,
      forwarding.filter(({ note }) => has(note)),
    ),
  );
  const latencyGrid: Grid = {
    title: "One way at 1,000 frames/s, us",
    head: ["switch", ...kQuantiles, "lost"],
    names: 1,
    rows: latencies.map(({ device, quantiles, lost }) => [device, ...quantiles, lost]),
  };
  return [...grids, latencyGrid].filter(({ rows }) => rows.length > 0);
}

/** A switch in each row, a frame size in each column. ">": the generator was the limit. */
function forwardingGrid(title: string, rows: readonly ForwardingRow[]): Grid {
  const sizes = [...new Set(rows.map(({ size }) => size))].sort((a, b) => a - b);
  const devices = [...new Set(rows.map(({ device }) => device))];
  return {
    title,
    head: ["switch", ...sizes.map((size) => `${size} B`)],
    names: 1,
    rows: devices.map((device) => [
      device,
      ...sizes.map((size) => {
        const row = rows.find((one) => one.device === device && one.size === size);
        if (row === undefined) return "";
        const limit = row.median >= 0.97 * row.offered ? "> " : "";
        return `${limit}${row.median.toFixed(0)} (${row.min.toFixed(0)}..${row.max.toFixed(0)})`;
      }),
    ]),
  };
}

function forwardingRows(text: string, label: string): ForwardingRow[] {
  return text.split("\n").flatMap((line) => {
    const match = /^(\S+)\s+(\d+)\s+([\d.]+)\s+([\d.]+?)\.\.([\d.]+)\s+[\d.]+\s+([\d.]+)((?:\s+\d+){6})\s*(.*)$/.exec(
      line,
    );
    if (match === null) return [];
    const [, device, size, middle, min, max, offered, , note] = match as unknown as string[];
    if (device === "none") return []; // no switch: the generator itself
    return {
      device: device === "custom" ? label : (device as string),
      size: Number(size),
      median: Number(middle),
      min: Number(min),
      max: Number(max),
      offered: Number(offered),
      note: note as string,
    };
  });
}

function latencyRows(text: string, label: string): LatencyRow[] {
  return text.split("\n").flatMap((line) => {
    const [device = "", ...numbers] = line.trim().split(/\s+/);
    if (numbers.length !== 2 + kQuantiles.length || !numbers.every((number) => kNumber.test(number))) return [];
    return { device: device === "custom" ? label : device, lost: numbers[1] as string, quantiles: numbers.slice(2) };
  });
}
