/** Draws the parts of charts besides curves: thresholds, warm-up, lines where a parameter was changed, and the names of lanes. */
import type uPlot from "uplot";
import type { Change } from "../data/recording.js";
import { dots, faded, ink } from "../theme.js";
import type { LanePeak } from "./lanes.js";
import { short } from "./number_text.js";
import type { Panel, Threshold } from "./panel.js";

const kFontFamily = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const kRow = 14;
const kLaneRow = 12;

export function drawThresholds(u: uPlot, thresholds: readonly Threshold[]): void {
  const { ctx, bbox } = u;
  const all = thresholds.map(({ label, value }) => ({ label, y: u.valToPos(value, "y", true) }));
  const within = all.filter(({ y }) => y >= bbox.top);
  ctx.save();
  setFont(ctx, 11);
  ctx.textAlign = "right";
  ctx.textBaseline = "alphabetic";
  ctx.strokeStyle = ctx.fillStyle = ink("soft");
  ctx.lineWidth = dots();
  ctx.setLineDash([5 * dots(), 4 * dots()]);
  for (const { y } of within) {
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
  }
  // Names are drawn after all lines, for one may go through the name of another.
  const right = bbox.left + bbox.width - 5 * dots();
  all
    .filter(({ y }) => y < bbox.top)
    .forEach(({ label }, i) => {
      write(ctx, `${label} (above)`, right, bbox.top + ((i + 1) * kRow - 1) * dots());
    });
  /** Places of texts so far: a text at nearly the same height goes to the left of them. */
  const placed: { y: number; left: number }[] = [];
  for (const { label, y } of within) {
    const near = placed.filter((one) => Math.abs(one.y - y) < kRow * dots()).map(({ left }) => left);
    const end = Math.min(right, ...near.map((left) => left - 12 * dots()));
    const width = ctx.measureText(label).width;
    placed.push({ y, left: end - width });
    plate(ctx, end - width, y - kRow * dots(), width, (kRow - 1) * dots());
    write(ctx, label, end, y - 4 * dots());
  }
  ctx.restore();
}

/** Marks the time from 0 to `until`, ms, which a run's figures leave out. */
export function drawWarmup(u: uPlot, until: number): void {
  const { ctx, bbox } = u;
  const right = Math.min(bbox.left + bbox.width, u.valToPos(until, "x", true));
  if (right <= bbox.left) return;
  ctx.save();
  ctx.globalAlpha = 0.08;
  ctx.fillStyle = ink("ink");
  ctx.fillRect(bbox.left, bbox.top, right - bbox.left, bbox.height);
  ctx.restore();
}

/** Draws each change at its time, its text beside it; texts near each other stand in rows. */
export function drawChanges(u: uPlot, changes: readonly Change[]): void {
  const { ctx, bbox } = u;
  ctx.save();
  setFont(ctx, 11);
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  ctx.strokeStyle = ctx.fillStyle = ink("change");
  const inView = changes
    .map(({ at, set }) => ({ x: Math.round(u.valToPos(at, "x", true)), text: set.map(shortName).join(", ") }))
    .filter(({ x }) => x >= bbox.left && x <= bbox.left + bbox.width);
  ctx.lineWidth = 1.5 * dots();
  ctx.setLineDash([2 * dots(), 2 * dots()]);
  for (const { x } of inView) {
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  /** End of the last text of each row. */
  const rows: number[] = [];
  for (const { x, text } of inView) {
    const { width } = ctx.measureText(text);
    const gap = 4 * dots();
    const fits = x + gap + width < bbox.left + bbox.width;
    const left = fits ? x + gap : x - gap - width;
    const free = rows.findIndex((end) => end + gap < left);
    const row = free < 0 ? rows.length : free;
    rows[row] = left + width;
    write(ctx, text, left, bbox.top + (row * kRow + 1) * dots());
  }
  ctx.restore();
}

/** Says that curves leave the picture, and how far. */
export function drawBeyond(u: uPlot, text: string): void {
  const { ctx, bbox } = u;
  ctx.save();
  setFont(ctx, 11);
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  ctx.fillStyle = ink("soft");
  write(ctx, `\u2191 ${text}`, bbox.left + 8 * dots(), bbox.top + dots());
  ctx.restore();
}

/** Shortens "switch.ecn.kmax=200KB" to "kmax=200KB". */
export function shortName(set: string): string {
  const [path = "", ...value] = set.split("=");
  return [path.split(".").at(-1), ...value].join("=");
}

/** Writes left of each lane its name and largest value, and that of the start if it is beyond; below the lane is a line. */
export function drawLaneNames(u: uPlot, { lanes = [], lines }: Panel, peaks: readonly LanePeak[]): void {
  const { ctx, bbox } = u;
  if (lanes.length === 0) return;
  ctx.save();
  const height = bbox.height / lanes.length;
  const right = bbox.left - 8 * dots();
  ctx.textAlign = "right";
  lanes.forEach((name, lane) => {
    const bottom = bbox.top + (lane + 1) * height;
    ctx.strokeStyle = ink("rule");
    ctx.lineWidth = dots();
    ctx.beginPath();
    ctx.moveTo(bbox.left, bottom);
    ctx.lineTo(bbox.left + bbox.width, bottom);
    ctx.stroke();
    const sole = lines.filter((line) => line.lane === lane);
    ctx.fillStyle = ink(sole.length === 1 ? (sole[0]?.color ?? "ink") : "ink");
    setFont(ctx, 11, "600 ");
    ctx.textBaseline = "bottom";
    const { peak, start } = peaks[lane] ?? { peak: 0, start: undefined };
    const below = [
      peak > 0 ? `max ${compact(peak)}` : "none",
      ...(start === undefined ? [] : [`start ${compact(start)}`]),
    ];
    const middle = bottom - (height + (below.length - 1) * kLaneRow * dots()) / 2;
    ctx.fillText(name, right, middle + dots());
    ctx.fillStyle = ink("soft");
    setFont(ctx, 10.5);
    ctx.textBaseline = "top";
    below.forEach((text, row) => {
      ctx.fillText(text, right, middle + (2 + row * kLaneRow) * dots());
    });
  });
  ctx.restore();
}

/** Shortens a number, since there is little room beside a lane: "14.2k". */
function compact(value: number): string {
  return value >= 1e4 ? `${Number((value / 1e3).toPrecision(3))}k` : String(short(value));
}

function setFont(ctx: CanvasRenderingContext2D, size: number, weight = ""): void {
  ctx.font = `${weight}${size * dots()}px ${kFontFamily}`;
}

/** Paints a ground for a text, at which curves end: dense ones would run through it. */
function plate(ctx: CanvasRenderingContext2D, x: number, y: number, width: number, height: number): void {
  const { fillStyle } = ctx;
  ctx.fillStyle = faded("panel", 0.88);
  ctx.fillRect(x - 3 * dots(), y, width + 6 * dots(), height);
  ctx.fillStyle = fillStyle;
}

/** Writes text with a rim of the ground, so that curves do not run through it. */
function write(ctx: CanvasRenderingContext2D, text: string, x: number, y: number): void {
  const { strokeStyle, lineWidth } = ctx;
  ctx.setLineDash([]);
  ctx.strokeStyle = ink("panel");
  ctx.lineWidth = 3 * dots();
  ctx.strokeText(text, x, y);
  ctx.fillText(text, x, y);
  ctx.strokeStyle = strokeStyle;
  ctx.lineWidth = lineWidth;
}
