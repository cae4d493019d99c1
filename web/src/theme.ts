/** Dark or light: the system's theme, until the reader chooses; the choice is remembered. */
import { computed, signal } from "@preact/signals";

export type Theme = "light" | "dark";

const kKey = "weir-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const system = signal<Theme>(dark.matches ? "dark" : "light");
const chosen = signal<Theme | null>(remembered());

/** True while the page is put on paper, which is white. */
export const printing = signal(false);

/** Theme that overrides the system's. */
const forced = computed<Theme | null>(() => (printing.value ? "light" : chosen.value));

export const theme = computed<Theme>(() => forced.value ?? system.value);

/** On paper a canvas has three dots for one of the page, whatever the screen has. */
const kPaperDots = 3;

/** CSS pixels of a canvas for one of the page. */
export const unit = (): number => (printing.value ? kPaperDots / devicePixelRatio : 1);
/** Dots of a canvas for one pixel of the page. */
export const dots = (): number => (printing.value ? kPaperDots : devicePixelRatio);

dark.addEventListener("change", () => {
  system.value = dark.matches ? "dark" : "light";
});
forced.subscribe((value) => {
  if (value === null) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
});

export function toggleTheme(): void {
  chosen.value = theme.value === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(kKey, chosen.value);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

function remembered(): Theme | null {
  try {
    const value = localStorage.getItem(kKey);
    return value === "dark" || value === "light" ? value : null;
  } catch {
    return null;
  }
}

const probe = document.createElement("i");
probe.hidden = true;
document.documentElement.append(probe);
const inks = new Map<string, string>();

/** A colour of the style sheet ("c0", "soft") as a canvas takes it. */
export function ink(name: string): string {
  const key = `${theme.value} ${name}`;
  let found = inks.get(key);
  if (found === undefined) {
    // The style sheet may not have changed yet when this is called after a change of the theme, so the probe has it by itself.
    probe.style.colorScheme = theme.value;
    probe.style.color = `var(--${name})`;
    found = getComputedStyle(probe).color;
    inks.set(key, found);
  }
  return found;
}

/** An ink through which some of the ground shines. */
export function faded(name: string, share: number): string {
  return ink(name).replace(/^rgb\((.*)\)$/, (_, channels: string) => `rgba(${channels}, ${share})`);
}
