/** A run as a report of tests, as JUnit and those that read its XML have it: what was expected, and whether it can be believed. */
import type { Judged } from "../result/expectations.js";
import type { Result } from "../result/result.js";

/** @param seconds That the run took, wall time. */
export function junitXml({ scenario, clock, fidelity }: Result, judged: readonly Judged[], seconds: number): string {
  const failures = judged.filter(({ met }) => !met).length;
  const errors = fidelity.valid ? 0 : 1;
  const suite = attributes({
    name: scenario,
    tests: judged.length + 1,
    failures,
    errors,
    skipped: 0,
    time: seconds.toFixed(3),
  });
  const cases = [
    testCase(
      scenario,
      `${clock}: the run is valid`,
      fidelity.valid ? "" : element("error", fidelity.reasons.join("; ")),
    ),
    ...judged.map(({ expect, reason }) =>
      testCase(scenario, expect, reason === undefined ? "" : element("failure", reason)),
    ),
  ];
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites><testsuite ${suite}>`,
    ...cases,
    "</testsuite></testsuites>",
    "",
  ].join("\n");
}

function testCase(scenario: string, name: string, inside: string): string {
  const own = attributes({ classname: scenario, name });
  return inside === "" ? `<testcase ${own}/>` : `<testcase ${own}>${inside}</testcase>`;
}

const element = (name: string, message: string) => `<${name} ${attributes({ message })}/>`;

function attributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}="${escaped(String(value))}"`)
    .join(" ");
}

/** XML has no way to write most control characters. */
function escaped(text: string): string {
  return text
    .replace(/\p{Cc}/gu, " ")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
