/** Cases in which there are colours, and pictures drawn in place. */
import { describe, expect, it } from "vitest";
import { movesCursor, wantsColor } from "../../../src/result/report/terminal.js";

const terminal = { isTTY: true };
const pipe = {};

describe("colours", () => {
  it.each([
    ["a terminal", terminal, { TERM: "xterm" }, true],
    ["a pipe", pipe, { TERM: "xterm" }, false],
    ["a dumb terminal", terminal, { TERM: "dumb" }, false],
    ["NO_COLOR", terminal, { NO_COLOR: "1" }, false],
    ["an empty NO_COLOR, which is none", terminal, { NO_COLOR: "" }, true],
    ["FORCE_COLOR on a pipe", pipe, { FORCE_COLOR: "1" }, true],
    ["FORCE_COLOR on a dumb terminal", terminal, { FORCE_COLOR: "3", TERM: "dumb" }, true],
    ["FORCE_COLOR=0 on a terminal", terminal, { FORCE_COLOR: "0" }, false],
    ["an empty FORCE_COLOR, which is none", pipe, { FORCE_COLOR: "" }, false],
    ["NO_COLOR and FORCE_COLOR", terminal, { NO_COLOR: "1", FORCE_COLOR: "1" }, false],
  ])("%s", (_, stream, environment, expected) => {
    expect(wantsColor(stream, environment)).toBe(expected);
  });
});

it("pictures are drawn in place on terminals that can, whatever the colours", () => {
  expect(movesCursor(terminal, { NO_COLOR: "1" })).toBe(true);
  expect(movesCursor(terminal, { TERM: "dumb" })).toBe(false);
  expect(movesCursor(pipe, { FORCE_COLOR: "1" })).toBe(false);
  expect(movesCursor({ isTTY: true, columns: 80, rows: 24 }, {})).toBe(true);
  // A terminal that does not know its size counts as none: log-update would draw nothing there.
  const serial = { isTTY: true, columns: 0, rows: 0 };
  expect(movesCursor(serial, {})).toBe(false);
  expect(wantsColor(serial, {})).toBe(true);
});
