/** Several that work off the same queue at once. */

/**
 * Runs `workOff` so many times side by side. The first that fails aborts the signal that all have; its error is thrown unless
 * `signal` itself was aborted. When it returns all of them have ended.
 */
export async function inSlots(
  count: number,
  signal: AbortSignal,
  workOff: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const abort = new AbortController();
  const either = AbortSignal.any([signal, abort.signal]);
  const slots = Array.from({ length: count }, () =>
    workOff(either).catch((error: unknown) => {
      // What fails after the first may fail because of this; the first reason stays.
      abort.abort(error);
    }),
  );
  await Promise.all(slots);
  if (abort.signal.aborted && !signal.aborted) throw abort.signal.reason;
}
