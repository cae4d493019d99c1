import { readdirSync, readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { kindOfFile } from "../../src/config/daemon.js";
import { plan } from "./fixture.js";

const schema = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(
  JSON.parse(readFileSync("schema/sweep.schema.json", "utf8")),
);
const examples = readdirSync("examples").filter((file) => /^sweep-.*\.yaml$/.test(file));

describe("examples of sweeps", () => {
  it("are there", () => expect(examples.length).toBeGreaterThan(0));

  it.each(examples)("%s is a sweep, as the published schema has it, and all its points are sound", (file) => {
    const path = `examples/${file}`;
    expect(kindOfFile(path)).toBe("sweep");
    const data = parse(readFileSync(path, "utf8"));
    expect(schema(data)).toBe(true);
    expect(schema({ ...data, sedes: 3 })).toBe(false);
    expect(plan(path).points.length).toBeGreaterThan(1);
  });
});
