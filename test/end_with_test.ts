/** Ends processes with their test. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { onTestFinished } from "vitest";

/** Once the running test has finished, it is sent the signal and waited for: what it writes to is removed after that. */
export function endWithTest(child: ChildProcess, signal: NodeJS.Signals = "SIGKILL"): void {
  onTestFinished(async () => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  });
}
