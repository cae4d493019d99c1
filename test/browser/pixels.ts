/** Looks at the canvases of charts: curves are coloured; axes, grid and thresholds are grey. */
import type { Page } from "playwright-core";

export interface Ink {
  /** Columns of pixels inside of the axes. */
  columns: number;
  /** Number of columns with a pixel of a curve's colour. */
  inked: number;
  /** Index of the first of them; -1: there is none. */
  first: number;
  /** Number that differs as soon as a pixel does. */
  hash: number;
}

interface Pixels {
  width: number;
  height: number;
  data: Uint8ClampedArray;
}

declare global {
  var pixelsOfChart: (host: Element) => Pixels;
}

/** Runs in the page: the pixels between the axes, of a copy, because to read a canvas often makes it slow. */
export function installPixels(): void {
  globalThis.pixelsOfChart = (host) => {
    const canvas = host.querySelector("canvas") as HTMLCanvasElement;
    const over = host.querySelector(".u-over") as HTMLElement;
    const ratio = canvas.width / canvas.clientWidth;
    const [left, top, width, height] = [over.offsetLeft, over.offsetTop, over.clientWidth, over.clientHeight].map((x) =>
      Math.round(x * ratio),
    ) as [number, number, number, number];
    const copy = new OffscreenCanvas(width, height);
    const context = copy.getContext("2d", { willReadFrequently: true }) as OffscreenCanvasRenderingContext2D;
    context.drawImage(canvas, -left, -top);
    return { width, height, data: context.getImageData(0, 0, width, height).data };
  };
}

export function inkOf(page: Page, chart: string): Promise<Ink> {
  return page.locator(`#chart-${chart}`).evaluate((host): Ink => {
    const { width, data } = pixelsOfChart(host);
    const inked = new Uint8Array(width);
    let hash = 0;
    for (let i = 0; i < data.length; i += 4) {
      const r = data[i] as number;
      const g = data[i + 1] as number;
      const b = data[i + 2] as number;
      const alpha = data[i + 3] as number;
      hash = (Math.imul(hash, 31) + r + 3 * g + 7 * b + 11 * alpha) | 0;
      if (alpha > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 50) inked[(i / 4) % width] = 1;
    }
    return { columns: width, inked: inked.reduce((sum, one) => sum + one, 0), first: inked.indexOf(1), hash };
  });
}

/** Places of lines in the colour of changes, from top to bottom, 0..1. */
export function changeLines(page: Page, chart: string): Promise<number[]> {
  return page.locator(`#chart-${chart}`).evaluate((host) => {
    const probe = document.createElement("i");
    probe.style.color = "var(--change)";
    host.append(probe);
    const wanted = (getComputedStyle(probe).color.match(/\d+/g) ?? []).map(Number);
    probe.remove();
    const { width, height, data } = pixelsOfChart(host);
    const counts = new Uint32Array(width);
    for (let i = 0; i < data.length; i += 4) {
      const close = wanted.every((value, channel) => Math.abs(value - (data[i + channel] as number)) < 60);
      const column = (i / 4) % width;
      if (close && (data[i + 3] as number) > 100) counts[column] = (counts[column] as number) + 1;
    }
    // They are dashed, half and half.
    return [...counts].flatMap((count, column) => (count > height * 0.35 ? [column / width] : []));
  });
}
