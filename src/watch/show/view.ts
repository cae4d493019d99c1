/** A view of `weir show`: the requests it makes of a device, and how it draws the answers. */

import type { ControlRequests } from "../../device/protocol.js";
import type { Grid } from "../../result/report/table.js";

export type Request =
  | "status"
  | "counters"
  | "ports"
  | "switch"
  | "fdb"
  | "routes"
  | "neighbors"
  | "queue_pairs"
  | "reaction_points"
  | "programs"
  | "qos"
  | "lldp"
  | "dcbx";
/** The answers that a view has asked for. */
export type Answers<Names extends Request = Request> = { [Name in Names]: ControlRequests[Name] };

export interface View {
  /** Contents of the view, for help. */
  description: string;
  /** Kind of the devices that have it. */
  of: "switch" | "nic" | "any";
  requests: readonly Request[];
  /** Weir's own tables; a view has these or `text`. */
  grids?(answers: Answers): Grid[];
  /** Text of the tool whose shape this is, with its last line feed. `position`: among the devices shown. */
  text?(answers: Answers, position: number): string;
  /** Document of --json; the answers themselves if left out. */
  json?(answers: Answers, position: number): unknown;
  /** Whether its lines, or the items of its document, name their device: those of several devices then make one text, or one list. */
  joins?: boolean;
}

interface Definition<Names extends Request> {
  description: string;
  of: View["of"];
  requests: readonly Names[];
  json?(answers: Answers<Names>, position: number): unknown;
  joins?: boolean;
}

export function gridView<const Names extends Request>(
  definition: Definition<Names> & { grids(answers: Answers<Names>): Grid[] },
): View & { grids: NonNullable<View["grids"]> } {
  return definition;
}

export function textView<const Names extends Request>(
  definition: Definition<Names> & { text(answers: Answers<Names>, position: number): string },
): View & { text: NonNullable<View["text"]> } {
  return definition;
}
