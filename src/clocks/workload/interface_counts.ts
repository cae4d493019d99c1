/** Counters of the kernel for an interface: frames and bytes of everybody who uses it. */
import { readFileSync } from "node:fs";

export interface InterfaceCounts {
  tx_packets: number;
  tx_bytes: number;
  rx_packets: number;
  rx_bytes: number;
}

export const kNothing: InterfaceCounts = { tx_packets: 0, tx_bytes: 0, rx_packets: 0, rx_bytes: 0 };

/** @param pid A process of the network namespace. Once that has ended, there is nothing to count. */
export function interfaceCounts(pid: number, name: string): InterfaceCounts {
  return countsIn(networkTable(pid, "dev"), name);
}

/** A file of /proc/PID/net; empty where the process has ended. */
export function networkTable(pid: number, file: "dev" | "tcp" | "tcp6"): string {
  try {
    return readFileSync(`/proc/${pid}/net/${file}`, "utf8");
  } catch {
    return "";
  }
}

/**
 * @param text Text of /proc/net/dev: after the name come eight columns of received traffic, bytes and packets first, then those of sent
 * traffic.
 */
export function countsIn(text: string, name: string): InterfaceCounts {
  const line = text.split("\n").find((one) => one.trimStart().startsWith(`${name}:`));
  if (line === undefined) return kNothing;
  const columns = line
    .slice(line.indexOf(":") + 1)
    .trim()
    .split(/\s+/)
    .map(Number);
  const [rx_bytes = 0, rx_packets = 0] = columns;
  const [tx_bytes = 0, tx_packets = 0] = columns.slice(8);
  return { tx_packets, tx_bytes, rx_packets, rx_bytes };
}

export function difference(now: InterfaceCounts, before: InterfaceCounts): InterfaceCounts {
  return {
    tx_packets: now.tx_packets - before.tx_packets,
    tx_bytes: now.tx_bytes - before.tx_bytes,
    rx_packets: now.rx_packets - before.rx_packets,
    rx_bytes: now.rx_bytes - before.rx_bytes,
  };
}
