/** Choices of the user of `weir top`, and how keys change them. */
import { kPairColumns, kPortColumns } from "./columns.js";

export type Section = "pairs" | "ports";

/** A key as node:readline tells of it. */
export interface Key {
  name?: string | undefined;
  sequence?: string | undefined;
  ctrl?: boolean | undefined;
}

/** Wish of the user beyond another picture. */
export type Wish = "quit" | "suspend" | undefined;

const kKeys: Readonly<Record<Section, readonly string[]>> = {
  pairs: kPairColumns.map(({ key }) => key),
  ports: kPortColumns.map(({ key }) => key),
};
const kShown = { "1": "both", "2": "pairs", "3": "ports" } as const;
const kIntervals = [0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60];

export class Choices {
  active: Section = "pairs";
  shown: Section | "both" = "both";
  readonly sort: Record<Section, { key: string; reverse: boolean }>;
  filter: string;
  typing = false;
  paused = false;
  help = false;
  private readonly offsets: Record<Section, number> = { pairs: 0, ports: 0 };
  /** Rows that there was room for. */
  private readonly rooms: Record<Section, number> = { pairs: 1, ports: 1 };

  /** @param sort Orders both tables where both have it. */
  constructor(
    { sort = "name", filter = "" },
    public interval: number,
  ) {
    const of = (section: Section) => ({ key: kKeys[section].includes(sort) ? sort : "name", reverse: false });
    this.sort = { pairs: of("pairs"), ports: of("ports") };
    this.filter = filter;
  }

  /** Returns the first row to show of `rows`, where `room` fit. */
  scroll(section: Section, rows: number, room: number): number {
    this.rooms[section] = room;
    this.offsets[section] = Math.max(0, Math.min(this.offsets[section], rows - room));
    return this.offsets[section];
  }

  take({ name = "", sequence = "", ctrl = false }: Key): Wish {
    if (ctrl && name === "c") return "quit";
    if (ctrl && name === "z") return "suspend";
    if (this.typing) {
      this.#type(name, sequence, ctrl);
      return undefined;
    }
    if (name === "q") return "quit";
    this.#act(name, sequence);
    return undefined;
  }

  #type(name: string, sequence: string, ctrl: boolean): void {
    if (name === "return" || name === "enter") this.typing = false;
    else if (name === "escape") {
      this.typing = false;
      this.filter = "";
    } else if (name === "backspace") this.filter = this.filter.slice(0, -1);
    else if (!ctrl && /^[\x20-\x7e]$/.test(sequence)) this.filter += sequence;
  }

  #act(name: string, sequence: string): void {
    const { active } = this;
    const shown = kShown[sequence as keyof typeof kShown];
    if (shown !== undefined) {
      this.shown = shown;
      if (shown !== "both") this.active = shown;
    } else if (name === "tab") {
      this.active = active === "pairs" ? "ports" : "pairs";
      if (this.shown !== "both") this.shown = this.active;
    } else if (name === "s") this.#sortBy(sequence === "S" ? -1 : 1);
    else if (name === "r") this.sort[active].reverse = !this.sort[active].reverse;
    else if (name === "space") this.paused = !this.paused;
    else if (sequence === "/") this.typing = true;
    else if (name === "escape") this.filter = "";
    else if (name === "h" || sequence === "?") this.help = !this.help;
    else if (sequence === "+" || sequence === "-") this.#changeInterval(sequence === "+");
    else this.#move(name);
  }

  #sortBy(step: number): void {
    const keys = kKeys[this.active];
    const at = keys.indexOf(this.sort[this.active].key);
    this.sort[this.active].key = keys[(at + step + keys.length) % keys.length] ?? "name";
  }

  #changeInterval(longer: boolean): void {
    const next = longer
      ? kIntervals.find((seconds) => seconds > this.interval)
      : kIntervals.findLast((seconds) => seconds < this.interval);
    this.interval = next ?? this.interval;
  }

  /** Ends are not checked here: scroll() sees to them. */
  #move(name: string): void {
    const page = Math.max(1, this.rooms[this.active] - 1);
    const steps: Readonly<Record<string, number>> = {
      up: -1,
      down: 1,
      pageup: -page,
      pagedown: page,
      home: Number.NEGATIVE_INFINITY,
      end: Number.MAX_SAFE_INTEGER,
    };
    this.offsets[this.active] = Math.max(0, this.offsets[this.active] + (steps[name] ?? 0));
  }
}
