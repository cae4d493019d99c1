/** What charts carry besides curves: thresholds, lines where a parameter was changed, and the names of lanes. */
import type uPlot from "uplot";
import type { Change } from "../data/recording.js";
import { ink } from "../theme.js";
import type { Panel, Threshold } from "./panels.js";
import { short } from "./plot.js";

const kFontFamily = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
/** Part of a lane that its largest value takes. */
const kLaneFill = 0.82;
const kRow = 14;

/** How high a value is in its lane, and back. */
export const laneHeight = (value: number): number => Math.sqrt(value);
export const laneValue = (height: number): number => height ** 2;

/** Bounds of a scale that puts 0 at the lower edge of lane `lane` of `count` and `peak` below its upper edge. */
export function laneRange(lane: number, count: number, peak: number): [number, number] {
  const height = laneHeight(peak > 0 ? peak : 1) / kLaneFill;
  const below = count - 1 - lane;
  return [-below * height, (count - below) * height];
}

export function drawThresholds(u: uPlot, thresholds: readonly Threshold[]): void {
  const { ctx, bbox } = u;
  ctx.save();
  setFont(ctx, 11);
  ctx.textAlign = "right";
  ctx.textBaseline = "alphabetic";
  const right = bbox.left + bbox.width - 5 * devicePixelRatio;
  let above = 0;
  /** Where texts stand already: one at nearly the same height goes to the left of them. */
  const placed: { y: number; left: number }[] = [];
  for (const { label, value } of thresholds) {
    const y = u.valToPos(value, "y", true);
    ctx.strokeStyle = ctx.fillStyle = ink("soft");
    ctx.lineWidth = devicePixelRatio;
    if (y < bbox.top) {
      above++;
      write(ctx, `${label} (above)`, right, bbox.top + (above * kRow - 1) * devicePixelRatio);
      continue;
    }
    ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    const near = placed.filter((one) => Math.abs(one.y - y) < kRow * devicePixelRatio).map(({ left }) => left);
    const end = Math.min(right, ...near.map((left) => left - 12 * devicePixelRatio));
    placed.push({ y, left: end - ctx.measureText(label).width });
    write(ctx, label, end, y - 4 * devicePixelRatio);
  }
  ctx.restore();
}

/** Each change at its time, its text beside it; texts near each other stand in rows. */
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
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.setLineDash([2 * devicePixelRatio, 2 * devicePixelRatio]);
  for (const { x } of inView) {
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  /** Where the last text of each row ends. */
  const rows: number[] = [];
  for (const { x, text } of inView) {
    const { width } = ctx.measureText(text);
    const gap = 4 * devicePixelRatio;
    const fits = x + gap + width < bbox.left + bbox.width;
    const left = fits ? x + gap : x - gap - width;
    const free = rows.findIndex((end) => end + gap < left);
    const row = free < 0 ? rows.length : free;
    rows[row] = left + width;
    write(ctx, text, left, bbox.top + (row * kRow + 1) * devicePixelRatio);
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
  write(ctx, `\u2191 ${text}`, bbox.left + 8 * devicePixelRatio, bbox.top + devicePixelRatio);
  ctx.restore();
}

/** "switch.ecn.kmax=200KB" as "kmax=200KB". */
export function shortName(set: string): string {
  const [path = "", ...value] = set.split("=");
  return [path.split(".").at(-1), ...value].join("=");
}

/** Left of each lane its name and largest value, and a line below it. */
export function drawLaneNames(u: uPlot, { lanes = [], lines }: Panel, peaks: readonly number[]): void {
  const { ctx, bbox } = u;
  if (lanes.length === 0) return;
  ctx.save();
  const height = bbox.height / lanes.length;
  const right = bbox.left - 8 * devicePixelRatio;
  ctx.textAlign = "right";
  lanes.forEach((name, lane) => {
    const bottom = bbox.top + (lane + 1) * height;
    ctx.strokeStyle = ink("rule");
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(bbox.left, bottom);
    ctx.lineTo(bbox.left + bbox.width, bottom);
    ctx.stroke();
    const sole = lines.filter((line) => line.lane === lane);
    ctx.fillStyle = ink(sole.length === 1 ? (sole[0]?.color ?? "ink") : "ink");
    setFont(ctx, 11, "600 ");
    ctx.textBaseline = "bottom";
    ctx.fillText(name, right, bottom - height / 2 + devicePixelRatio);
    ctx.fillStyle = ink("soft");
    setFont(ctx, 10.5);
    ctx.textBaseline = "top";
    const peak = peaks[lane] ?? 0;
    ctx.fillText(peak > 0 ? `max ${short(peak)}` : "none", right, bottom - height / 2 + 2 * devicePixelRatio);
  });
  ctx.restore();
}

function setFont(ctx: CanvasRenderingContext2D, size: number, weight = ""): void {
  ctx.font = `${weight}${size * devicePixelRatio}px ${kFontFamily}`;
}

/** Text with a rim of the ground, so that curves do not run through it. */
function write(ctx: CanvasRenderingContext2D, text: string, x: number, y: number): void {
  const { strokeStyle, lineWidth } = ctx;
  ctx.setLineDash([]);
  ctx.strokeStyle = ink("panel");
  ctx.lineWidth = 3 * devicePixelRatio;
  ctx.strokeText(text, x, y);
  ctx.fillText(text, x, y);
  ctx.strokeStyle = strokeStyle;
  ctx.lineWidth = lineWidth;
}
