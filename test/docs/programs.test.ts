/** The list of programs says what tests show. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { programsPage } from "../../scripts/generate-programs.js";
import { kNeeds, programsOf } from "../../scripts/needs.mjs";
import { kPrograms, kVersions } from "../live/program_list.js";

it("docs/reference/programs.md is up to date (npm run generate)", () => {
  expect(readFileSync("docs/reference/programs.md", "utf8")).toBe(programsPage());
});

it("each package has its versions, and the other way round", () => {
  expect([...new Set(kPrograms.map((row) => row.package))].sort()).toEqual(Object.keys(kVersions).sort());
});

describe.each(kPrograms.map((row) => [row.programs.join(", "), row] as const))("%s", (_, row) => {
  it("is of a package of test/needs.json that has it", () => {
    const need = kNeeds.find((one) => one.package === row.package);
    expect(need?.for).toContain("live");
    const has = [...programsOf(need as NonNullable<typeof need>), ...(need?.files ?? [])].join("\n");
    for (const program of row.programs) expect(has).toContain(program.split(" ")[0]);
  });

  it("is run by the test that is named", () => {
    const [file, title] = row.test;
    const text = readFileSync(`test/live/${file}.test.ts`, "utf8");
    expect(text).toContain(title);
    for (const program of row.programs) {
      const words = program.split(" ").map((word) => word.replace(/\W/g, "\\$&"));
      expect(text).toMatch(new RegExp(`\\b${words.join('(" ?,? ?"| )')}`));
    }
  });
});
