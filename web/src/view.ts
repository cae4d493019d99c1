/** The view: the live run or finished ones, flows, time. */
import { batch, computed, signal } from "@preact/signals";
import type { Loaded, Recording } from "./data/recording.js";
import { requestDraw } from "./draw.js";
import { currentRun, live, pause, paused, pausedAt, session } from "./store.js";

export type Range = readonly [from: number, to: number];

/** Finished runs in view; none: the live one. */
export const shown = signal<readonly Loaded[]>([]);
/** Finished runs that are not drawn for now, by their place among those in view. */
export const hiddenRuns = signal<ReadonlySet<number>>(new Set());
/** Range that the reader has chosen, ms; null: all, or following. */
export const zoom = signal<Range | null>(null);
/** Length of the time that is followed, ms; null: the whole run. */
export const followed = signal<number | null>(null);

const kDaemonSpanMs = 30_000;

export const recordings = computed<readonly Recording[]>(() => {
  if (shown.value.length > 0) return shown.value.map(({ recording }) => recording);
  return live.value ? [live.value] : [];
});

/** Ids of the flows in view, over all recordings; their positions decide colours. */
export const flowIds = computed<readonly string[]>(() => [...new Set(recordings.value.flatMap(({ flows }) => flows))]);

/** Range of the axis now, ms. */
export function rangeInView(): Range {
  if (zoom.value) return zoom.value;
  const ends = recordings.value.map(({ span }) => span?.[1] ?? 0);
  const last = Math.max(0, Math.min(Math.max(0, ...ends), pausedAt.value));
  if (shown.value.length > 0) return [0, last || 1];
  const duration = session.value?.duration_ns ?? null;
  const length = followed.value ?? (duration === null ? kDaemonSpanMs : null);
  if (length === null) return [0, Math.max(last, (duration ?? 1e6) / 1e6)];
  return [Math.max(0, last - length), Math.max(last, length)];
}

export function follow(): void {
  batch(() => {
    zoom.value = null;
    if (paused.value) pause(false);
  });
  requestDraw();
}

export function setZoom(range: Range | null): void {
  if (range !== null && !(range[1] - range[0] > 1e-3)) return;
  zoom.value = range;
  requestDraw();
}

/** Makes the range narrower or wider around its middle. */
export function zoomBy(factor: number): void {
  const [from, to] = rangeInView();
  const middle = (from + to) / 2;
  const half = ((to - from) * factor) / 2;
  setZoom([Math.max(0, middle - half), middle + half]);
}

export function show(runs: readonly Loaded[]): void {
  batch(() => {
    shown.value = runs;
    hiddenRuns.value = new Set();
    zoom.value = null;
    picked.value = null;
  });
  scrollTo({ top: 0 });
  requestDraw();
}

// The picker of flows.

const kShownAtFirst = 8;
const kAllUpTo = 16;

/** Flows that were chosen one by one; null: the first `top`. */
export const picked = signal<ReadonlySet<string> | null>(null);
/** Number of the fastest that are drawn; null: as many as are legible. */
export const top = signal<number | "all" | null>(null);
/** With several runs, whether each flow is drawn, or one band for each run; null: each, as long as they are few. */
export const eachFlow = signal<boolean | null>(null);
/** Flows in the order of their mean throughput; renewed now and then. */
const ranking = signal<readonly string[]>([]);

export const topCount = computed(() => {
  const all = flowIds.value.length;
  if (top.value === "all") return all;
  return Math.min(all, top.value ?? (all <= kAllUpTo ? all : kShownAtFirst));
});

export const flowsInView = computed<ReadonlySet<string>>(() => {
  if (picked.value) return picked.value;
  const ids = flowIds.value;
  if (topCount.value >= ids.length) return new Set(ids);
  const ranked = ranking.value.length === ids.length ? ranking.value : ids;
  return new Set(ranked.slice(0, topCount.value));
});

export function rankFlows(): void {
  const means = new Map<string, number>();
  for (const recording of recordings.value) {
    recording.flows.forEach((id, index) => {
      means.set(id, Math.max(means.get(id) ?? 0, recording.meanThroughput(index)));
    });
  }
  const ranked = [...flowIds.value].sort((a, b) => (means.get(b) ?? 0) - (means.get(a) ?? 0));
  if (ranked.join() !== ranking.value.join()) ranking.value = ranked;
}

/** Shows this one alone; once more: goes back. */
export function isolate(id: string): void {
  const alone = picked.value?.size === 1 && picked.value.has(id);
  picked.value = alone ? null : new Set([id]);
}

export function toggleFlow(id: string): void {
  const next = new Set(flowsInView.value);
  if (!next.delete(id)) next.add(id);
  picked.value = next;
}

export function toggleRun(run: number): void {
  const next = new Set(hiddenRuns.value);
  if (!next.delete(run)) next.add(run);
  hiddenRuns.value = next;
}

export const liveState = computed(() => {
  if (session.value === null) return "connecting";
  if (session.value.kind !== "lab") return "running";
  return currentRun.value?.state ?? "ready";
});
