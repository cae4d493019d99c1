/** What comes at last: how long that takes is the machine's affair, and not what is tested. */
import { vi } from "vitest";
import { kPatienceMs } from "./limits.js";

/** Until `look` does not throw: what it returns. */
export function eventually<T>(look: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(look, { timeout: kPatienceMs, interval: 50 });
}
