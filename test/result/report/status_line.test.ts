import { describe, expect, it } from "vitest";
import { StatusLine } from "../../../src/result/report/status_line.js";
import { memoryStream } from "../../cli/memory_stream.js";

/** A stream that remembers, and a clock in ms that is set by hand. */
function setUp(isTTY: boolean, columns?: number) {
  const { stream, writes } = memoryStream({ isTTY, ...(columns !== undefined && { columns }) });
  const clock = { now: 1000 };
  return { line: new StatusLine(stream, () => clock.now), writes, clock };
}

describe("the status line", () => {
  it("is a line every ten seconds where there is no terminal, and at once where it must", () => {
    const { line, writes, clock } = setUp(false);
    line.show(() => "too early");
    clock.now += 10_000;
    line.show(() => "in time");
    line.show(() => "again");
    line.show(() => "a run begins", true);
    line.write("a row\n");
    line.close();
    line.show(() => "over", true);
    expect(writes).toEqual(["in time\n", "a run begins\n", "a row\n"]);
  });

  it("is drawn again on a terminal, no wider than that, and nothing for what ends at once", () => {
    const { line, writes, clock } = setUp(true, 60);
    line.show(() => "a flash");
    expect(writes).toEqual([]);
    clock.now += 200;
    line.show(() => "x".repeat(100));
    expect(writes.join("")).toContain("x".repeat(59));
    expect(writes.join("")).not.toContain("x".repeat(60));
    line.write("a row\n");
    // It makes room for what is written, and is back at once.
    line.show(() => "below");
    expect(writes.join("").indexOf("below")).toBeGreaterThan(writes.join("").indexOf("a row\n"));
    const before = writes.length;
    line.close();
    expect(writes.slice(before).join("")).not.toContain("below");
    const closed = writes.length;
    line.close();
    expect(writes.length).toBe(closed);
  });
});
