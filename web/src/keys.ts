/** Keys of the page. Fields keep all of their own keys, and buttons and links those that press them. */
import { helpOpen } from "./panels/help_open.js";
import { inspected } from "./panels/inspected.js";
import { pause, paused } from "./store.js";
import { toggleTheme } from "./theme.js";
import { follow, picked, setZoom, zoomBy } from "./view.js";

interface Key {
  keys: readonly string[];
  shown: string;
  does: string;
  run?: () => void;
}

export const kKeys: readonly Key[] = [
  {
    keys: [" "],
    shown: "Space",
    does: "pause the view, or go on; data is received all the time",
    run: () => pause(!paused.value),
  },
  { keys: ["f"], shown: "f", does: "follow: newest data, no zoom", run: follow },
  { keys: ["0", "r"], shown: "0, r", does: "reset the zoom", run: () => setZoom(null) },
  { keys: ["+", "="], shown: "+", does: "zoom in", run: () => zoomBy(0.5) },
  { keys: ["-"], shown: "-", does: "zoom out", run: () => zoomBy(2) },
  { keys: [], shown: "Left, Right", does: "in a chart: move the cursor through the samples" },
  { keys: ["/"], shown: "/", does: "search flows", run: () => document.getElementById("flow-search")?.focus() },
  { keys: ["a"], shown: "a", does: "draw the usual flows again", run: () => (picked.value = null) },
  { keys: ["t"], shown: "t", does: "dark or light", run: toggleTheme },
  { keys: ["?"], shown: "?", does: "these keys", run: () => (helpOpen.value = true) },
  { keys: ["Escape"], shown: "Esc", does: "close what is open", run: () => (inspected.value = null) },
];

export function listenToKeys(): void {
  document.addEventListener("keydown", (event) => {
    const { target, key } = event;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || helpOpen.value) return;
    const element = target as HTMLElement;
    if (element.matches("input:not([type=checkbox]), select, textarea")) return;
    if (key === " " && element.matches("button, summary, a, input")) return;
    const found = kKeys.find(({ keys }) => keys.includes(key));
    if (!found?.run) return;
    event.preventDefault();
    found.run();
  });
}
