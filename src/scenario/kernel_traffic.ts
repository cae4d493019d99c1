// Refusal of kernels' and programs' traffic, where there are no kernels and programs.
import { WeirError } from "../base/error.js";
import type { Scenario } from "./types.js";

/**
 * @param what Name of the clock, which has neither kernel nor programs: "virtual time". @throws WeirError where the scenario has such
 * traffic.
 */
export function refuseKernelTraffic({ tcp, programs }: Pick<Scenario, "tcp" | "programs">, what: string): void {
  const [program, stream] = [programs[0], tcp[0]];
  if (program !== undefined) {
    throw new WeirError(`traffic ${program.id}: ${what} has no hosts to run a program on`, {
      hint: "run it with weir sim run or weir lab run, or leave the entry out",
    });
  }
  if (stream !== undefined) {
    throw new WeirError(`traffic ${stream.id}: ${what} has no kernel, whose TCP it would be`, {
      hint: "run it with weir lab run, or leave the entry out",
    });
  }
}
