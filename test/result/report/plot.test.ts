/** Figures: they have all that is asked for, are well-formed, and every time the same. */
import { describe, expect, it } from "vitest";
import { drawFigure } from "../../../src/result/report/figure.js";
import type { Curve, Plot } from "../../../src/result/report/plot.js";

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

const draw = (...plots: Plot[]) => drawFigure("a figure", [{ heading: "sim", plots }]);
const alone = (curve: Curve, rest: Partial<Plot> = {}) =>
  draw({ title: "", x_label: "", y_label: "", curves: [curve], ...rest });
/** Paths of lines that are drawn as such. */
const lines = (svg: string) =>
  [...svg.matchAll(/aria-roledescription="line mark"[^>]*? d="([^"]*)"/g)].map(([, d]) => d as string);
const count = (svg: string, role: string) => svg.split(`aria-roledescription="${role}"`).length - 1;

describe("a figure", () => {
  it("is one SVG that stands alone, with a title, headings, labels, levels in range, marks and a legend", async () => {
    const columns = [
      { heading: "wire", plots: [plot, plot] },
      { heading: "sim", plots: [plot] },
    ];
    const svg = await drawFigure("a <figure>", columns);
    expect(Number(/^<svg[^>]* width="(\d+)"/.exec(svg)?.[1])).toBeGreaterThan(1000);
    expect(svg).toContain("<title>a &lt;figure&gt;</title>");
    expect(svg).toContain("Queue &amp; &lt;size&gt;");
    for (const text of ["wire", "sim", "time, s", "queue, KB", "Q_eq 33 KB", "change", ">a<", ">b<"])
      expect(svg).toContain(text);
    expect(svg).not.toContain("far above");
    expect(svg).not.toMatch(/NaN|Infinity|undefined|<script|href="http/);
    expect(lines(svg)).toHaveLength(6);
    expect(await drawFigure("a <figure>", columns)).toBe(svg);
  });

  it("leaves gaps where nothing is known, and steps where asked", async () => {
    const gap = lines(await alone({ label: "", x: [0, 1, 2, 3], y: [1, null, 2, 3] }));
    expect(gap[0]?.match(/M/g)).toHaveLength(2);
    const [stepped = ""] = lines(await alone({ label: "", x: [0, 1], y: [1, 2], stepped: true }));
    expect(stepped.match(/[LHV]/g)?.length).toBeGreaterThanOrEqual(2);
    const never = lines(await alone({ label: "", x: [0, 1, 2], y: [1, Number.POSITIVE_INFINITY, 2] }));
    expect(never.join()).not.toMatch(/NaN|Infinity/);
  });

  it("keeps the peaks of long curves", async () => {
    const x = Array.from({ length: 20_000 }, (_, i) => i);
    const [path = ""] = lines(
      await alone({ label: "", x, y: x.map((i) => (i === 12_345 ? 100 : 0)) }, { y_range: [0, 100] }),
    );
    const heights = [...path.matchAll(/,(-?[\d.]+)/g)].map(([, y]) => Number(y));
    expect(Math.min(...heights)).toBe(0);
    expect(heights.length).toBeLessThan(2_000);
  });

  it("draws bars beside each other with whiskers", async () => {
    const bar = (label: string, y: number[]): Curve => ({
      label,
      kind: "bars",
      x: [0, 1],
      y,
      low: [0, 1],
      high: [3, 4],
    });
    const x_names = [
      { x: 0, label: "few" },
      { x: 1, label: "many" },
    ];
    const bars = await draw({
      title: "",
      x_label: "",
      y_label: "",
      x_names,
      curves: [bar("PFC", [1, 2]), bar("DCQCN", [2, 3])],
    });
    expect(count(bars, "bar")).toBe(4);
    expect(count(bars, "rule mark")).toBe(4);
    for (const text of [">few<", ">many<", ">PFC<", ">DCQCN<"]) expect(bars).toContain(text);
  });

  it("tells twenty curves apart, and names all", async () => {
    const curves = Array.from({ length: 20 }, (_, i) => ({ label: `flow ${i}`, x: [0, 1], y: [0, i + 1] }));
    const svg = await draw({ title: "", x_label: "", y_label: "", curves });
    const looks = [
      ...svg.matchAll(/aria-roledescription="line mark"[^>]*? stroke="([^"]*)"[^>]*?stroke-dasharray="([^"]*)"/g),
    ];
    expect(new Set(looks.map(([, color, dash]) => `${color} ${dash}`)).size).toBe(20);
    for (const { label } of curves) expect(svg).toContain(`>${label}<`);
  });

  it("keeps names of levels and marks apart that are close", async () => {
    const svg = await draw({
      ...plot,
      levels: ["one", "two", "three"].map((label, i) => ({ label, value: 50 + i })),
      marks: ["early", "late"].map((label, i) => ({ label, x: 3 + i / 10 })),
    });
    const height = (label: string) =>
      Number(new RegExp(`translate\\([^,]*,([-\\d.]+)\\)[^>]*>${label}<`).exec(svg)?.[1]);
    for (const [upper, lower] of [
      ["two", "one"],
      ["three", "two"],
      ["early", "late"],
    ] as const)
      expect(height(lower) - height(upper), lower).toBeGreaterThan(11);
  });

  it("takes a curve that lies outside of its axes", async () => {
    const svg = await alone({ label: "", x: [0, 1], y: [1e6, 2e6] }, { y_range: [0, 1], x_range: [0, 1] });
    expect(svg).not.toMatch(/NaN|Infinity/);
  });

  it("may be empty", async () => {
    for (const svg of [await drawFigure("nothing", []), await draw({ ...plot, curves: [], levels: [], marks: [] })]) {
      expect(svg).not.toMatch(/NaN|Infinity/);
    }
  });
});
