/** What a dashboard shows and can do: a lab, or a daemon. */
import type { Inspection, RunRequest, Session } from "./protocol.js";

export interface DashboardSource {
  session(): Session;
  /** Each `path=value`: all of them or none. @throws WeirError for a value that cannot be had. */
  change(set: readonly string[]): void;
  /** Of labs. @throws WeirError where there is nothing to start or stop. */
  run?(action: RunRequest["action"]): void;
  /** The result document of a run that has ended, as JSON; undefined: there is none. Of labs. */
  result?(id: number): Promise<string | undefined>;
  /** Undefined: there is no such thing, or not now. */
  inspect(what: InspectRequest): Inspection | undefined;
}

export type InspectRequest = { port: string } | { qp: string };
