/** All charts below each other, on one time axis. */
import { effect, untracked, useComputed, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { gather } from "../data/gather.js";
import { onDraw } from "../draw.js";
import { frames, pausedAt, session } from "../store.js";
import { printing, theme, unit } from "../theme.js";
import {
  eachFlow,
  flowIds,
  flowsInView,
  hiddenRuns,
  rangeInView,
  recordings,
  setZoom,
  shown,
  toggleRun,
  zoom,
} from "../view.js";
import { areBanded } from "./bands.js";
import { dashOfRun, lookOf } from "./palette.js";
import type { Line, Panel, Threshold } from "./panel.js";
import { panelsOf, thresholdsOf } from "./panels.js";
import { Plot } from "./plot.js";
import { Sample } from "./sample.js";

/** Most points that screens show; uPlot draws each. */
const kPoints = 1400;
const kPointsOfMany = 300;
const kManyLines = 24;
/** A chart on paper, CSS pixels; the style sheet fits it to the page. */
const kPaperWidth = 680;

/** @param withRuns Shows names of runs, which are told nowhere else. */
export function Charts({ withRuns = false }: { withRuns?: boolean }) {
  const panels = useComputed(() => {
    const now = session.value;
    const finished = shown.value;
    return panelsOf({
      recordings: recordings.value,
      finished,
      hidden: hiddenRuns.value,
      // Traffic of finished runs takes milliseconds.
      eventsPer: finished.length === 0 && now?.duration_ns === null ? "per s" : "per ms",
      flowIds: flowIds.value,
      flows: flowsInView.value,
      banded: areBanded(recordings.value.length, flowsInView.value.size, eachFlow.value),
      queueThresholds,
      congestionControl: now?.congestion_control ?? "dcqcn",
    });
  });
  return (
    <section class="charts" aria-label="Charts">
      {withRuns && shown.value.length > 1 && (
        <section class="legend" aria-label="Runs">
          {shown.value.map(({ key, label }, run) => (
            <button
              key={key}
              type="button"
              class="flow"
              aria-pressed={!hiddenRuns.value.has(run)}
              title="show or hide"
              onClick={() => toggleRun(run)}
            >
              <Sample {...lookOf(run)} dash={dashOfRun(run)} />
              {label}
            </button>
          ))}
        </section>
      )}
      {panels.value.map((panel) => (
        <Chart key={panel.id} panel={panel} />
      ))}
    </section>
  );
}

function queueThresholds(): Threshold[] {
  const { queues = [] } = session.value ?? {};
  return thresholdsOf(queues, frames.seen?.switches.map((one) => one.xoff) ?? []);
}

/** End of the warm-up of one run, or of all if theirs is the same. */
function warmup(): number {
  const [all = 0, ...others] = new Set(shown.value.map(({ result }) => result.warmup_s));
  return others.length > 0 ? 0 : 1000 * all;
}

function Legend({ name, lines }: { name: string; lines: readonly Line[] }) {
  return (
    <ul class="legend" aria-label={name}>
      {lines
        .filter(({ edge }) => edge === undefined)
        .map(({ label, ...look }) => (
          <li key={label}>
            <Sample color={look.color} dash={look.dash} />
            {label}
          </li>
        ))}
    </ul>
  );
}

function Chart({ panel }: { panel: Panel }) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const note = useRef<HTMLSpanElement>(null);
  const draw = useRef<() => void>(() => {});

  useEffect(() => {
    const element = host.current as HTMLDivElement;
    const build = () => {
      plot.current?.destroy();
      plot.current = new Plot(element, {
        panel,
        width: printing.value ? kPaperWidth * unit() : element.clientWidth,
        warmup,
        changes: () => (recordings.value.length === 1 ? (recordings.value[0]?.changes ?? []) : []),
        onZoom: setZoom,
      });
      draw.current();
    };
    draw.current = () => {
      const made = plot.current as Plot;
      if (panel.fixed) {
        made.update(panel.fixed, [0, panel.fixed.until]);
        return;
      }
      const range = zoom.value ?? panel.span ?? rangeInView();
      const most = panel.points ?? (panel.lines.length > kManyLines ? kPointsOfMany : kPoints);
      const curves = panel.lines.flatMap(({ curve }) => curve ?? []);
      made.update(gather(curves, range, pausedAt.value, most), range);
      if (note.current && typeof panel.note === "function") note.current.textContent = panel.note();
      element.dataset.until = String(recordings.value[0]?.span?.[1]);
    };
    // Plots are rebuilt at once: the printer does not wait.
    const rebuilt = effect(() => {
      printing.value;
      untracked(build);
    });
    const stop = onDraw(() => draw.current());
    const watched = new ResizeObserver(() => {
      if (!printing.value) plot.current?.resize(element.clientWidth);
    });
    watched.observe(element);
    return () => {
      watched.disconnect();
      stop();
      rebuilt();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [panel]);

  useSignalEffect(() => {
    theme.value;
    untracked(() => plot.current && draw.current());
  });

  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 };
    const by = steps[event.key];
    if (by === undefined) return;
    plot.current?.step(by);
    event.preventDefault();
  };
  return (
    <figure class="chart" id={`figure-${panel.id}`}>
      <figcaption>
        <h3>
          {panel.title}
          {panel.unit && <span class="unit"> {panel.unit}</span>}
        </h3>
        {typeof panel.note === "string" ? (
          <span key="fixed" class="soft">
            {panel.note}
          </span>
        ) : (
          <span key="live" ref={note} class="soft" />
        )}
      </figcaption>
      {panel.legend && <Legend name={panel.title} lines={panel.lines} />}
      <div
        ref={host}
        class="plot"
        id={`chart-${panel.id}`}
        role="img"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys move the cursor through the samples.
        tabIndex={0}
        onKeyDown={onKeyDown}
        onBlur={() => plot.current?.leave()}
      />
    </figure>
  );
}
