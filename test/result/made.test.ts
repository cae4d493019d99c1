import { expect, it } from "vitest";
import { packageVersion } from "../../src/base/package_version.js";
import { hostFacts, madeNow, withMade } from "../../src/result/made.js";
import { describeMade, madeSchema } from "../../src/result/made_schema.js";

it("says which Weir, when and where, in the place of the schema", () => {
  const made = madeNow();
  expect(madeSchema.parse(made)).toEqual(made);
  expect(made.weir.split("+")[0]).toBe(packageVersion());
  expect(new Date(made.at).toISOString()).toBe(made.at);
  expect(made.host).toEqual(hostFacts());
  expect(Object.keys(withMade({ scenario: "x", seed: 1 }))).toEqual(["scenario", "made", "seed"]);
});

it("names a commit in short, and whether there were changes", () => {
  const host = { kernel: "6.12.3", cpus: 2, cpu: "EPYC", node: "v20.17.0" };
  const rest = "Linux 6.12.3, 2 x EPYC, Node.js v20.17.0";
  expect(describeMade({ weir: "0.1.0+abc", host })).toBe(`Weir 0.1.0+abc, ${rest}`);
  const commit = "fa117fc7c9f1aaaaaaaaaaaaaaaaaaaaaaaaaaaa";
  expect(describeMade({ weir: "0.1.0", commit, host })).toBe(`Weir 0.1.0 (commit fa117fc7c9f1), ${rest}`);
  expect(describeMade({ weir: "0.1.0", commit: `${commit}-dirty`, host })).toContain("(commit fa117fc7c9f1-dirty)");
});
