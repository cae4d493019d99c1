/** One panel on a canvas: uPlot with the page's inks, thresholds, change lines, lanes, a tip at the cursor, and zoom by dragging. */
import uPlot from "uplot";
import { type Gathered, largest } from "../data/gather.js";
import type { Change } from "../data/recording.js";
import { faded, ink, unit } from "../theme.js";
import { bandEdges } from "./bands.js";
import { type LanePeak, laneHeightWithin, lanePeak, laneRange } from "./lanes.js";
import { drawBeyond, drawChanges, drawLaneNames, drawThresholds, drawWarmup } from "./marks.js";
import { short, timeTexts } from "./number_text.js";
import type { Line, Panel } from "./panel.js";
import { Tip } from "./tip.js";

export interface PlotOptions {
  panel: Panel;
  width: number;
  /** End of the time that a run's figures leave out, ms. */
  warmup: () => number;
  changes: () => readonly Change[];
  onZoom(range: readonly [number, number] | null): void;
}

/** All panels of a page share cursor and time. */
const kSync = "time";
const kFontSize = 11.5;
const kFontFamily = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
/** Margins of all charts, so that times are above each other. */
const kLeft = 64;
const kRight = 12;
const kTimes = 34;
const kManyLines = 16;
/** Opacity of a shade. */
const kShade = 0.2;
/** Part of the samples that decides where an axis ends, and how many samples are examined. */
const kUsual = 0.985;
const kSampled = 3000;

export class Plot {
  private readonly plot: uPlot;
  private readonly tip: Tip;
  private readonly lanes: LanePeak[] = [];
  /** Values as they came: lanes draw them at other heights. */
  private values: Gathered["ys"] = [];
  /** Largest value, and the largest that the axis shows. */
  private most = 0;
  private shown = 0;
  private readonly host: HTMLElement;

  constructor(
    host: HTMLElement,
    private readonly options: PlotOptions,
  ) {
    this.host = host;
    const { panel } = options;
    this.tip = new Tip(host, panel);
    this.plot = new uPlot(this.configuration(), [[], ...panel.lines.map(() => [])], host);
  }

  get height(): number {
    return unit() * (this.options.panel.height + kTimes);
  }

  update({ x, ys }: Gathered, [min, max]: readonly [number, number]): void {
    this.most = Math.max(0, ...ys.map(largest));
    this.shown = this.panel.lanes ? this.most : withoutSpikes(ys, this.most);
    this.values = ys;
    this.panel.lanes?.forEach((_, lane) => {
      const own = ys.filter((__, i) => this.panel.lines[i]?.lane === lane);
      this.lanes[lane] = lanePeak(x, own, this.options.warmup());
    });
    const heights = ys.map((line, i) => {
      const lane = this.panel.lines[i]?.lane;
      return lane === undefined ? line : line.map((value) => laneHeightWithin(value, this.lanes[lane]));
    });
    this.plot.batch(() => {
      this.plot.setData([x, ...heights], false);
      this.plot.setScale("x", { min, max });
    });
    this.describe(ys);
  }

  resize(width: number): void {
    if (width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: this.height });
  }

  /** Moves the cursor by samples; from outside of the picture it begins at the newest. */
  step(by: number): void {
    const times = this.plot.data[0];
    const { min = 0, max = 0 } = this.plot.scales.x ?? {};
    const before = this.plot.cursor.idx;
    const shown = times.findLastIndex((time) => time <= max);
    const at = before === null || before === undefined || this.plot.cursor.left === -10 ? shown : before + by;
    const index = Math.max(
      times.findIndex((time) => time >= min),
      Math.min(shown, at),
    );
    const time = times[index];
    if (time === undefined) return;
    this.plot.setCursor({ left: this.plot.valToPos(time, "x"), top: this.plot.over.clientHeight / 2 });
  }

  leave(): void {
    this.plot.setCursor({ left: -10, top: -10 });
  }

  destroy(): void {
    this.plot.destroy();
    this.tip.remove();
  }

  private get panel(): Panel {
    return this.options.panel;
  }

  /** Describes the picture for readers who do not see it; they read it when they come to it. */
  private describe(ys: Gathered["ys"]): void {
    const { panel } = this;
    this.host.dataset.points = String(ys.reduce((sum, line) => sum + line.filter((value) => value !== null).length, 0));
    if (document.activeElement === this.host) return;
    const last = panel.lines.slice(0, 8).map((line, i) => {
      const value = ys[i]?.findLast((one) => one !== null);
      return `${line.label} ${value === undefined || value === null ? "none" : `${short(value)} ${panel.unit}`.trim()}`;
    });
    const more = panel.lines.length > 8 ? `, and ${panel.lines.length - 8} more` : "";
    this.host.setAttribute("aria-label", `${panel.title}: ${last.join(", ")}${more}`);
  }

  private configuration(): uPlot.Options {
    const { panel, width, changes, warmup, onZoom } = this.options;
    const { fixed, lanes = [] } = panel;
    const px = unit();
    const font = `${kFontSize * px}px ${kFontFamily}`;
    const axis = {
      stroke: () => ink("soft"),
      font,
      labelFont: font,
      gap: 5 * px,
      grid: { stroke: () => ink("rule"), width: px },
      ticks: { stroke: () => ink("rule"), width: px, size: 4 * px },
    };
    return {
      width,
      height: this.height,
      padding: [8 * px, kRight * px, 0, 0],
      legend: { show: false },
      cursor: {
        points: { show: false },
        ...(fixed === undefined && panel.span === undefined && { sync: { key: kSync, setSeries: false } }),
        drag: { x: fixed === undefined, y: false, setScale: false },
        bind: {
          dblclick: () => () => {
            onZoom(null);
            return null;
          },
        },
      },
      scales: {
        x: { time: false, auto: false },
        y: { range: (_, __, max: number | null) => yRange(panel, max === null ? null : this.shown) },
        ...Object.fromEntries(
          lanes.map((_, lane) => [
            laneScale(lane),
            { range: () => laneRange(lane, lanes.length, this.lanes[lane]?.peak ?? 0) },
          ]),
        ),
      },
      axes: [
        {
          ...axis,
          size: px * kTimes,
          values: (u, splits) => this.textsOf(u, splits),
          space: 70 * px,
        },
        {
          ...axis,
          size: kLeft * px,
          space: 26 * px,
          ...(lanes.length > 0 && { splits: () => [], grid: { show: false } }),
          values: (_, splits) => splits.map((value) => String(short(value))),
        },
      ],
      series: [{}, ...panel.lines.map((line) => this.seriesOf(line))],
      bands: bandEdges(panel.lines).map(({ high, low, color }) => ({
        series: [high + 1, low + 1],
        fill: () => faded(color, kShade),
      })),
      hooks: {
        drawClear: [
          (u) => drawLaneNames(u, panel, this.lanes),
          (u) => {
            if (fixed === undefined) drawWarmup(u, warmup());
          },
        ],
        draw: [
          (u) => drawThresholds(u, panel.thresholds?.() ?? []),
          (u) => drawChanges(u, fixed === undefined ? changes() : []),
          (u) => this.tellBeyond(u),
        ],
        setCursor: [(u) => this.tip.show(u, this.values, this.host.matches(":hover, :focus"))],
        setSelect: [
          (u) => {
            const { left, width: selected } = u.select;
            if (selected < 4) return;
            onZoom([u.posToVal(left, "x"), u.posToVal(left + selected, "x")]);
            u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          },
        ],
      },
    };
  }

  private textsOf(u: uPlot, splits: readonly number[]): string[] {
    const { fixed } = this.panel;
    return fixed
      ? splits.map((value, i) => `${short(value)}${i === 0 ? ` ${fixed.unit}` : ""}`)
      : timeTexts(splits, u.scales.x?.max ?? 0);
  }

  private tellBeyond(u: uPlot): void {
    const { lanes, unit } = this.panel;
    if (!lanes && this.most > (u.scales.y?.max ?? 0)) drawBeyond(u, `up to ${short(this.most)} ${unit}`);
  }

  private seriesOf({ label, color, dash, faint, edge, lane, run, curve }: Line): uPlot.Series {
    const { lines, lanes, fixed } = this.panel;
    const folded = curve !== undefined && edge === undefined && !["last", "mean"].includes(curve.fold);
    const stepped = fixed !== undefined || folded;
    const many = lines.length > kManyLines;
    // Events of several runs stand in one lane, where one would hide the other.
    const opacity = faint || (lane !== undefined && run !== undefined) ? 0.6 : many ? 0.8 : 1;
    const single = lane !== undefined && lines.filter((line) => line.lane === lane).length === 1;
    return {
      label,
      scale: lane === undefined ? "y" : laneScale(lane),
      stroke: () => (edge ? "transparent" : opacity < 1 ? faded(color, opacity) : ink(color)),
      width: unit() * (faint || many ? 1 : 1.6),
      // Among many lines nobody can follow a dash, and dashes are slow to draw.
      dash: many ? [] : dash.map((length) => length * unit()),
      points: { show: false },
      ...(stepped && { paths: uPlot.paths.stepped?.({ align: fixed ? 1 : -1 }) as uPlot.Series.PathBuilder }),
      ...(single && lanes && { fill: () => faded(color, 0.35), fillTo: 0 }),
    };
  }
}

function laneScale(lane: number): string {
  return `lane${lane}`;
}

/**
 * Returns the largest value for the axis. A short burst, such as all senders at line rate before the first CNP, would flatten the
 * rest: the axis ends a little above all but few samples, if the largest is more than twice that.
 */
function withoutSpikes(ys: Gathered["ys"], most: number): number {
  const step = Math.max(1, Math.floor((ys.length * (ys[0]?.length ?? 0)) / kSampled));
  const some: number[] = [];
  for (const line of ys) {
    for (let i = 0; i < line.length; i += step) {
      const value = line[i];
      if (value !== null && value !== undefined) some.push(value);
    }
  }
  some.sort((a, b) => a - b);
  const usual = some[Math.floor(some.length * kUsual)] ?? most;
  return usual > 0 && most > 2 * usual ? 1.25 * usual : most;
}

/** Range that ends on a round number, so that the axis does not tremble; thresholds far above the data would flatten it. */
function yRange({ thresholds, most }: Panel, dataMax: number | null): [number, number] {
  const data = dataMax ?? 0;
  const high = Math.max(
    data,
    ...(thresholds?.() ?? []).map(({ value }) => (dataMax === null || value <= 3 * data ? value : 0)),
  );
  const round = high <= 0 ? 1 : roundUp(high * 1.05);
  return [0, most === undefined ? round : Math.min(most * 1.05, round)];
}

function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8].find((one) => one * power >= value);
  return (step ?? 10) * power;
}
