/** A short piece of a curve, as legends and tips show it. */
import type { Look } from "./palette.js";

const kSvg = "http://www.w3.org/2000/svg";

export function lineSample({ color, dash }: Look): SVGElement {
  const svg = document.createElementNS(kSvg, "svg");
  const line = document.createElementNS(kSvg, "path");
  svg.setAttribute("class", "sample");
  svg.setAttribute("viewBox", "0 0 24 8");
  svg.setAttribute("aria-hidden", "true");
  line.setAttribute("d", "M0 4H24");
  line.setAttribute("class", `ink-${color}`);
  line.setAttribute("stroke-dasharray", dash.join(" "));
  svg.append(line);
  return svg;
}
