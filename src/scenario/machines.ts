/** Machines of several NICs: each NIC is a host of the scenario, with its own link, and message graphs know which belong together. */
import type { HostConfig } from "./types.js";

type Nic = Pick<HostConfig, "name" | "machine">;

/** Name of the machine of a host: its own, where it is alone. */
export const machineOf = ({ name, machine = name }: Nic): string => machine;

/** For each host the number of the first one of its machine; undefined: all are alone. */
export function firstNics(hosts: readonly Nic[]): Uint32Array | undefined {
  if (hosts.every(({ machine }) => machine === undefined)) return undefined;
  const first = new Map<string, number>();
  return Uint32Array.from(hosts, (host, number) => {
    const known = first.get(machineOf(host)) ?? number;
    first.set(machineOf(host), known);
    return known;
  });
}
