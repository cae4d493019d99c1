/** All charts below each other, on one time axis. */
import { useComputed, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { gather } from "../data/gather.js";
import { onDraw } from "../draw.js";
import { frames, pausedAt, session } from "../store.js";
import { theme } from "../theme.js";
import { flowIds, flowsInView, rangeInView, recordings, setZoom, shown } from "../view.js";
import { type Panel, panelsOf, type Threshold, thresholdsOf } from "./panels.js";
import { Plot } from "./plot.js";

/** Screens show no more; uPlot draws each. */
const kPoints = 1400;
const kPointsOfMany = 300;
const kManyLines = 24;

export function Charts() {
  const panels = useComputed(() => {
    const now = session.value;
    const finished = shown.value;
    const control = finished[0]?.result.congestion_control ?? now?.congestion_control ?? "dcqcn";
    return panelsOf({
      recordings: recordings.value,
      live: finished.length === 0,
      // Runs take milliseconds of meant time.
      eventsPer: finished.length === 0 && now?.duration_ns === null ? "per s" : "per ms",
      labels: finished.map(({ label }) => label),
      flowIds: flowIds.value,
      flows: flowsInView.value,
      queueThresholds,
      congestionControl: control,
    });
  });
  const list = panels.value;
  return (
    <section class="charts" aria-label="Charts">
      {list.map((panel, i) => (
        <Chart key={panel.id} panel={panel} last={i === list.length - 1} />
      ))}
    </section>
  );
}

function queueThresholds(): Threshold[] {
  const { queues = [] } = session.value ?? {};
  if (shown.value.some(({ key }) => !key.startsWith("run:"))) return [];
  const xoff = shown.value.length === 0 ? (frames.seen?.switches.map((one) => one.xoff) ?? []) : [];
  return thresholdsOf(queues, xoff);
}

function Chart({ panel, last }: { panel: Panel; last: boolean }) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const note = useRef<HTMLSpanElement>(null);
  const draw = useRef<() => void>(() => {});

  useEffect(() => {
    const element = host.current as HTMLDivElement;
    const made = new Plot(element, {
      panel,
      withTimes: last,
      width: element.clientWidth,
      changes: () => (recordings.value.length === 1 ? (recordings.value[0]?.changes ?? []) : []),
      onZoom: setZoom,
    });
    plot.current = made;
    draw.current = () => {
      const range = rangeInView();
      const most = panel.lines.length > kManyLines ? kPointsOfMany : kPoints;
      const curves = panel.lines.map(({ curve }) => curve);
      made.update(gather(curves, range, pausedAt.value, most), range);
      if (note.current && typeof panel.note === "function") note.current.textContent = panel.note();
      element.dataset.until = String(recordings.value[0]?.span?.[1]);
    };
    const stop = onDraw(() => draw.current());
    const watched = new ResizeObserver(() => made.resize(element.clientWidth));
    watched.observe(element);
    return () => {
      watched.disconnect();
      stop();
      made.destroy();
    };
  }, [panel, last]);

  useSignalEffect(() => {
    theme.value;
    draw.current();
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
