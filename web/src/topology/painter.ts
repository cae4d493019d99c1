/** Writes the load of links and the fill of switches into the picture, without rendering it again. */
import type { Session } from "../../../src/watch/dashboard/protocol.js";
import type { Meter } from "./meter.js";

/** Widths of a link's lines, idle and full, px. */
const kThinnest = 1.5;
const kThickest = 8;
/** Part of the rate below which traffic has no text: CNPs and acknowledgements. */
const kWritten = 0.005;
/** Utilisation at which a line changes its class; the last is "full". */
const kSteps = [0.01, 0.5, 0.8, 0.95];

interface Side {
  line: Element | null;
  text: Element | null;
  pause: Badge;
}

/** A sign that is there only while its count is above 0. */
class Badge {
  private shown = -1;

  constructor(private readonly group: Element | null) {}

  set(count: number): void {
    if (count === this.shown) return;
    this.shown = count;
    this.group?.setAttribute("visibility", count > 0 ? "visible" : "hidden");
    const text = this.group?.querySelector("[data-count]");
    if (text) text.textContent = count < 10_000 ? String(count) : `${Math.round(count / 1000)}k`;
  }
}

export class Painter {
  private readonly links: { forward: Side; backward: Side; marks: Badge }[];
  private readonly switches: { bar: Element | null; text: Element | null }[];
  private fastest = 1e9;

  constructor(
    root: Element,
    private readonly topology: Session["topology"],
  ) {
    this.links = topology.links.map((_, i) => {
      const find = (what: string) => root.querySelector(`[data-link="${i}"] .${what}`);
      const side = (name: string): Side => ({
        line: find(`load.${name}`),
        text: find(`rate.${name}`),
        pause: new Badge(find(`pause.${name}`)),
      });
      return { forward: side("forward"), backward: side("backward"), marks: new Badge(find("mark")) };
    });
    this.switches = topology.nodes
      .filter(({ kind }) => kind === "switch")
      .map(({ name }) => {
        const group = root.querySelector(`[data-node="${CSS.escape(name)}"]`);
        return { bar: group?.querySelector(".fill") ?? null, text: group?.querySelector(".occupied") ?? null };
      });
  }

  paint(meter: Meter): void {
    this.topology.links.forEach(({ rate_bps }, i) => {
      const link = this.links[i];
      if (link === undefined) return;
      const load = meter.load(i);
      this.fastest = Math.max(this.fastest, load.forward_bps, load.backward_bps);
      const full = rate_bps > 0 ? rate_bps : this.fastest;
      // Pauses in one direction stop the data of the other.
      show(link.forward, load.forward_bps, full, load.backward_pauses > 0);
      show(link.backward, load.backward_bps, full, load.forward_pauses > 0);
      link.forward.pause.set(load.forward_pauses);
      link.backward.pause.set(load.backward_pauses);
      link.marks.set(load.marks);
    });
    this.switches.forEach(({ bar, text }, i) => {
      const { occupied = 0, xoff = 0 } = meter.last?.switches[i] ?? {};
      bar?.setAttribute("width", String(Math.round(100 * Math.min(1, xoff > 0 ? occupied / xoff : 0))));
      if (text) text.textContent = `${Number((occupied / 1000).toPrecision(3))} KB held`;
    });
  }
}

function show({ line, text }: Side, bps: number, full: number, paused: boolean): void {
  const used = Math.min(1, bps / full);
  const step = kSteps.filter((bound) => used >= bound).length;
  line?.setAttribute("stroke-width", (kThinnest + (kThickest - kThinnest) * used).toFixed(1));
  line?.setAttribute("data-step", String(step));
  line?.toggleAttribute("data-paused", paused);
  if (text) text.textContent = used >= kWritten ? rateText(bps) : "";
}

export function rateText(bps: number): string {
  if (bps >= 1e9) return `${(bps / 1e9).toPrecision(3)} Gb/s`;
  return bps >= 1e6 ? `${(bps / 1e6).toPrecision(3)} Mb/s` : `${Math.round(bps / 1e3)} kb/s`;
}
