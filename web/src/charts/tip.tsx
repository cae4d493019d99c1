/** A tip with the values at the cursor. */
import { render } from "preact";
import type uPlot from "uplot";
import type { Gathered } from "../data/gather.js";
import { placeText, short } from "./number_text.js";
import type { Panel } from "./panel.js";
import { Sample } from "./sample.js";

const kRows = 10;

export class Tip {
  private readonly box = document.createElement("div");

  constructor(
    private readonly host: HTMLElement,
    private readonly panel: Panel,
  ) {
    this.box.className = "tip";
    this.box.hidden = true;
    this.box.setAttribute("role", "status");
    host.append(this.box);
  }

  /** @param values Values of the panel's lines as they came. */
  show(u: uPlot, values: Gathered["ys"], wanted: boolean): void {
    const { idx, left = -1, top = 0 } = u.cursor;
    const time = idx === null || idx === undefined ? undefined : u.data[0][idx];
    if (!wanted || time === undefined || left < 0) {
      this.box.hidden = true;
      return;
    }
    const rows = this.panel.lines
      .map((line, i) => ({ line, value: values[i]?.[idx as number] }))
      .filter((row): row is { line: Panel["lines"][number]; value: number } => typeof row.value === "number");
    if (!this.panel.lanes) rows.sort((a, b) => b.value - a.value);
    render(
      <>
        <strong>{placeText(this.panel, time, u.scales.x?.max ?? 0)}</strong>
        {rows.slice(0, kRows).map(({ line, value }) => (
          <div key={line.label}>
            <Sample color={line.color} dash={line.dash} /> {line.label}{" "}
            <b>{`${short(value)} ${this.panel.unit}`.trim()}</b>
          </div>
        ))}
        {rows.length > kRows && `and ${rows.length - kRows} more`}
      </>,
      this.box,
    );
    this.box.hidden = false;
    const edge = u.over.offsetLeft + left;
    const wide = this.box.offsetWidth;
    this.box.style.left = `${edge + wide + 24 > this.host.clientWidth ? edge - wide - 12 : edge + 14}px`;
    this.box.style.top = `${Math.max(0, Math.min(top, this.host.clientHeight - this.box.offsetHeight))}px`;
  }

  remove(): void {
    render(null, this.box);
    this.box.remove();
  }
}
