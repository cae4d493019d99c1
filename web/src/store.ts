/** State of the page: the session, the run that is under way, the view. Frames change no signal: they are drawn. */
import { batch, computed, signal } from "@preact/signals";
import type {
  Frame,
  History,
  Parameter,
  QueueDescription,
  Refusal,
  Rights,
  RunDescription,
  Sample,
  Session,
} from "../../src/watch/dashboard/protocol.js";
import { sampleOf } from "../../src/watch/dashboard/sample.js";
import { Recording } from "./data/recording.js";
import { requestDraw } from "./draw.js";
import type { ConnectionState } from "./live/connection.js";

export const connection = signal<ConnectionState>("connecting");
/** Reason why there is no stream, if the server gives one. */
export const refusal = signal<Refusal | null>(null);
export const session = signal<Session | null>(null);
/** Recording of the run under way, or the last one. */
export const live = signal<Recording | null>(null);
/** True if the server takes changes from this page. */
export const mayChange = signal(true);
export const paused = signal(false);
/** Text for polite live regions, which screen readers read. */
export const announcement = signal("");

/** The last frame, and the one that is looked at: they differ while the view is paused. */
export const frames: { last: Frame | null; seen: Frame | null } = { last: null, seen: null };
const frameListeners = new Set<(frame: Frame) => void>();
let liveRun = -1;

/** Adds a listener that sees every frame once, drawn or not. */
export function onFrame(listener: (frame: Frame) => void): () => void {
  frameListeners.add(listener);
  return () => frameListeners.delete(listener);
}

export const currentRun = computed<RunDescription | undefined>(() => session.value?.runs.at(-1));
export const running = computed(() => session.value?.kind !== "lab" || currentRun.value?.state === "running");
/** End of the view while it is paused, ms. */
export const pausedAt = signal(Number.POSITIVE_INFINITY);

export function takeRights({ change }: Rights): void {
  mayChange.value = change;
}

export function takeSession(next: Session): void {
  const before = session.value;
  batch(() => {
    session.value = next;
    const ids = ({ flows }: Session) => JSON.stringify(flows.map(({ id }) => id));
    const same = before !== null && before.started === next.started && ids(before) === ids(next);
    if (!same || !live.value?.extend(next.queues.map(({ name }) => name))) begin(next, -1);
    else noteChanges(next);
  });
  document.title = `${next.name} - Weir`;
  requestDraw();
}

export function takeHistory({ run, samples }: History): void {
  const now = session.value;
  if (now === null) return;
  if (run !== liveRun) begin(now, run);
  for (const sample of samples) if (ofTraffic(now, sample)) live.value?.append(sample);
  requestDraw();
}

export function takeFrame(frame: Frame): void {
  const now = session.value;
  if (now === null) return;
  if (frame.run !== liveRun) begin(now, frame.run);
  if (ofTraffic(now, frame)) live.value?.append(sampleOf(frame));
  // The newest frame comes with the history, too, and once more after a reconnection.
  const known = frames.last?.t_ns === frame.t_ns;
  frames.last = frame;
  if (!known) for (const listener of frameListeners) listener(frame);
  if (paused.value) return;
  if (ofTraffic(now, frame)) frames.seen = frame;
  requestDraw();
}

export function takeState(state: ConnectionState): void {
  if (state === connection.value) return;
  if (state === "lost") {
    announcement.value = "Connection lost";
  } else if (connection.value === "lost") {
    announcement.value = "Connected again";
  }
  connection.value = state;
  if (state === "open") refusal.value = null;
}

export function takeRefusal(why: Refusal): void {
  if (connection.value === "open") return;
  refusal.value = why;
  announcement.value = why.error;
}

export function pause(on: boolean): void {
  batch(() => {
    paused.value = on;
    pausedAt.value = on ? (live.value?.span?.[1] ?? 0) : Number.POSITIVE_INFINITY;
    announcement.value = on ? "View paused; data is still received" : "Following";
  });
  const { last } = frames;
  if (!on && last !== null && session.value !== null && ofTraffic(session.value, last)) frames.seen = last;
  requestDraw();
}

export const parameters = computed<readonly Parameter[]>(() => session.value?.parameters ?? []);
export const queues = computed<readonly QueueDescription[]>(() => session.value?.queues ?? []);

/** Tells whether a sample is of the traffic: when that is over, the network only empties, and flows have no rate any more. */
function ofTraffic({ duration_ns }: Session, { t_ns }: Pick<Sample, "t_ns">): boolean {
  return duration_ns === null || t_ns <= duration_ns;
}

function begin(next: Session, run: number): void {
  batch(() => {
    liveRun = run;
    live.value = Recording.live(next);
    frames.last = null;
    if (paused.value) pause(false);
    noteChanges(next);
  });
}

function noteChanges({ runs, kind, changes }: Session): void {
  const own = kind === "lab" ? (runs.find(({ id }) => id === liveRun)?.changes ?? []) : changes;
  if (live.value) live.value.changes = own.map(({ t_ns, set }) => ({ at: t_ns / 1e6, set }));
}
