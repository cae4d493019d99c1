import { describe, expect, it } from "vitest";
import { drawFigure, type Plot, ticks } from "../../src/report/plot.js";

const plot: Plot = {
  title: "Queue & <size>",
  x_label: "time, s",
  y_label: "queue, KB",
  x_range: [0, 10],
  y_range: [0, 100],
  curves: [
    { label: "a", x: [0, 5, 10], y: [0, null, 100] },
    { label: "b", x: [0, 10], y: [50, 50], style: "dashed", stepped: true },
  ],
  levels: [
    { label: "Q_eq 33 KB", value: 33 },
    { label: "far above", value: 1000 },
  ],
  marks: [{ label: "change", x: 3 }],
};

describe("drawFigure", () => {
  const svg = drawFigure("a figure", [
    { heading: "wire", plots: [plot, plot] },
    { heading: "sim", plots: [plot] },
  ]);

  it("is one SVG, columns beside and plots below each other", () => {
    expect(svg).toMatch(/^<svg xmlns="http:\/\/www.w3.org\/2000\/svg" viewBox="0 0 1380 570"/);
    expect(svg.match(/<g>/g)).toHaveLength(3);
    expect(svg).toContain("<title>a figure</title>");
    expect(svg).toContain("wire");
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
  });

  it("has labelled axes, levels that are in range, marks and a legend; names cannot become markup", () => {
    expect(svg).toContain("Queue &amp; &lt;size&gt;");
    for (const text of ["time, s", "queue, KB", "Q_eq 33 KB", "change", ">a<", ">b<"]) expect(svg).toContain(text);
    expect(svg).not.toContain("far above");
    expect(svg).toContain('stroke-dasharray="7 4"');
  });

  it("leaves gaps where nothing is known, and steps where asked", () => {
    const one = (curves: Plot["curves"]) => drawFigure("", [{ heading: "", plots: [{ ...plot, curves }] }]);
    expect(one([{ label: "", x: [0, 1, 2, 3], y: [1, null, 2, 3] }])).toMatch(/<path d="M[\d.]+ [\d.]+M[\d.]+ [\d.]+L/);
    expect(one([{ label: "", x: [0, 1], y: [1, 2], stepped: true }])).toMatch(/<path d="M[\d.]+ [\d.]+H[\d.]+V/);
  });

  it("finds ranges by itself, also for nothing at all", () => {
    const { x_range, y_range, ...free } = plot;
    expect(x_range).toBeDefined();
    expect(y_range).toBeDefined();
    expect(drawFigure("", [{ heading: "", plots: [free] }])).toContain(">1000<");
    expect(drawFigure("", [{ heading: "", plots: [{ ...free, curves: [], levels: [] }] }])).not.toMatch(/NaN|Infinity/);
    expect(drawFigure("nothing", [])).toContain("<title>nothing</title>");
  });
});

describe("ticks", () => {
  it("are round and within the range", () => {
    expect(ticks([0, 100], 5)).toEqual([0, 20, 40, 60, 80, 100]);
    expect(ticks([0, 9.7], 8)).toEqual([0, 2, 4, 6, 8]);
    expect(ticks([500, 950], 8)).toEqual([500, 600, 700, 800, 900]);
    expect(ticks([0, 0.3], 5).map((value) => value.toFixed(2))).toEqual(["0.00", "0.10", "0.20", "0.30"]);
  });
});
