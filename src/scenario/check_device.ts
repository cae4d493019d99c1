// Relations between the fields of one device, the same in scenarios and daemons.
import type { Findings, Where } from "../base/findings.js";
import { kIpv4Header, kIpv6Header } from "../wire/headers.js";
import type { CheckedPort, HostFeature, SwitchFeature } from "./features/feature.js";
import { kHostFeatures, kSwitchFeatures } from "./features/list.js";
import { checkProfiled } from "./port_profiles.js";
import type { HostConfig, SwitchConfig } from "./types.js";

/** IPv4 20, UDP 8, BTH 12, RETH 16, immediate 4, ICRC 4: the most that goes around a payload inside an IP packet. */
const kRoceOverhead = 64;
/** Bytes by which an IPv6 header is longer than one of IPv4. */
export const kIpv6More = kIpv6Header - kIpv4Header;

/** Finds settings of a switch that do not go together. `at` returns the place where a field of it was written. */
export function checkSwitch(s: SwitchConfig, ports: readonly CheckedPort[], at: Where, found: Findings): void {
  checkProfiled(s.profiled, s.buffer.mode === "static", at, found);
  for (const { check } of kSwitchFeatures as readonly SwitchFeature<SwitchConfig>[]) check?.(s, ports, at, found);
}

/** Checks a NIC in the same way. */
export function checkHostFeatures(host: HostConfig, at: Where, found: Findings): void {
  for (const { check } of kHostFeatures as readonly HostFeature<HostConfig>[]) check?.(host, at, found);
}

/** Warns of ECN, QCN and PFC at ports where they cannot act. */
export function checkUnshaped(s: SwitchConfig, ports: readonly CheckedPort[], found: Findings): void {
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

/**
 * Returns undefined if packets of `pathMtu` fit; else the MTU they need, and the largest path MTU that would fit.
 * @param more Bytes within the MTU that not all packets have: those of IPv6, a CN-TAG, telemetry.
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
