/** weir lab merge, on folders as parts leave them. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { Result } from "../../src/result/result.js";
import { saveRun } from "../../src/result/run_files.js";
import { choosePart } from "../../src/scenario/parts.js";
import { parts, whole } from "../clocks/lab/parts/made.js";
import { faultsOf } from "../fixtures/closed_schema.js";
import { weir } from "./harness.js";

const merge = (...args: string[]) => weir(["lab", "merge", ...args]);

/** A folder of each part. */
function folders(
  rest: object = {},
  changes: Parameters<typeof parts>[1] = {},
): [one: string, two: string, out: string] {
  const place = mkdtempSync(join(tmpdir(), "weir-merge-"));
  onTestFinished(() => rmSync(place, { recursive: true }));
  const scenario = whole(rest);
  for (const { folder, result, series } of parts(scenario, changes)) {
    saveRun(join(place, folder), result, series, {
      text: "name: small",
      set: [],
      scenario: choosePart(scenario, folder),
    });
  }
  return [join(place, "one"), join(place, "two"), join(place, "out")];
}

it("writes one result of all parts, and tells of it", async () => {
  const [one, two, out] = folders();
  const { status, stdout, stderr } = await merge(one, join(two, "result.json"), "--out", out);
  expect([status, stderr]).toEqual([0, ""]);
  expect(stdout).toContain("Links between parts");
  expect(stdout).toContain("fidelity: valid");
  const result = JSON.parse(readFileSync(join(out, "result.json"), "utf8")) as Result;
  expect(faultsOf(result)).toEqual([]);
  expect(result.merged?.parts.map(({ name }) => name)).toEqual(["one", "two"]);
  const { scenario } = JSON.parse(readFileSync(join(out, "scenario.json"), "utf8"));
  expect(scenario.part).toBeUndefined();
  expect(readFileSync(join(out, "report.html"), "utf8")).toContain("Links between parts");
});

it("looks at what the scenario expects, and at whether the result is valid", async () => {
  const [one, two, out] = folders({ expect: ["totals.goodput_bps > 1Gbps"] });
  const missed = await merge(one, two, "--out", out);
  expect(missed.status).toBe(4);
  expect(missed.stderr).toContain("not as expected: totals.goodput_bps > 1Gbps");
  const [first, second, other] = folders({}, { came: 99 });
  const lossy = await merge(first, second, "--out", other, "--json");
  expect(lossy.status).toBe(3);
  expect((JSON.parse(lossy.stdout) as Result).merged?.links[0]?.lost).toBe(1);
});

it("refuses folders that are of no part, have been changed, or would be written over", async () => {
  const [one, two, out] = folders();
  const refused = async (...args: string[]) => {
    const { status, stderr } = await merge(...args);
    expect(status).toBe(2);
    return stderr;
  };
  expect(await refused(one, "--out", out)).toContain("part two is missing");
  expect(await refused(one, two, "--out", one)).toContain("it is the folder of a part");
  expect(await refused(one, join(two, "nothing"))).toContain("no such file");
  const file = join(two, "scenario.json");
  writeFileSync(file, readFileSync(file, "utf8").replace('"seed":1', '"seed":2'));
  expect(await refused(one, two, "--out", out)).toContain("scenario.json: not the scenario");
  const fresh = folders();
  await merge(fresh[0], fresh[1], "--out", out);
  expect(await refused(one, out)).toContain("not of a part");
});
