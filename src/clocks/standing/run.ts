/** Runs a lab that stays in the foreground, from its scenario to its exit status. */
import type { EventEmitter } from "node:events";
import { rmSync, writeSync } from "node:fs";
import { createLog } from "../../daemon/log.js";
import { raiseOwnSession } from "../../host/session.js";
import type { Scenario } from "../../scenario/types.js";
import { labNetwork } from "../lab/compose.js";
import { labFolder } from "./place.js";
import { StandingLab } from "./standing_lab.js";

export interface StandingRun {
  name: string;
  file: string;
  version: string;
  directory: string;
  stderr: { isTTY?: boolean | undefined };
  /** Emits SIGTERM, SIGINT and SIGHUP. */
  signals: EventEmitter;
}

const kSignals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;
const kStderr = 2;

/** Returns 0 after a signal or `weir lab down`, 1 when the lab cannot go on. @throws WeirError when it cannot start. */
export async function runStanding(scenario: Scenario, run: StandingRun): Promise<number> {
  const { name, file, version, directory, signals } = run;
  const log = createLog(name, { isTTY: run.stderr.isTTY, write: tell });
  const ended = new Ended();
  const stop = (by: string) => {
    log.info({ by }, "told to end");
    ended.by(0);
  };
  for (const signal of kSignals) signals.on(signal, stop);
  raiseOwnSession();
  // Each host has sockets to remove at the end, so there are more listeners than Node.js expects.
  process.setMaxListeners(0);
  try {
    const events = {
      began: (program: object) => log.info(program, "program began"),
      ended: (program: object) => log.info(program, "program ended"),
      down: () => stop("weir lab down"),
      failed: (reason: string) => {
        log.fatal({ reason }, "the lab cannot go on");
        ended.by(1);
      },
      warn: (message: string, fields: object = {}) => log.warn(fields, message),
    };
    const lab = await StandingLab.open(scenario, { name, file, version, directory, events });
    try {
      const { nodes, links } = labNetwork(scenario);
      log.info({ nodes: nodes.length, links: links.length, scale: lab.scale }, "up");
      const status = await ended.once();
      // A second signal means that there is no time for the programs.
      if (status === 0) await Promise.race([lab.end(), ended.again()]);
      return status;
    } finally {
      lab.close();
      rmSync(labFolder(directory, name), { recursive: true, force: true });
    }
  } finally {
    for (const signal of kSignals) signals.off(signal, stop);
    log.info("down");
  }
}

/** Writes at once; a full disk costs only the text. */
function tell(text: string): void {
  try {
    writeSync(kStderr, text);
  } catch {
    // There is nobody to tell.
  }
}

/** End of a lab: the first request decides, a second one says that it is urgent. */
class Ended {
  private first: (status: number) => void = () => {};
  private second: () => void = () => {};
  private told = false;
  private readonly status = new Promise<number>((resolve) => {
    this.first = resolve;
  });
  private readonly hurry = new Promise<void>((resolve) => {
    this.second = resolve;
  });

  by(status: number): void {
    if (this.told) this.second();
    this.told = true;
    this.first(status);
  }

  once(): Promise<number> {
    return this.status;
  }

  again(): Promise<void> {
    return this.hurry;
  }
}
