import { signal } from "@preact/signals";

/** True while the keys are shown. */
export const helpOpen = signal(false);
