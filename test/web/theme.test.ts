/** Reports and the dashboard are to look alike; their style sheets say colours in different ways, so a test holds them together. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

it("has the colours of the reports, light and dark", () => {
  const report = read("src/report/assets/report.css");
  const page = new Map(
    [...read("web/src/style/theme.css").matchAll(/--([\w-]+): light-dark\((#\w+), (#\w+)\)/g)].map(
      ([, name, light, dark]) => [name, [light, dark]] as const,
    ),
  );
  const colours = new Map<string, string[]>();
  // The first block is the light one, the second the dark one; what follows is for paper.
  for (const [, name = "", colour = ""] of report.split("@page")[0]?.matchAll(/--([\w-]+): (#\w+);/g) ?? []) {
    colours.set(name, [...(colours.get(name) ?? []), colour]);
  }
  expect([...colours.keys()]).toEqual(expect.arrayContaining(["paper", "ink", "c0", "c7"]));
  for (const [name, both] of colours) expect([name, page.get(name)]).toEqual([name, both]);
});
