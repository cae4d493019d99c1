/** Checks that a switch's memory holds all lossless frames, and that ECN comes before PFC. */
import type { Findings, Where } from "../../base/findings.js";
import { formatSize } from "../../base/units.js";
import { kEthernetHeader, kVlanTag } from "../../wire/headers.js";
import { ecnThresholdBound, pfcThreshold, reservedBytes, staticThresholdBound } from "../thresholds.js";
import type { BufferConfig } from "./buffer.js";
import type { EcnConfig } from "./ecn.js";
import type { CheckedPort } from "./feature.js";
import type { PfcConfig } from "./pfc.js";

export interface Needs {
  name: string;
  buffer: BufferConfig;
  ecn: EcnConfig;
  pfc: PfcConfig;
}

export function checkBuffer(s: Needs, ports: readonly CheckedPort[], at: Where, found: Findings): void {
  const { buffer, pfc } = s;
  if (!pfc.enabled || pfc.priorities.length === 0) return;
  if (buffer.headroom === 0 && !buffer.automatic) {
    const message = `there is none, but priorities ${pfc.priorities.join(", ")} are lossless`;
    const off = pfc.by === "pause" ? "pfc.link_pause: false" : "switch PFC off: pfc.enabled: false";
    found.problem(at("buffer", "headroom"), message, `give headroom, or ${off}`);
  }
  if (new Set(pfc.priorities).size > buffer.priorities) {
    const message = `headroom for ${buffer.priorities}, but priorities ${pfc.priorities.join(", ")} are lossless`;
    found.problem(at("buffer", "priorities"), message, `must be at least ${new Set(pfc.priorities).size}`);
  }
  const n = ports.length;
  const reserved = reservedBytes(buffer, n);
  if (buffer.total <= reserved) {
    const message =
      `${formatSize(buffer.total)} is too small for the headroom of switch ${s.name}: ` +
      (buffer.besides === 0
        ? `${buffer.priorities} priorities x ${n} ports x ${formatSize(buffer.headroom)} = ${formatSize(reserved)}`
        : `${buffer.priorities} priorities of ${n} ports, by their ${buffer.automatic ? "links" : "profiles"}, ${formatSize(reserved)}`);
    found.problem(
      at("buffer", "total"),
      message,
      `must be greater than ${formatSize(reserved)}, or reserve for fewer priorities`,
    );
    return;
  }
  checkThresholds(s, n, at, found);
  checkLongestFrame(s, ports, at, found);
}

/** Finds frames that fit neither under t_PFC of an empty buffer nor in the headroom: they are dropped, whatever their senders do. */
function checkLongestFrame({ buffer }: Needs, ports: readonly CheckedPort[], at: Where, found: Findings): void {
  const longest = Math.max(...ports.map(({ mtu }) => mtu)) + kEthernetHeader + kVlanTag;
  const threshold = pfcThreshold(buffer, ports.length, 0);
  if (buffer.headroom >= longest || threshold >= longest) return;
  const message =
    `${formatSize(buffer.headroom)}, and a threshold of ${formatSize(threshold)}: a lossless frame of ` +
    `${longest} bytes, which the ports' MTU allows, would never come in`;
  found.problem(at("buffer", "headroom"), message, `must be at least ${longest} bytes, or the threshold that large`);
}

/** Checks section 4 of the paper: t_PFC within the buffer, and ECN before PFC. */
function checkThresholds(s: Needs, n: number, at: Where, found: Findings): void {
  const { buffer, ecn, pfc } = s;
  const fixed = buffer.mode === "static";
  if (fixed && buffer.xon_offset >= buffer.threshold) {
    const message = `${formatSize(buffer.xon_offset)} is not less than the threshold ${formatSize(buffer.threshold)}`;
    found.problem(at("buffer", "xon_offset"), message, "a paused queue is resumed at threshold - xon_offset");
  }
  const bound = staticThresholdBound(buffer, n);
  if (fixed && buffer.threshold > bound) {
    found.warn(
      `switch ${s.name}: static threshold ${formatSize(buffer.threshold)} is more than (B - P n t_flight) / (P n) = ` +
        `${formatSize(bound)}: the buffer can overflow before PFC acts`,
    );
  }
  if (!ecn.enabled || !ecn.priorities.some((priority) => pfc.priorities.includes(priority))) return;
  const { limit, rule } = markingLimit(s, n);
  if (ecn.kmin < limit) return;
  found.warn(
    `switch ${s.name}: kmin ${formatSize(ecn.kmin)} is not below ${rule} = ${formatSize(Math.floor(limit))}: ` +
      "PFC may act before ECN marks anything",
  );
}

/** Queue length below which PFC cannot act yet at a switch of `n` ports, bytes, and the rule for it (paper section 4). */
export function markingLimit({ buffer }: Pick<Needs, "buffer">, n: number): { limit: number; rule: string } {
  const rule = buffer.mode === "static" ? "t_PFC / n" : "beta (B - P n t_flight) / (P n (beta + 1))";
  return { limit: ecnThresholdBound(buffer, n), rule };
}
