/** A short piece of a curve, as legends and tips show it. */
import type { Look } from "./palette.js";

export function Sample({ color, dash }: Look) {
  return (
    <svg class="sample" viewBox="0 0 24 8" aria-hidden="true">
      <path d="M0 4H24" class={`ink-${color}`} stroke-dasharray={dash.join(" ")} />
    </svg>
  );
}
