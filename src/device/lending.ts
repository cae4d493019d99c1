/** When a NIC lends its programs paths of their own (`programs.direct`). */
import { hearsCnms } from "../congestion/flow_state.js";
import type { NicDaemonConfig } from "./file/types.js";

/** Says why all programs go by the daemon though the file has `direct: true`; undefined: they need not. */
export function hindranceToPaths({ congestion, port, faults }: NicDaemonConfig): string | undefined {
  if (hearsCnms(congestion.algorithm)) return `${congestion.algorithm} holds the queue pairs of all programs together`;
  if (faults.length > 0) return "`faults` reach no path of a program's own";
  if (port.backend.receive === "af_xdp") return "receive: af_xdp has no packet socket to lend";
  return undefined;
}
