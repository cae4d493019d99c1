/** Scenarios that virtual time cannot run. */
import { WeirError } from "../../base/error.js";
import { refuseKernelTraffic } from "../../scenario/kernel_traffic.js";
import type { Scenario } from "../../scenario/types.js";

/** @throws WeirError for what virtual time has no hosts for. */
export function checkForSimulation({ tcp, programs }: Pick<Scenario, "tcp" | "programs">): void {
  refuseKernelTraffic({ tcp, programs: [] }, "virtual time");
  const [program] = programs;
  if (program === undefined) return;
  const fail = (why: string, hint: string) => {
    throw new WeirError(`traffic ${program.id}: ${why}`, { hint });
  };
  if (process.arch !== "x64") {
    fail("programs run in virtual time on x86-64 only, whose time stamp counter can be theirs", "use weir lab run");
  }
}
