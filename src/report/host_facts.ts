import { cpus, release } from "node:os";

/** What a result depends on besides Weir: this machine. */
export interface HostFacts {
  kernel: string;
  cpus: number;
  cpu: string | undefined;
  node: string;
}

export function hostFacts(): HostFacts {
  const all = cpus();
  return { kernel: release(), cpus: all.length, cpu: all[0]?.model, node: process.version };
}
