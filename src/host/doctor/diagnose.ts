/** Runs all checks of `weir doctor`, and shows their results. */

import pc from "picocolors";
import { wrap } from "../../base/wrap.js";
import { checkHost } from "./host.js";
import { checkKernel } from "./kernel.js";
import { checkNetwork } from "./network.js";
import { checkPrivileges } from "./privileges.js";
import { checkPrograms } from "./programs.js";
import { type Check, type DoctorReport, kGroups, report, type Status } from "./report.js";
import { checkSoftware } from "./software.js";
import type { System } from "./system.js";

/** Looks at everything; changes nothing. */
export function diagnose(system: System, version: string): DoctorReport {
  return report(version, [
    ...checkSoftware(system),
    ...checkKernel(system),
    ...checkPrivileges(system),
    ...checkHost(system),
    ...checkPrograms(system),
    ...checkNetwork(system),
  ]);
}

const kTitles: Readonly<Record<Check["group"], string>> = {
  weir: "Weir",
  kernel: "Kernel",
  privileges: "Privileges",
  tools: "Programs",
  host: "Host",
  network: "Network",
};

const kWidth = 80;
const kStatusWidth = 10;
const kTitleWidth = 17;
const kIndent = kStatusWidth + kTitleWidth;

/** The report for people: groups of checks, lines of at most 80 characters; ends with a line feed. */
export function renderReport(result: DoctorReport, color = false): string {
  const colors = pc.createColors(color);
  const paint: Record<Status, (text: string) => string> = {
    ok: colors.green,
    warning: colors.yellow,
    fail: colors.red,
  };
  const sections = kGroups.map((group) => {
    const checks = result.checks.filter((check) => check.group === group);
    return [colors.bold(kTitles[group]), ...checks.flatMap((check) => describe(check, paint[check.status]))].join("\n");
  });
  const { ok, warning, fail } = result.summary;
  const verdict = result.healthy ? colors.green("nothing fails") : colors.red("something fails");
  return `${sections.join("\n\n")}\n\n${verdict}: ${ok} ok, ${warning} warning${warning === 1 ? "" : "s"}, ${fail} failed\n`;
}

function describe({ status, title, found, impact, remedy }: Check, paint: (text: string) => string): string[] {
  const word = status === "fail" ? "FAIL" : status;
  const [first = "", ...more] = wrap(found, kWidth - kIndent);
  const head = `  ${paint(word.padEnd(kStatusWidth - 2))}${title.padEnd(kTitleWidth - 1)} ${first}`;
  const rest = [
    ...more,
    ...(impact === undefined ? [] : wrap(`-> ${impact}`, kWidth - kIndent, 3)),
    ...(remedy === undefined ? [] : wrap(`remedy: ${remedy}`, kWidth - kIndent, 8)),
  ];
  return [head.trimEnd(), ...rest.map((line) => " ".repeat(kIndent) + line)];
}
