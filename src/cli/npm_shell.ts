/**
 * `npx weir ...` is npm, which runs a shell, which runs this. npm hands SIGTERM on to the shell, and the shell ends by it without a word
 * to us: a daemon, or a lab, would go on with nobody left who knows of it. So the end of that shell is taken for the SIGTERM.
 */
import { readFileSync } from "node:fs";

const kLookMs = 500;

/** Begins to watch the shell, if npm has started this process. */
export function heedNpmShell(environment: Readonly<Record<string, string | undefined>> = process.env): void {
  const { npm_lifecycle_event: event, npm_lifecycle_script: script } = environment;
  const shell = process.ppid;
  if (event !== "npx" || script === undefined || !runs(shell, script)) return;
  const timer = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(timer);
    process.kill(process.pid, "SIGTERM");
  }, kLookMs).unref();
}

/** Tells whether a process is a shell with this script: programs that npm starts may start others, which inherit the environment. */
function runs(shell: number, script: string): boolean {
  try {
    const [, option, command] = readFileSync(`/proc/${shell}/cmdline`, "utf8").split("\0");
    return option === "-c" && command?.startsWith(script) === true;
  } catch {
    return false;
  }
}
