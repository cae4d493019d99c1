/** Judges what a scenario expects of its result and of its programs: it is told, written for CI, and made the exit status. */
import { writeWhole } from "../base/write_file.js";
import { judgeExpectations, judgePrograms } from "../result/expectations.js";
import { junitXml } from "../result/report/junit.js";
import { harmless } from "../result/report/terminal.js";
import type { Result } from "../result/result.js";
import type { Scenario } from "../scenario/types.js";
import { type CliContext, kExit } from "./context.js";

/**
 * Returns the exit status of a run that went to its end. A run that is not valid says nothing about expectations.
 * @param begun Time when it began, ms by performance.now().
 */
export function meetExpectations(
  { stderr }: Pick<CliContext, "stderr">,
  { junit }: { junit?: string },
  { expect }: Pick<Scenario, "expect">,
  result: Result,
  begun: number,
): number {
  const judged = [...judgePrograms(result), ...judgeExpectations(result, expect)];
  if (junit !== undefined) writeWhole(junit, junitXml(result, judged, (performance.now() - begun) / 1000));
  for (const { expect: text, reason } of judged) {
    if (reason !== undefined) stderr.write(harmless(`not as expected: ${text}: ${reason}\n`));
  }
  if (!result.fidelity.valid) return kExit.invalid;
  return judged.every(({ met }) => met) ? kExit.ok : kExit.unexpected;
}
