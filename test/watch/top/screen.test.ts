/** The screen of `weir top`, to the letter, on terminals of several sizes, and the effects of keys. */
import { describe, expect, it } from "vitest";
import { Choices, type Key } from "../../../src/watch/top/choices.js";
import { sampleOf } from "../../../src/watch/top/sample.js";
import { drawTop } from "../../../src/watch/top/screen.js";
import { bigSample, nicReading, switchReading } from "./samples.js";

const kTime = new Date("2026-01-01T12:03:44.000Z");
const readings = (seconds: number) => [nicReading(seconds), switchReading(seconds)];
const small = sampleOf(readings(2), new Map(readings(1).map((reading) => [reading.device.name, reading])), kTime);
const kSize = { columns: 120, rows: 24 };
const plain = (...args: [Parameters<typeof drawTop>[0], Choices, { columns: number; rows: number }?]) =>
  drawTop(args[0], args[1], args[2] ?? kSize, false);
const choices = (options = {}) => new Choices(options, 1);
/** Presses keys as readline tells of them: names for those that have one. */
const press = (to: Choices, ...keys: (string | Key)[]) =>
  keys.map((key) => to.take(typeof key === "string" ? { name: key.toLowerCase(), sequence: key } : key));

describe("a screen", () => {
  it("has queue pairs and ports, numbers aligned", () => {
    expect(plain(small, choices(), { columns: 120, rows: 12 })).toEqual([
      "weir top 12:03:44  1 NIC, 1 switch, 1 queue pair  every 1 s",
      "lab at scale 1/40: meant units",
      "DEVICE↓  QP    PEER   STAGE    RATE Gb/s   TARGET   ALPHA   TX Gb/s   RX Gb/s   BYTES",
      "lab.h1   to-b  b      fast         0.400    0.500  0.2500    10.400     0.000  2.4 GB",
      "",
      "DEVICE↓  PORT    RX Gb/s   TX Gb/s   RX pps   TX pps   QUEUE KB   MARKS/s   PFC RX/s   PFC TX/s   DROPS/s",
      "lab.h1   weir0     0.000    10.000        5    1.00M          -      7.00       2.00          0      2.00",
      "lab.sw   h1       10.000     0.000        0        0       0.00      7.00          0       9.00      4.00",
      "lab.sw   r         0.000     0.000        0        0      61.20         0          0          0         0",
      "",
      "",
      "q quit  h help  Tab table  s sort  r reverse  / filter  space pause",
    ]);
  });

  it.each([
    [200, 60],
    [80, 24],
    [60, 12],
    [40, 6],
    [10, 3],
    [1, 1],
  ])("fits a terminal of %i columns and %i rows", (columns, rows) => {
    for (const sample of [small, bigSample(64), undefined]) {
      const lines = plain(sample, choices(), { columns, rows });
      expect(lines).toHaveLength(rows);
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(columns);
    }
  });

  it("leaves out what tells least where it is narrow, never what names the row", () => {
    const [, , head] = plain(small, choices(), { columns: 50, rows: 24 });
    expect(head).toBe("DEVICE↓  QP     RATE Gb/s   ALPHA   TX Gb/s");
  });

  it("shows 64 queue pairs a page at a time, and both tables share the room", () => {
    const one = choices();
    const lines = plain(bigSample(64), one, { columns: 120, rows: 24 });
    expect(lines[2]).toContain("1-17 of 64");
    expect(lines.at(-2)).toContain("weir0");
    press(one, { name: "end" });
    expect(plain(bigSample(64), one)[2]).toContain("48-64 of 64");
    press(one, { name: "pageup" });
    expect(plain(bigSample(64), one)[2]).toContain("32-48 of 64");
    press(one, { name: "home" });
    expect(plain(bigSample(64), one)[3]).toContain("qp0");
  });

  it("has the ports where there are no queue pairs, also where one table fits", () => {
    const ports = { ...bigSample(64), queue_pairs: [] };
    const lines = plain(ports, choices(), { columns: 120, rows: 6 });
    expect(lines[2]).toMatch(/^DEVICE↓ .*PORT/);
    expect(lines[3]).toContain("weir0");
  });

  it("says so when nothing runs", () => {
    const nothing = { time: "2026-01-01T12:03:44.000Z", devices: [], queue_pairs: [], ports: [] };
    expect(plain(nothing, choices())[0]).toBe("weir top 12:03:44  no daemon or lab is running  every 1 s");
  });

  it("has colours only if they are wanted", () => {
    expect(plain(small, choices()).join("")).not.toContain("\x1b");
    expect(drawTop(small, choices(), kSize, true)[0]).toBe(
      "\x1b[1mweir top\x1b[22m 12:03:44  1 NIC, 1 switch, 1 queue pair  every 1 s",
    );
  });

  it("shows no control characters of names", () => {
    const evil = bigSample(1);
    evil.queue_pairs = evil.queue_pairs.map((pair) => ({ ...pair, qp: "a\x1b[2Jb" }));
    expect(plain(evil, choices())[3]).toContain("a?[2Jb");
  });
});

describe("keys", () => {
  it("sort by column, numbers from the largest, and reverse", () => {
    const own = choices({ sort: "rate" });
    const qps = () =>
      plain(bigSample(3), own)
        .slice(3, 6)
        .map((line) => line.split(/\s+/)[1]);
    expect(qps()).toEqual(["qp2", "qp1", "qp0"]);
    press(own, "r");
    expect(qps()).toEqual(["qp0", "qp1", "qp2"]);
    expect(plain(bigSample(3), own)[2]).toContain("RATE Gb/s↑");
    press(own, "s");
    expect(own.sort.pairs.key).toBe("target");
    press(own, { name: "s", sequence: "S" }, { name: "s", sequence: "S" });
    expect(own.sort.pairs.key).toBe("stage");
  });

  it("act on the active table", () => {
    const own = choices();
    press(own, "tab", "s", "s");
    expect([own.sort.pairs.key, own.sort.ports.key]).toEqual(["name", "rx"]);
    press(own, "2");
    expect(plain(small, own).join("\n")).not.toContain("PORT");
    press(own, "tab");
    expect(plain(small, own).join("\n")).not.toContain("QP ");
    press(own, "1");
    expect(plain(small, own).join("\n")).toMatch(/QP [\s\S]*PORT/);
  });

  it("filter by any name, typed and taken back", () => {
    const own = choices();
    press(own, "/", "R");
    expect(plain(small, own).at(-1)).toBe("filter: R_");
    // q is a letter now.
    press(own, "q", { name: "backspace" }, { name: "return" });
    const lines = plain(small, own);
    expect(lines[1]).toBe("lab at scale 1/40: meant units  filter: R");
    expect(lines.filter((line) => line.startsWith("lab."))).toHaveLength(2);
    press(own, { name: "escape" });
    expect(plain(small, own).filter((line) => line.startsWith("lab."))).toHaveLength(4);
  });

  it("pause, change the interval, show help, quit", () => {
    const own = choices();
    press(own, { name: "space", sequence: " " }, { sequence: "+" });
    expect(plain(small, own)[0]).toBe("weir top 12:03:44  paused  1 NIC, 1 switch, 1 queue pair  every 2 s");
    press(own, { sequence: "-" }, { sequence: "-" });
    expect(own.interval).toBe(0.5);
    press(own, "h");
    expect(plain(small, own).join("\n")).toContain("reverse the order");
    expect(press(own, "x", "q")).toEqual([undefined, "quit"]);
    expect(press(own, { name: "c", ctrl: true }, { name: "z", ctrl: true })).toEqual(["quit", "suspend"]);
  });
});
