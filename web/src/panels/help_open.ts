import { signal } from "@preact/signals";

/** Whether the keys are shown. */
export const helpOpen = signal(false);
