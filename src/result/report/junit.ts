/** Writes a run as a report of tests in JUnit's XML: the outcome of each expectation, and whether the run can be believed. */
import type { Judged } from "../expectations.js";
import type { Fidelity, Result } from "../result.js";

/** @param seconds Wall time that the run took. */
export function junitXml({ scenario, clock, fidelity }: Result, judged: readonly Judged[], seconds: number): string {
  // A run that is not valid says nothing about what was expected.
  const skipped = fidelity.valid ? 0 : judged.length;
  const failures = fidelity.valid ? judged.filter(({ met }) => !met).length : 0;
  const errors = fidelity.valid ? 0 : 1;
  const suite = attributes({
    name: scenario,
    tests: judged.length + 1,
    failures,
    errors,
    skipped,
    time: seconds.toFixed(3),
  });
  const cases = [
    testCase(
      scenario,
      `${clock}: the run is valid`,
      fidelity.valid ? "" : element("error", fidelity.reasons.join("; ")),
    ),
    ...judged.map(({ expect, reason }) => testCase(scenario, expect, outcome(fidelity, reason))),
  ];
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites><testsuite ${suite}>`,
    ...cases,
    "</testsuite></testsuites>",
    "",
  ].join("\n");
}

function outcome({ valid }: Pick<Fidelity, "valid">, reason: string | undefined): string {
  if (!valid) return element("skipped", "the run is not valid: nothing to judge");
  return reason === undefined ? "" : element("failure", reason);
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
