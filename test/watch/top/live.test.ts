/** `weir top` on a terminal that remembers: its output, and that it gives the terminal back on every way out. */
import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { describe, expect, it, vi } from "vitest";
import { Choices } from "../../../src/watch/top/choices.js";
import { liveTop } from "../../../src/watch/top/live.js";
import type { Poll } from "../../../src/watch/top/poll.js";
import { memoryStream } from "../../cli/memory_stream.js";
import { eventually } from "../../patience.js";
import { bigSample } from "./samples.js";

const kEnter = "\x1b[?1049h\x1b[?25l";
const kLeave = "\x1b[?25h\x1b[?1049l";

function terminal() {
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: vi.fn() });
  const { stream: stdout, text } = memoryStream({ isTTY: true, columns: 80, rows: 10 });
  return { stdin, stdout, written: text };
}

const kExits = process.listeners("exit");

function start(poll: () => Promise<ReturnType<typeof bigSample>> = async () => bigSample(2)) {
  const screen = terminal();
  const signals = new EventEmitter();
  const abort = new AbortController();
  const suspend = vi.fn();
  const ended = liveTop({ next: poll } as unknown as Poll, new Choices({}, 3600), {
    stdin: screen.stdin,
    stdout: screen.stdout,
    signals,
    color: false,
    suspend,
    signal: abort.signal,
  });
  return { ...screen, signals, abort, suspend, ended };
}

const shown = (top: ReturnType<typeof start>, text: string) => eventually(() => expect(top.written()).toContain(text));

function expectGivenBack({ written, stdin }: ReturnType<typeof start>): void {
  expect(written().startsWith(kEnter)).toBe(true);
  expect(written().endsWith(kLeave)).toBe(true);
  expect(stdin.setRawMode.mock.calls).toEqual([[true], [false]]);
  expect(process.listeners("exit")).toEqual(kExits);
}

describe("the terminal is given back", () => {
  it("after q", async () => {
    const top = start();
    await shown(top, "qp1");
    top.stdin.write("q");
    expect(await top.ended).toBe(false);
    expectGivenBack(top);
  });

  it("after Ctrl-C, which ends it as the signal would", async () => {
    const top = start();
    await shown(top, "qp1");
    top.stdin.write("\x03");
    expect(await top.ended).toBe(true);
    expectGivenBack(top);
  });

  it("after a signal", async () => {
    const top = start();
    await shown(top, "qp1");
    top.abort.abort();
    expect(await top.ended).toBe(false);
    expectGivenBack(top);
  });

  it("after SIGHUP", async () => {
    const top = start();
    await shown(top, "qp1");
    top.signals.emit("SIGHUP");
    expect(await top.ended).toBe(false);
    expectGivenBack(top);
  });

  it("when reading fails", async () => {
    const top = start(() => Promise.reject(new Error("no more descriptors")));
    await expect(top.ended).rejects.toThrow("no more descriptors");
    expect(top.written().endsWith(kLeave)).toBe(true);
  });

  it("when the terminal goes away", async () => {
    const top = start();
    await shown(top, "qp1");
    top.stdout.emit("error", new Error("EIO"));
    expect(await top.ended).toBe(false);
  });

  it.each([
    ["Ctrl-Z", ({ stdin }: ReturnType<typeof start>) => stdin.write("\x1a")],
    ["SIGTSTP", ({ signals }: ReturnType<typeof start>) => signals.emit("SIGTSTP")],
  ])("while it is stopped by %s, and taken again when it goes on", async (_what, stop) => {
    const top = start();
    await shown(top, "qp1");
    let stopped = "";
    top.suspend.mockImplementation(() => {
      stopped = top.written();
      // The kernel's default action would not happen if there were a listener.
      expect(top.signals.eventNames()).toEqual(["SIGHUP"]);
    });
    stop(top);
    await eventually(() => expect(top.suspend).toHaveBeenCalledOnce());
    expect(stopped.endsWith(kLeave)).toBe(true);
    const after = top.written().slice(stopped.length);
    expect(after.startsWith(kEnter)).toBe(true);
    expect(after).toContain("qp1");
    expect(top.signals.eventNames()).toEqual(["SIGHUP", "SIGTSTP", "SIGCONT"]);
    top.stdin.write("q");
    await top.ended;
    expect(top.written().endsWith(kLeave)).toBe(true);
    expect(top.signals.eventNames()).toEqual([]);
  });

  it("and taken again after a stop that it did not hear of, with the mode set anew", async () => {
    const top = start();
    await shown(top, "qp1");
    top.stdin.setRawMode.mockClear();
    top.signals.emit("SIGCONT");
    expect(top.stdin.setRawMode.mock.calls).toEqual([[false], [true]]);
    top.stdin.write("q");
    await top.ended;
  });
});

describe("a picture", () => {
  it("is drawn over the one before: nothing is cleared in between", async () => {
    const top = start();
    await shown(top, "qp1");
    const before = top.written().length;
    top.stdin.write("r");
    await eventually(() => expect(top.written().length).toBeGreaterThan(before));
    const picture = top.written().slice(before);
    expect(picture.startsWith("\x1b[Hweir top")).toBe(true);
    expect(picture).not.toContain("\x1b[2J");
    expect(picture.split("\r\n")).toHaveLength(10);
    top.stdin.write("q");
    await top.ended;
  });

  it("is made anew for another size", async () => {
    const top = start();
    await shown(top, "qp1");
    top.stdout.rows = 5;
    const before = top.written().length;
    top.stdout.emit("resize");
    expect(top.written().slice(before).split("\r\n")).toHaveLength(5);
    top.stdin.write("q");
    await top.ended;
  });
});
