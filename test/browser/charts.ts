/** Reads from a report's charts what a reader can see. */
import type { Page } from "playwright-core";

/** Coloured dots that a curve has at least. */
const kDots = 150;

/** Titles of figures in which nothing is drawn; axes and grid are grey, and are no drawing. */
export async function emptyFigures(page: Page): Promise<string[]> {
  return await page.evaluate((least) => {
    const titleOf = (node: Element) => node.closest("figure")?.querySelector("h3, title")?.textContent ?? "?";
    const colored = (canvas: HTMLCanvasElement) => {
      const { data } = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height) ?? { data: [] };
      let dots = 0;
      for (let i = 0; i + 3 < data.length; i += 4) {
        const [red = 0, green = 0, blue = 0, alpha = 0] = data.slice(i, i + 4);
        if (alpha > 128 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) dots++;
      }
      return dots;
    };
    const charts = [...document.querySelectorAll("figure.chart")].filter((chart) => {
      const canvas = chart.querySelector("canvas");
      return canvas === null || canvas.getBoundingClientRect().width < 200 || colored(canvas) < least;
    });
    const pictures = [...document.querySelectorAll("figure > svg")].filter((svg) => {
      const drawn = [...svg.querySelectorAll("path, rect")].filter((shape) => {
        const { width, height } = shape.getBoundingClientRect();
        const { stroke, fill } = getComputedStyle(shape);
        const color = /^rgb\((\d+), (\d+), (\d+)\)$/.exec(stroke === "none" ? fill : stroke);
        const parts = (color ?? []).slice(1).map(Number);
        return width + height > 20 && Math.max(...parts) - Math.min(...parts) > 60;
      });
      return svg.getBoundingClientRect().width < 200 || drawn.length === 0;
    });
    return [...charts, ...pictures].map(titleOf);
  }, kDots);
}

export const figureCount = (page: Page): Promise<number> => page.locator("figure.chart, figure > svg").count();
