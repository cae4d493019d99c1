import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { examples } from "../../fixtures/examples.js";
import { plan } from "../fixture.js";

const schema = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(
  JSON.parse(readFileSync("schema/sweep.schema.json", "utf8")),
);
const sweeps = examples("sweep");

describe("examples of sweeps", () => {
  it("are there", () => expect(sweeps.length).toBeGreaterThan(0));

  it.each(sweeps)("%s is as the published schema has it, and all its points are sound", (path) => {
    const data = parse(readFileSync(path, "utf8"));
    expect(schema(data)).toBe(true);
    expect(schema({ ...data, sedes: 3 })).toBe(false);
    expect(plan(path).points.length).toBeGreaterThan(1);
  });
});
