// Relations between the fields of one device, the same in scenarios and daemons.
import type { Findings, Where } from "../base/findings.js";
import { formatSize, formatTime } from "../base/units.js";
import { kEthernetHeader, kIpv4Header, kIpv6Header, kVlanTag } from "../wire/headers.js";
import { kFrameOverhead } from "./headroom.js";
import { checkProfiled, settingsOf } from "./port_profiles.js";
import { ecnThresholdBound, pfcThreshold, reservedBytes, staticThresholdBound } from "./thresholds.js";
import type { HostConfig, SwitchConfig } from "./types.js";

/** IPv4 20, UDP 8, BTH 12, RETH 16, immediate 4, ICRC 4: the most that goes around a payload inside an IP packet. */
const kRoceOverhead = 64;
/** How much longer an IPv6 header is than one of IPv4. */
export const kIpv6More = kIpv6Header - kIpv4Header;

interface Port {
  /** Whom it leads to. */
  name: string;
  /** bit/s; 0: not shaped. */
  rate: number;
  /** Propagation of its link, ns. */
  delay: number;
  mtu: number;
}

/** Buffer, ECN and PFC of a switch. `at` tells where a field of it was written. */
export function checkSwitch(s: SwitchConfig, ports: readonly Port[], at: Where, found: Findings): void {
  const { buffer, ecn, pfc } = s;
  checkProfiled(s.profiled, buffer.mode === "static", at, found);
  if (ecn.kmin > ecn.kmax) {
    const message = `${formatSize(ecn.kmin)} is greater than kmax ${formatSize(ecn.kmax)}`;
    found.problem(at("ecn", "kmin"), message, "kmin must be between 0 and kmax");
  }
  checkKmax(s, ports, found);
  checkFlowControl(s, at, found);
  checkTrimming(s, at, found);
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

/** Figures that elsewhere are KB, without a unit: from so short a queue on every packet would be marked. */
function checkKmax(s: SwitchConfig, ports: readonly Port[], found: Findings): void {
  if (!s.ecn.enabled || s.ecn.priorities.length === 0) return;
  for (const { name, mtu } of ports) {
    const { kmax } = settingsOf(s, name).ecn;
    if (kmax === 0 || kmax >= 2 * (mtu + kFrameOverhead)) continue;
    found.warn(
      `switch ${s.name}: kmax ${formatSize(kmax)} is less than two packets of MTU ${mtu}, on the port to ${name}: hardly a queue goes ` +
        `unmarked (a size without a unit is in bytes: for KB write ${kmax}KB)`,
    );
    return;
  }
}

/** A port has PFC, or PAUSE, or neither (IEEE 802.1Q clause 36: a link has one of the two). */
export function checkFlowControl({ pfc }: Pick<SwitchConfig, "pfc">, at: Where, found: Findings): void {
  if (!pfc.link_pause || pfc.by === "pause") return;
  const hint = "a link has one of the two: give pfc.enabled: false as well, or take link_pause out";
  found.problem(at("pfc", "link_pause"), "PAUSE frames instead of PFC, but PFC is on", hint);
}

function checkTrimming({ name, pfc, trimming, trust, dscp_map }: SwitchConfig, at: Where, found: Findings): void {
  if (!trimming.enabled) return;
  const { priorities, dscp, queue } = trimming;
  const lossless = pfc.enabled ? pfc.priorities : [];
  const never = priorities.filter((priority) => lossless.includes(priority));
  if (priorities.length === 0) {
    found.problem(at("trimming", "priorities"), "there is none, so nothing is trimmed", "name lossy priorities");
  }
  if (never.length > 0) {
    const message = `${never.join(", ")} is lossless: its frames wait, and are not trimmed`;
    found.problem(at("trimming", "priorities"), message, "name lossy priorities, or take it out of pfc.priorities");
  }
  if (lossless.includes(queue) || priorities.includes(queue)) {
    const why = lossless.includes(queue) ? "is lossless" : "is one of those that are trimmed";
    found.problem(
      at("trimming", "queue"),
      `priority ${queue}, by which trimmed frames go on, ${why}`,
      "give a lossy priority of its own, or a dscp that dscp_map gives one",
    );
  } else if (trust !== "dscp") {
    found.warn(`switch ${name}: trusts ${trust}, so it takes frames that another switch has trimmed for others`);
  } else if (dscp_map[dscp] !== queue) {
    found.warn(
      `switch ${name}: dscp_map gives DSCP ${dscp} of trimmed frames priority ${dscp_map[dscp]}, not trimming.queue ` +
        `${queue}: behind the switch that trimmed them they are in another queue`,
    );
  }
}

/** A frame that fits neither under t_PFC of an empty buffer nor in the headroom is dropped, whatever its sender does. */
function checkLongestFrame({ buffer }: SwitchConfig, ports: readonly Port[], at: Where, found: Findings): void {
  const longest = Math.max(...ports.map(({ mtu }) => mtu)) + kEthernetHeader + kVlanTag;
  const threshold = pfcThreshold(buffer, ports.length, 0);
  if (buffer.headroom >= longest || threshold >= longest) return;
  const message =
    `${formatSize(buffer.headroom)}, and a threshold of ${formatSize(threshold)}: a lossless frame of ` +
    `${longest} bytes, which the ports' MTU allows, would never come in`;
  found.problem(at("buffer", "headroom"), message, `must be at least ${longest} bytes, or the threshold that large`);
}

/** Section 4 of the paper: t_PFC within the buffer, and ECN before PFC. */
function checkThresholds(s: SwitchConfig, n: number, at: Where, found: Findings): void {
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

/** Queue length below which PFC cannot act yet at a switch of `n` ports, bytes, and how it is found (paper section 4). */
export function markingLimit({ buffer }: SwitchConfig, n: number): { limit: number; rule: string } {
  const rule = buffer.mode === "static" ? "t_PFC / n" : "beta (B - P n t_flight) / (P n (beta + 1))";
  return { limit: ecnThresholdBound(buffer, n), rule };
}

/** Warns of ECN, QCN and PFC at ports where they cannot act. */
export function checkUnshaped(s: SwitchConfig, ports: readonly Port[], found: Findings): void {
  const ecn = s.ecn.enabled && s.ecn.priorities.length > 0;
  const asked = [
    ecn ? "ECN" : "",
    s.qcn.enabled ? "QCN" : "",
    s.pfc.enabled ? (s.pfc.by === "pause" ? "802.3x" : "PFC") : "",
  ].filter(Boolean);
  const unshaped = ports.filter((port) => port.rate === 0).map((port) => port.name);
  if (asked.length === 0 || unshaped.length === 0) return;
  found.warn(
    `switch ${s.name}: the port to ${unshaped.join(", ")} has no rate, so hardly a queue forms there: ` +
      `${asked.join(", ").replace(/, (?=[^,]*$)/, " and ")} will not act`,
  );
}

export function checkPauseStorm(host: HostConfig, at: Where, found: Findings): void {
  const { start, stop } = host.pause_storm;
  if (stop !== undefined && stop <= start) {
    const message = `${formatTime(stop)} is not after start, ${formatTime(start)}`;
    found.problem(at("pause_storm", "stop"), message, "stop must be later than start");
  }
}

export function checkReceiveBuffer(host: HostConfig, at: Where, found: Findings): void {
  const { size, xoff, xon } = host.receive_buffer;
  if (xoff > size) {
    const message = `${formatSize(xoff)} is more than the size ${formatSize(size)}`;
    found.problem(
      at("receive_buffer", "xoff"),
      message,
      "xoff must be less than size, with room for what is under way",
    );
  }
  if (xon > xoff) {
    const message = `${formatSize(xon)} is more than xoff ${formatSize(xoff)}`;
    found.problem(at("receive_buffer", "xon"), message, "xon must be between 0 and xoff");
  }
}

/**
 * Undefined if packets of `pathMtu` fit; else the MTU they need, and the largest path MTU that would fit.
 * @param more Bytes within the MTU that not all packets have: of IPv6, a CN-TAG, telemetry.
 */
export function fittingPathMtu(
  pathMtu: number,
  mtu: number,
  more: number,
): { needed: number; fits: number } | undefined {
  const overhead = kRoceOverhead + more;
  const needed = pathMtu + overhead;
  if (mtu >= needed) return undefined;
  return { needed, fits: [4096, 2048, 1024, 512].find((candidate) => candidate + overhead <= mtu) ?? 256 };
}
