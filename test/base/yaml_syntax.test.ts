import { describe, expect, it } from "vitest";
import { readScenarioText } from "../../src/base/yaml.js";
import { refusalOf } from "../fixtures/refusal.js";

/** Without the hint. */
const refusal = (text: string) =>
  refusalOf(() => readScenarioText(text, "f", [])).replace(/^scenario f:?|\n {2}hint: .*$/gs, "");

describe("a slip of YAML is told in the words of whoever wrote it", () => {
  it.each([
    ["name: x\n  duration: 5ms\n", "2:3: line 2 is indented more than line 1, which has a value already"],
    ["a: 1\n  # why\n  b: 2\n", "3:3: line 3 is indented more than line 1, which has a value already"],
    ["t:\n  hosts: [a]\n    switches: [b]\n", "3:5: line 3 is indented more than line 2, which has a value already"],
    ["t:\n  - id: a\n      from: b\n", "3:7: line 3 is indented more than line 2, which has a value already"],
    ["t:\n  hosts: [a]\n switches: [b]\n", "3:2: line 3 is indented less than line 2, and more than line 1"],
    ["t:\n  - id: a\n   from: b\n", '3:4: line 3 begins in column 4, the field behind "-" in line 2 in column 5'],
    ["t:\n - id: a\n- id: b\n", '3:1: line 3 is an item of a list ("- "), and line 1 beside it is none'],
    ["- a\nname: x\n", '2:1: line 1 is an item of a list ("- "), and line 2 beside it is none'],
    ["links:\n  - a -- s\n  b -- s\n", '3:3: line 2 is an item of a list ("- "), and line 3 beside it is none'],
    ["name: x\nduration 5ms\nseed: 3\n", '2:1: line 2 has no ":" behind the name of a field'],
    ["duration 5ms\nname: x\n", '1:1: line 1 has no ":" behind the name of a field'],
    ["name: a: b\n", '1:1: line 1 has a second ":"'],
    ["t:\n\thosts: [a]\n", "2:1: line 2 is indented with a tab"],
    ["hosts: [a, b\nname: x\n", "2:1: what [ begins has no ] before line 2"],
    ["a: {b: 1\nname: x\n", "2:1: what { begins has no } before line 2"],
    ["name: [a]]\n", "1:10: nothing begins what ] ends"],
    ['name: "x\nseed: 1\n', '3:1: a text that begins with " does not end'],
    ["name: @x\n", "1:7: no value begins with @"],
    ["x: *none\n", " *none stands for nothing: no &none is above it"],
  ])("%j", (text, message) => {
    expect(refusal(text)).toBe(message);
  });

  it("whatever a file has", () => {
    expect(refusal('a: "b: c: d"\nurl: http://x/y\nlist:\n- a: 1\n  b: 2\n- 3\n')).toBe("accepted");
    for (const text of [
      "{",
      "]",
      ": :",
      "- - : -",
      "a:\n\tb",
      "?",
      "'",
      '"\\',
      "&",
      "--- a\n--- b",
      "%x",
      "a: |\n b\n  c\n d: e\n f",
    ]) {
      expect(typeof refusal(text)).toBe("string");
    }
  });
});
