/** Source of a dashboard, which says what it shows and can do: a lab, or a daemon. */
import type { Inspection, RunRequest, Session } from "./protocol.js";

export interface DashboardSource {
  session(): Session;
  /** Applies assignments `path=value`: all of them or none. @throws WeirError for a value that cannot be had. */
  change(set: readonly string[]): void;
  /** Starts or stops a run; labs only. @throws WeirError where there is nothing to start or stop. */
  run?(action: RunRequest["action"]): void;
  /** The result document of a run that has ended, as JSON; undefined: there is none. Labs only. */
  result?(id: number): Promise<string | undefined>;
  /** Returns undefined when there is no such thing, or not now. */
  inspect(what: InspectRequest): Inspection | undefined;
}

export type InspectRequest = { port: string } | { qp: string };
