/** `--watch`: shows again and again until it is told to end. */
import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, it, vi } from "vitest";
import type { CliContext } from "../../src/cli/context.js";
import { repeat } from "../../src/cli/repeat.js";
import { weir } from "./harness.js";
import { memoryStream } from "./memory_stream.js";

function context(terminal: object = {}) {
  const { stream: stdout, text } = memoryStream(terminal);
  const signals = new EventEmitter();
  return { stdout, signals, stdin: new PassThrough(), written: text } as unknown as CliContext & { written(): string };
}

/** Returns another picture each time; after the third, `end` is called. */
const looks = (end: () => void, lines = 1) => {
  let count = 0;
  return async () => {
    count++;
    if (count === 3) end();
    return Array.from({ length: lines }, (_, i) => `look ${count}.${i}\n`).join("");
  };
};

describe("watching", () => {
  it("writes one below the other where there is no terminal, and ends with status 0", async () => {
    const own = context();
    expect(
      await repeat(
        own,
        0.1,
        looks(() => own.signals.emit("SIGINT")),
      ),
    ).toBe(0);
    expect(own.written()).toBe("look 1.0\nlook 2.0\nlook 3.0\n");
  });

  it("draws in place at a terminal, no more than fits, and clears nothing in between", async () => {
    const own = context({ isTTY: true, columns: 80, rows: 5 });
    await repeat(
      own,
      0.1,
      looks(() => own.signals.emit("SIGTERM"), 10),
    );
    expect(own.written()).toContain("look 3.2");
    expect(own.written()).not.toContain("look 1.3");
    expect(own.written()).toContain("... 7 lines more");
    expect(own.written()).not.toContain("\x1b[2J");
  });

  it("shows the first lines on a narrow terminal, too, where they are wrapped", async () => {
    const own = context({ isTTY: true, columns: 20, rows: 6 });
    const lines = ["a", "b", "c"].map((letter) => letter.repeat(30));
    await repeat(own, 0.1, async () => {
      own.signals.emit("SIGTERM");
      return lines.join("\n");
    });
    // Two rows each, and the last row of the terminal is for the cursor.
    const rows = ["a".repeat(20), "a".repeat(10), "b".repeat(20), "b".repeat(10), "... 1 lines more"];
    expect(stripVTControlCharacters(own.written())).toContain(rows.join("\n"));
  });

  it("ends when nobody reads any more", async () => {
    const own = context();
    expect(
      await repeat(
        own,
        0.1,
        looks(() => own.stdout.emit("error", new Error("EPIPE"))),
      ),
    ).toBe(0);
    expect(own.signals.listenerCount("SIGINT")).toBe(0);
  });

  it("passes errors on", async () => {
    const own = context();
    await expect(repeat(own, 0.1, vi.fn().mockRejectedValue(new Error("gone")))).rejects.toThrow("gone");
  });
});

it("intervals are seconds within bounds", async () => {
  for (const wrong of ["0", "0.01", "1e9", "soon"]) {
    const { status, stderr } = await weir(["show", "pfc", "--watch", "--interval", wrong]);
    expect(status).toBe(2);
    expect(stderr).toContain("It is a number of seconds, from 0.1 to 3600.");
  }
  expect((await weir(["top", "--count", "0"])).stderr).toContain("It is a whole number from 1.");
});
