/** Finds results that say nothing: runs in which no frame was sent, and figures of transfers or packets that there were none of. */
import type { FrameAccount } from "./device_results.js";

/** Returns why a run cannot be judged, however well it went; undefined: frames were sent in it. */
export function nothingSent({ sent, received }: Pick<FrameAccount, "sent" | "received">): string | undefined {
  return sent + received === 0 ? "nothing to judge: no frame was sent" : undefined;
}

/** Figures over complete transfers, which are 0 where there was none; and over packets of a flow that sent none. */
const kOfTransfers = new Set(["slowdown", "fct_us", "throughput_bps"]);
const kOfPackets = new Set(["lost", "trimmed", "ecn_marked"]);

/** Returns why a field says nothing; undefined: it does, or is not there. `path`: fields from the outside in, without `*`. */
export function nothingIn(result: object, path: readonly string[]): string | undefined {
  let at: unknown = result;
  for (const [i, name] of path.entries()) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    const fields = at as Record<string, unknown>;
    const place = path.slice(0, i).join(".");
    if (fields.count === 0 && kOfTransfers.has(name)) return `nothing to judge: no transfer of ${place} was complete`;
    if (fields.count === 0 && name === "incomplete" && fields.incomplete === 0)
      return `nothing to judge: no transfer of ${place} began`;
    // The sender's counts are not there where a flow's other end is in another part of a lab.
    if (path[0] === "flows" && fields.packets === 0 && fields.end === undefined && kOfPackets.has(name))
      return `nothing to judge: ${place} sent no packet`;
    at = fields[name];
  }
  return undefined;
}
