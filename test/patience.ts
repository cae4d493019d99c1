/** Waits for things that come at last: how long that takes is the machine's affair, and not what is tested. */
import { vi } from "vitest";
import { kPatienceMs } from "./limits.js";

/** Waits until `look` does not throw, and returns what it does. */
export function eventually<T>(look: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(look, { timeout: kPatienceMs, interval: 50 });
}
