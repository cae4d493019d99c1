/** Time lines of message graphs: a few rows for the report, and all as a file for Perfetto and Chrome. */
import { kCalculate, kReceive, kSend, type MessageGraph, rankOf } from "../scenario/graphs/graph.js";
import type { GraphResult } from "./graph_result.js";
import type { GraphTimes } from "./graph_times.js";

/** Ranks that a report shows, and spans of each: shorter gaps between calculations are closed until no more are left. */
const kRanks = 64;
const kSpans = 200;
/** Operations of which a file is written without being asked for: some 6 MB. */
export const kMostEvents = 20_000;

/** @param hosts Of all ranks. @param start When they began, ns. */
export function timeLine(
  graph: MessageGraph,
  { started, ended }: Omit<GraphTimes, "taken">,
  hosts: readonly string[],
  start: number,
): NonNullable<GraphResult["time_line"]> {
  return Array.from({ length: Math.min(kRanks, graph.ranks) }, (_, rank) => {
    const spans: [number, number][] = [];
    let end = start;
    for (let i = graph.first[rank] as number; i < (graph.first[rank + 1] as number); i++) {
      if (graph.kind[i] === kSend || (ended[i] as number) < 0) continue;
      end = Math.max(end, ended[i] as number);
      if (graph.kind[i] === kCalculate && graph.size[i] !== 0) spans.push([started[i] as number, ended[i] as number]);
    }
    const calculations = joined(spans).map(([from, to]): [number, number] => [
      (from - start) / 1e9,
      (to - start) / 1e9,
    ]);
    return { rank, host: hosts[rank] ?? "", end_s: (end - start) / 1e9, calculations };
  });
}

/** At most kSpans spans, in order: those that overlap or touch are one, and so are, if need be, those with the shortest gaps. */
function joined(spans: [number, number][]): [number, number][] {
  const closed = (gap: number) => {
    const out: [number, number][] = [];
    for (const [from, to] of spans) {
      const last = out.at(-1);
      if (last !== undefined && from - last[1] <= gap) last[1] = Math.max(last[1], to);
      else out.push([from, to]);
    }
    return out;
  };
  spans.sort(([a], [b]) => a - b);
  const whole = closed(0);
  if (whole.length <= kSpans) return whole;
  const gaps = whole.slice(1).map(([from], i) => from - (whole[i]?.[1] ?? 0));
  return closed(gaps.sort((a, b) => b - a)[kSpans - 1] as number);
}

interface Event {
  name: string;
  ph: "X" | "M" | "b" | "e";
  pid: number;
  tid: number;
  ts?: number;
  dur?: number;
  id?: number;
  cat?: string;
  args?: Record<string, unknown>;
}

/**
 * One job as trace events (Google's "Trace Event Format"): a process for each job, a thread for each rank with its calculations, and
 * its messages, from the start of the send to the end of the receive, as asynchronous events of the receiver. Times are us.
 */
export function traceEvents(
  job: number,
  id: string,
  graph: MessageGraph,
  { started, ended, taken }: GraphTimes,
  hosts: readonly string[],
): Event[] {
  const events: Event[] = [{ name: "process_name", ph: "M", pid: job, tid: 0, args: { name: id } }];
  for (let rank = 0; rank < graph.ranks; rank++) {
    events.push({ name: "thread_name", ph: "M", pid: job, tid: rank, args: { name: `rank ${rank} (${hosts[rank]})` } });
    for (let i = graph.first[rank] as number; i < (graph.first[rank + 1] as number); i++) {
      const end = ended[i] as number;
      if (end < 0) continue;
      const phase = graph.phases[graph.phase[i] as number] as string;
      if (graph.kind[i] === kCalculate && graph.size[i] !== 0) {
        const start = started[i] as number;
        events.push({
          name: phase || "calculation",
          ph: "X",
          pid: job,
          tid: rank,
          ts: start / 1e3,
          dur: (end - start) / 1e3,
        });
      } else if (graph.kind[i] === kReceive) {
        const send = taken[i] as number;
        const from = rankOf(graph, send);
        const common = { name: `from ${from}`, cat: phase || "message", pid: job, tid: rank, id: i };
        events.push({
          ...common,
          ph: "b",
          ts: (started[send] as number) / 1e3,
          args: { from, to: rank, bytes: graph.size[send], tag: graph.tag[send] },
        });
        events.push({ ...common, ph: "e", ts: end / 1e3 });
      }
    }
  }
  return events;
}

/** Returns the text of a file of trace events. */
export function traceFile(events: readonly Event[]): string {
  return `{"displayTimeUnit":"ns","traceEvents":[\n${events.map((event) => JSON.stringify(event)).join(",\n")}\n]}\n`;
}
