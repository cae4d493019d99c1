/** Name, state, meant time, scale, whether this host keeps up, and the buttons for all of it. */
import { useEffect, useRef } from "preact/hooks";
import { onDraw } from "../draw.js";
import { connection, frames, mayChange, pause, paused, refusal, session } from "../store.js";
import { theme, toggleTheme } from "../theme.js";
import { follow, followed, liveState, shown, zoom } from "../view.js";
import { helpOpen } from "./help_open.js";
import { RunButtons } from "./runs.js";

const kKinds = { lab: "lab", switch: "switch daemon", nic: "NIC daemon" };
/** Gaps of the poll loop above this are told, wall us. */
const kLongGapUs = 5000;

export function Header() {
  const now = session.value;
  const time = useRef<HTMLSpanElement>(null);
  const gap = useRef<HTMLSpanElement>(null);
  useEffect(
    () =>
      onDraw(() => {
        const frame = paused.value ? frames.seen : frames.last;
        if (!frame) return;
        write(time.current, meantTime(frame.t_ns, session.value?.duration_ns ?? null));
        const us = frame.loop_gap_max_us;
        write(
          gap.current,
          `${us >= 1000 ? `${(us / 1000).toFixed(1)} ms` : `${Math.round(us)} us`}${us > kLongGapUs ? ", long" : ""}`,
        );
      }),
    [],
  );
  return (
    <header class="top">
      <div class="title">
        <h1>{now?.name ?? "Weir"}</h1>
        {now && <span class="soft">{kKinds[now.kind]}</span>}
        <span class={`pill ${liveState.value}`} id="state">
          {liveState.value}
        </span>
        {connection.value !== "open" && (
          <span class="pill lost" id="connection">
            {connection.value === "connecting" ? "connecting" : (whyNot() ?? "connection lost, trying again")}
          </span>
        )}
        {paused.value && (
          <span class="pill paused" id="paused">
            view paused
          </span>
        )}
      </div>
      <dl class="now">
        <div>
          <dt>{now?.kind === "lab" ? "meant time" : "up"}</dt>
          <dd>
            <span ref={time} id="meant-time">
              -
            </span>
          </dd>
        </div>
        {now?.kind === "lab" && (
          <div>
            <dt>scale</dt>
            <dd>1/{Number(now.scale.toPrecision(4))}</dd>
          </div>
        )}
        <div title="Longest gap between two turns of the poll loops so far, wall time">
          <dt>loop gap max</dt>
          <dd>
            <span ref={gap}>-</span>
          </dd>
        </div>
      </dl>
      <div class="buttons">
        {now?.kind === "lab" && mayChange.value && <RunButtons />}
        {shown.value.length === 0 && now && <Span duration={now.duration_ns} />}
        <button type="button" aria-pressed={paused.value} onClick={() => pause(!paused.value)} title="space">
          {paused.value ? "Resume view" : "Pause view"}
        </button>
        <button type="button" disabled={zoom.value === null && !paused.value} onClick={follow} title="f">
          {shown.value.length > 0 ? "Reset zoom" : "Follow"}
        </button>
        <button
          type="button"
          class="icon"
          onClick={toggleTheme}
          aria-label={`${theme.value === "dark" ? "Light" : "Dark"} theme`}
          title="t"
        >
          <span aria-hidden="true">{theme.value === "dark" ? "☀" : "☾"}</span>
        </button>
        <button
          type="button"
          class="icon"
          aria-label="Keys"
          title="?"
          onClick={() => {
            helpOpen.value = true;
          }}
        >
          <span aria-hidden="true">?</span>
        </button>
      </div>
    </header>
  );
}

function whyNot(): string | undefined {
  const { error, hint } = refusal.value ?? {};
  return [error, hint].filter(Boolean).join(": ") || undefined;
}

/** Chooses how much of the past is in view while following. */
function Span({ duration }: { duration: number | null }) {
  const choices =
    duration === null
      ? [10_000, 30_000, 60_000, 300_000, 600_000].map((ms) => ({ ms, text: `last ${ms / 1000} s` }))
      : [2, 5, 20].map((part) => ({
          ms: duration / 1e6 / part,
          text: `last ${Number((duration / 1e6 / part).toPrecision(3))} ms`,
        }));
  return (
    <select
      aria-label="Time in view"
      value={String(followed.value ?? (duration === null ? 30_000 : "all"))}
      onChange={(event) => {
        const { value } = event.currentTarget;
        followed.value = value === "all" ? null : Number(value);
        follow();
      }}
    >
      {duration !== null && <option value="all">whole run</option>}
      {choices.map(({ ms, text }) => (
        <option key={ms} value={String(ms)}>
          {text}
        </option>
      ))}
    </select>
  );
}

function meantTime(ns: number, duration: number | null): string {
  if (duration !== null)
    return `${(Math.max(0, Math.min(ns, duration)) / 1e6).toFixed(1)} of ${Number((duration / 1e6).toPrecision(6))} ms`;
  const seconds = ns / 1e9;
  return seconds < 120 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}

function write(element: HTMLElement | null, text: string): void {
  if (element && element.textContent !== text) element.textContent = text;
}
