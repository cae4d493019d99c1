import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { schemas } from "../../scripts/generate-schema.js";
import { kShortest, mapped, type Node, rulesOf, withDefinitions } from "../../scripts/schema_definitions.js";

describe("definitions of a schema", () => {
  const rate: Node = {
    type: "object",
    properties: Object.fromEntries(
      ["a", "b", "c", "d", "e"].map((name) => [
        name,
        { type: "number", description: `Rate of ${name}, which has a text.` },
      ]),
    ),
  };

  it("have the name of the outermost field, and leave what is said of a place there", () => {
    const schema = {
      properties: {
        hosts: { additionalProperties: { properties: { uplink: { ...rate, default: {} } } } },
        link: { description: "The slowest link.", ...rate },
        count: { type: "integer" },
        most: { type: "integer" },
      },
    };
    expect(JSON.parse(JSON.stringify(withDefinitions(schema)))).toEqual({
      properties: {
        hosts: { additionalProperties: { properties: { uplink: { default: {}, $ref: "#/$defs/link" } } } },
        link: { description: "The slowest link.", $ref: "#/$defs/link" },
        count: { type: "integer" },
        most: { type: "integer" },
      },
      $defs: { link: rate },
    });
  });

  it("of different parts have different names", () => {
    const list = (items: Node): Node => ({ type: "array", items });
    const schema = { properties: { to: list(rate), from: list(rate), only: { anyOf: [rate] } } };
    expect(withDefinitions(schema)).toMatchObject({
      properties: { to: { $ref: "#/$defs/to" }, only: { anyOf: [{ $ref: "#/$defs/to_2" }] } },
      $defs: { to: { items: { $ref: "#/$defs/to_2" } }, to_2: rate },
    });
  });
});

describe.each(Object.entries(schemas()))("the published schema of %s", (name, whole) => {
  const published = JSON.parse(readFileSync(`schema/${name}.schema.json`, "utf8")) as Node;
  const { $defs: definitions = {}, ...rest } = published;

  it("says what it says with every part written out", () => {
    const resolved = (node: Node): Node => {
      const { $ref, ...said } = node;
      const definition = definitions[$ref?.replace("#/$defs/", "") ?? ""];
      return mapped(definition === undefined ? node : { ...definition, ...said }, resolved);
    };
    expect(resolved(rest)).toEqual(JSON.parse(JSON.stringify(whole)));
  });

  it("has no long part twice", () => {
    const long: string[] = [];
    const visit = (node: Node): Node => {
      const rules = rulesOf(node);
      if (rules.length >= kShortest) long.push(rules);
      return mapped(node, visit);
    };
    for (const part of [rest, ...Object.values(definitions)]) visit(part);
    expect(long.filter((rules, at) => long.indexOf(rules) < at)).toEqual([]);
  });
});
