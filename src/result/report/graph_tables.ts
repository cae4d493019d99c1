/** Tables and pictures of message graphs. */
import { formatTime } from "../../base/units.js";
import type { GraphResult } from "../graph_result.js";
import type { LinkLoad } from "../link_loads.js";
import { count, fixed, percent, printable } from "./format.js";
import type { Grid } from "./grid.js";
import { escapeHtml } from "./markup.js";

const time = (seconds: number | undefined) =>
  seconds === undefined ? "not ended" : formatTime(Math.round(seconds * 1e9), 4);

/** One row for each message graph. @param network What it ran on, where that was not packets. */
export function graphGrid(graphs: readonly GraphResult[] = [], network?: string): Grid {
  return {
    title: network === undefined ? "Message graphs" : `Message graphs, ${network}`,
    head: [
      "graph",
      "ranks",
      "messages",
      "bytes",
      "time",
      "ideal",
      "slowdown",
      "calculation",
      "exposed",
      "critical: calc",
      "network",
      "messages",
    ],
    names: 1,
    rows: graphs.map((graph) => [
      printable(graph.id),
      String(graph.ranks),
      count(graph.messages),
      count(graph.bytes),
      time(graph.time_s),
      time(graph.ideal_s),
      graph.slowdown === undefined ? "" : fixed(graph.slowdown),
      time(graph.calculation_s),
      time(graph.exposed_s),
      graph.critical ? time(graph.critical.calculation_s) : "",
      graph.critical ? time(graph.critical.network_s) : "",
      graph.critical ? String(graph.critical.messages) : "",
    ]),
  };
}

/** One row for each phase that a graph names. */
export function phaseGrid(graphs: readonly GraphResult[] = []): Grid {
  const several = graphs.length > 1;
  return {
    title: "Phases",
    head: [...(several ? ["graph"] : []), "phase", "from", "to", "takes", "calculation"],
    names: several ? 2 : 1,
    rows: graphs.flatMap(({ id, phases }) =>
      phases.map((phase) => [
        ...(several ? [printable(id)] : []),
        printable(phase.name),
        time(phase.start_s),
        time(phase.end_s),
        time(phase.end_s - phase.start_s),
        time(phase.calculation_s),
      ]),
    ),
  };
}

/** One row for each direction of a link. */
export function linkLoadGrid(links: readonly LinkLoad[] = []): Grid {
  return {
    title: "Busiest links",
    head: ["from", "to", "bytes", "busy"],
    names: 2,
    rows: links.map(({ from, to, bytes, utilisation }) => [
      printable(from),
      printable(to),
      count(bytes),
      utilisation === undefined ? "" : percent(utilisation),
    ]),
  };
}

const kWidth = 720;
const kLeft = 72;
const kRow = 14;

/** Ranks from above to below, time from left to right: calculations dark, exposed communication light. */
export function timeLineFigures(graphs: readonly GraphResult[] = []): string {
  return graphs.map(timeLineFigure).join("\n");
}

function timeLineFigure({ id, ranks, time_line: rows = [] }: GraphResult): string {
  const end = Math.max(...rows.map((row) => row.end_s), 0);
  if (end === 0) return "";
  const x = (seconds: number) => kLeft + ((kWidth - kLeft - 8) * seconds) / end;
  const bar = (from: number, to: number, y: number, fill: string, title: string) =>
    `<rect x="${x(from).toFixed(2)}" y="${y}" width="${Math.max(0.2, x(to) - x(from)).toFixed(2)}" height="${kRow - 3}" fill="${fill}"><title>${escapeHtml(title)}</title></rect>`;
  const drawn = rows.map(({ rank, host, end_s, calculations }, i) => {
    const y = 4 + i * kRow;
    const name = `<text x="${kLeft - 6}" y="${y + kRow / 2}" dy="0.2em" text-anchor="end">${escapeHtml(`${rank} ${host}`)}</text>`;
    const whole = bar(0, end_s, y, "var(--c1)", `rank ${rank}: until ${time(end_s)}`);
    const busy = calculations.map(([from, to]) =>
      bar(from, to, y, "var(--c0)", `rank ${rank} calculates: ${time(from)} to ${time(to)}`),
    );
    return name + whole + busy.join("");
  });
  const height = 4 + rows.length * kRow + 18;
  const axis = [0, 0.25, 0.5, 0.75, 1].map(
    (part) =>
      `<text x="${x(part * end).toFixed(1)}" y="${height - 4}" text-anchor="${part === 1 ? "end" : "middle"}">${time(part * end)}</text>`,
  );
  const shown = rows.length < ranks ? `, the first ${rows.length} of ${ranks} ranks` : "";
  return `<figure class="bars">
<figcaption><h3>Time line of ${escapeHtml(id)}</h3><p>By rank${shown}. timeline.json has it for Perfetto and Chrome. <span><i style="background:var(--c0)"></i>calculates</span> <span><i style="background:var(--c1)"></i>exposed communication</span></p></figcaption>
<svg viewBox="0 0 ${kWidth} ${height}" role="img" aria-label="Time line of ${escapeHtml(id)}">
${drawn.join("\n")}
${axis.join("")}
</svg>
</figure>`;
}
