/** A daemon keeps those of the rights it was started with that its ports need when they come back. */

import type { BackendChoice } from "../host/backend.js";
import { type Capability, kCapabilities } from "../native/capabilities.js";
import type { NativeAddon } from "../native/types.js";

/** Fields of a port that decide. */
export type PrivilegedPort = Pick<BackendChoice, "receive" | "transmit"> & { namespace: string | null };

/**
 * Opening an interface again always takes a packet socket; entering the namespace that it is in, if it has one; and for AF_XDP
 * memory that may be pinned, and a program to receive frames. Raising the priority of threads, locking memory, and listening are
 * over; the file is read again as its owner, or as everybody may.
 */
export function capabilitiesFor(ports: readonly PrivilegedPort[]): Capability[] {
  const some = (condition: (port: PrivilegedPort) => boolean, ...names: Capability[]) =>
    ports.some(condition) ? names : [];
  return [
    "CAP_NET_RAW",
    ...some(({ namespace }) => namespace !== null, "CAP_SYS_ADMIN"),
    ...some(({ namespace }) => namespace?.startsWith("/proc/") === true, "CAP_SYS_PTRACE"),
    ...some(({ receive, transmit }) => [receive, transmit].some((by) => by !== "af_packet"), "CAP_IPC_LOCK"),
    ...some(({ receive }) => receive === "af_xdp", "CAP_NET_ADMIN"),
    ...some(({ receive, transmit }) => receive === "af_xdp" || transmit === "live", "CAP_BPF"),
  ];
}

/** Gives up all others in all threads of this process, for good. @throws Error if that fails. */
export function keepCapabilities(addon: Pick<NativeAddon, "limitCapabilities">, names: readonly Capability[]): void {
  addon.limitCapabilities(names.map((name) => kCapabilities[name]));
}
