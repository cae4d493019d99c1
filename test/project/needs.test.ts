/** Programs that tests call are in one list, from which they are installed. */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { extname } from "node:path";
import { expect, it } from "vitest";
import { findProgram, kNeeds, lackingOf, missingPackages, programsOf } from "../../scripts/needs.mjs";
import { lacking } from "../needs.js";

const listed = kNeeds.flatMap(programsOf);

it("tests find the programs of the list, those of Node.js, and no others", () => {
  const path = process.env.PATH ?? "";
  expect(path).not.toContain(":");
  const present = listed.filter((name) => findProgram(name) !== undefined);
  expect(readdirSync(path).sort()).toEqual([...present, "node", "npm", "npx"].sort());
  // Every machine has it, and no list does.
  expect(findProgram("uniq")).toBeDefined();
  expect(spawnSync("uniq", ["--version"]).error).toMatchObject({ code: "ENOENT" });
});

it.each(
  ["test", "src", "papers"].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((file) => [".ts", ".py"].includes(extname(file)))
      .map((file) => `${folder}/${file}`),
  ),
)("%s calls none by its path, past the list", (file) => {
  const lines = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => !line.startsWith("#!"));
  expect(lines.filter((line) => /["'`]\/(usr\/(local\/)?)?s?bin\/\w/.test(line))).toEqual([]);
});

it("names each program once, with Debian's package, and whom it is for", () => {
  expect(new Set(listed).size).toBe(listed.length);
  const packages = kNeeds.map((need) => need.package);
  expect(packages).toEqual([...new Set(packages)].sort());
  const users = new Set(kNeeds.flatMap((need) => need.for));
  expect([...users].sort()).toEqual(["browser", "fuzz", "interop", "live", "native", "nics", "start", "unit"]);
});

it("tells what is missing, and packages that nobody has listed", () => {
  const absent = { package: "none", programs: ["sh", "no-such-program"], files: ["/no/such/file"], for: [] };
  expect(lackingOf(absent)).toEqual(["no-such-program", "/no/such/file"]);
  const [here, nowhere] = ["/proc/*/fd/*", "/proc/*/no-*"];
  expect(
    lackingOf({ ...absent, programs: [], files: [here, nowhere, "/no-*/*", "/proc/s*lf/st*", "/proc/self/*stat*us"] }),
  ).toEqual([nowhere, "/no-*/*"]);
  const either = (...groups: string[][]) => lackingOf({ ...absent, programs: [], files: [], either: groups });
  expect(either(["no-such-program", "sh"], ["sh", "ls"])).toEqual([]);
  expect(either(["no-such-program", "sh"], ["no-other"])).toEqual(["no-such-program", "no-other"]);
  expect(missingPackages(["nobody"])).toEqual([]);
  expect(() => lacking("no-such-package")).toThrow("test/needs.json");
});

it("is the only list: CI installs nothing by itself", () => {
  expect(readFileSync(".ci/run", "utf8")).not.toMatch(/apt|dpkg/);
});
