/** Numbers of the capabilities that anything here needs, of linux/capability.h. */
export const kCapabilities = {
  /** Links of labs, attaching XDP programs, large socket buffers. */
  CAP_NET_ADMIN: 12,
  /** Packet and AF_XDP sockets. */
  CAP_NET_RAW: 13,
  /** Locking packet memory, and handing it to AF_XDP. */
  CAP_IPC_LOCK: 14,
  /** Namespaces of other processes by their paths in /proc. */
  CAP_SYS_PTRACE: 19,
  /** Entering namespaces. */
  CAP_SYS_ADMIN: 21,
  /** Priority of poll threads. */
  CAP_SYS_NICE: 23,
  /** Loading XDP programs. */
  CAP_BPF: 39,
} as const;

export type Capability = keyof typeof kCapabilities;

/** Tells by /proc/self/status, given as text, whether its process has the capability in `set`: CapEff, CapPrm, CapBnd. */
export function hasCapability(status: string, name: Capability, set = "CapEff"): boolean {
  const bits = BigInt(`0x${new RegExp(`^${set}:\\s*([0-9a-f]+)$`, "m").exec(status)?.[1] ?? "0"}`);
  return ((bits >> BigInt(kCapabilities[name])) & 1n) === 1n;
}
