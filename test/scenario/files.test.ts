/** Files that are none of ours, or not whole: each is refused with its name and a reason. */
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { makeFolder } from "../../src/base/folder.js";
import { readAtMost } from "../../src/base/read_file.js";
import { loadNicDaemon, loadSwitchDaemon } from "../../src/device/file/load.js";
import { loadScenario, parseScenarioText } from "../../src/scenario/scenario.js";
import { loadSweep } from "../../src/study/sweep/spec.js";
import { refusalOf } from "../fixtures/refusal.js";

function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), "weir-files-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

const refused = (action: () => unknown) => refusalOf(action).replace("\n  hint: ", " | ");

describe("what is no text", () => {
  it.each([
    ["an archive", Buffer.from([0x1f, 0x8b, 0x08, 0x00, 0xff, 0xfe])],
    ["UTF-16", Buffer.from("\ufeffname: x\n", "utf16le")],
    ["Latin-1", Buffer.from("name: caf\u00e9\n", "latin1")],
  ])("%s", (_, bytes) => {
    const file = join(temporary(), "x.yaml");
    writeFileSync(file, bytes);
    expect(refused(() => loadScenario(file))).toBe(`scenario ${file}: is not text in UTF-8`);
  });

  it("a device that never ends is read no further than a file may be long", () => {
    expect(refused(() => loadScenario("/dev/zero"))).toBe(
      "scenario /dev/zero: is too large; the limit is 1048576 bytes",
    );
  });

  it.each([
    [0, 4],
    [3, 3],
    [4, 3],
    [(1 << 20) + 7, 2 << 20],
    [3 << 20, (3 << 20) - 1],
  ])("%i bytes are read if at most %i may be", (length, most) => {
    const file = join(temporary(), "x");
    const bytes = Buffer.alloc(length, "abc");
    writeFileSync(file, bytes);
    expect(readAtMost(file, most)).toEqual(length <= most ? bytes : undefined);
    // A pipe has no size.
    expect(readAtMost("/proc/self/status", 1 << 20)?.toString()).toContain("CapEff");
  });

  it("a byte order mark is no part of it", () => {
    const file = join(temporary(), "x.yaml");
    writeFileSync(file, "\ufeffname: x\n");
    expect(refused(() => loadScenario(file))).toBe(`scenario ${file}:1:1: topology: is missing`);
  });
});

describe("nesting", () => {
  // V8 may end the process, instead of throwing, where the stack ends within a regular expression: nothing may come near that.
  it.each([
    ["[", "x.yaml:1:101"],
    ['{"a":', "x.yaml"],
    ["- ", "x.yaml:1:200"],
    ["? ", "x.yaml:1:200"],
  ])("of %j without end is refused", (bracket, place) => {
    const message = refused(() => parseScenarioText(bracket.repeat(50_000), "x.yaml"));
    expect(message).toContain(place);
    expect(message).toContain("is nested too deeply | a scenario needs a few levels; the limit is 100");
  });

  it("of values on the command line, too", () => {
    const message = refused(() => parseScenarioText("name: x", "x.yaml", { set: [`name=${"[".repeat(50_000)}`] }));
    expect(message).toMatch(/^--set name=\[{55}\.\.\.: is nested too deeply/);
  });
});

describe("a mapping with many keys", () => {
  // The work is counted, not timed: what is done for each key may not grow with their number.
  const searched = (action: () => void) => {
    let looks = 0;
    for (const name of ["some", "find"] as const) {
      const original = Array.prototype[name] as (this: unknown[], ...args: unknown[]) => unknown;
      vi.spyOn(Array.prototype, name).mockImplementation(function (this: unknown[], predicate, ...rest) {
        const counted = (...args: Parameters<typeof predicate>) => {
          looks++;
          return predicate(...args);
        };
        return original.call(this, counted, ...rest) as never;
      });
    }
    try {
      action();
    } finally {
      vi.restoreAllMocks();
    }
    return looks;
  };

  it.each([
    ["block", (keys: string[]) => keys.map((key) => `${key}: 1`).join("\n")],
    ["flow", (keys: string[]) => `{ ${keys.map((key) => `${key}: 1`).join(", ")} }`],
  ])("(%s) is refused with work in proportion", (_, write) => {
    const keys = Array.from({ length: 2000 }, (__, i) => `k${i}`);
    const message = { text: "" };
    const looks = searched(() => {
      message.text = refused(() => parseScenarioText(write(keys), "x.yaml"));
    });
    expect(message.text).toContain("scenario x.yaml: 2001 problems");
    expect(message.text).toMatch(/^ {2}\d+:\d+ k7: unknown field$/m);
    expect(looks).toBeLessThan(20 * keys.length);
  });

  it("may have none of them twice, in whatever mapping", () => {
    expect(refused(() => parseScenarioText("a: 1\nb: { c: 1, d: 2, c: 3 }\na: 2", "x.yaml"))).toContain(
      "2 problems\n  2:18 this field is there twice\n  3:1 this field is there twice",
    );
  });
});

describe("a file of another kind", () => {
  const write = (text: string) => {
    const file = join(temporary(), "x.yaml");
    writeFileSync(file, text);
    return file;
  };
  it.each([
    ["switch", loadSwitchDaemon, "topology: { hosts: [a] }", "is a scenario | it is for weir lab run or weir sim run"],
    ["nic", loadNicDaemon, "ports: []", "is a switch.yaml | it is for weir switch -c"],
    ["scenario", loadScenario, "interface: eth0", "is a nic.yaml | it is for weir nic -c"],
    ["scenario", loadScenario, "scenario: x.yaml", "is a sweep | it is for weir sweep plan"],
    ["sweep", loadSweep, "traffic: []", "is a scenario | it is for weir lab run or weir sim run"],
  ] as const)("is told from a %s", (kind, load, text, expected) => {
    const file = write(text);
    expect(refused(() => load(file))).toBe(`${kind} ${file}: ${expected}`);
  });

  it("is not supposed where a field of the right kind is there", () => {
    expect(refused(() => loadNicDaemon(write("interface: eth0\naddress: 10.0.0.1\nstatic_fdb: []\n")))).toContain(
      ":3:1: static_fdb: unknown field",
    );
  });
});

describe("values", () => {
  const set = (...assignments: string[]) =>
    refused(() => parseScenarioText("topology: {}", "x.yaml", { set: assignments }));

  it("a number without a unit is told what it would mean", () => {
    expect(set("duration=5")).toContain(
      "duration: 5 is out of range\n    hint: must be 1 us to 3600 s; a plain number means nanoseconds",
    );
  });

  it("what is no quantity is told its range", () => {
    expect(set("switch.buffer.total=12MBit/s")).toContain("hint: must be 1 KB to 64 GB");
  });

  it("one fault is told once", () => {
    expect(set("seed=99999999999999999999").match(/is too large/g)).toHaveLength(1);
  });

  it("a hint that is the same for several is given once, below the last", () => {
    const message = set("zzz=1", "abc=2", "topology={hosts: [a], links: [a -- sw], x: 1}");
    expect(message.match(/hint: known fields/g)).toHaveLength(2);
    expect(message).toMatch(
      /^ {2}--set zzz: unknown field\n {2}--set abc: unknown field\n {4}hint: known fields: name, /m,
    );
  });

  it("the length of a list is told as such", () => {
    expect(set("topology={hosts: [a], links: []}")).toContain(
      "topology.links: a list is too short | must be at least 1 long",
    );
  });

  it("an override needs both of its sides, and YAML that ends", () => {
    expect(set("duration")).toContain("--set duration: no value");
    expect(set("=5ms")).toContain("--set =5ms: no field");
    expect(set("traffic=[a")).toMatch(/^--set traffic=\[a: Flow sequence must end with a \] \|/);
  });
});

describe("makeFolder", () => {
  it("makes those on the way, and leaves what is there", () => {
    const folder = join(temporary(), "a/b/c/");
    makeFolder(folder);
    makeFolder(folder);
    expect(statSync(folder).isDirectory()).toBe(true);
  });

  it("says why not", () => {
    const folder = temporary();
    writeFileSync(join(folder, "file"), "");
    expect(refused(() => makeFolder(join(folder, "file")))).toBe(
      `cannot make the folder ${folder}/file: there is a file of this name`,
    );
    expect(refused(() => makeFolder(join(folder, "file/below")))).toBe(
      `cannot make the folder ${folder}/file/below: there is a file where a folder should be`,
    );
  });

  it("ends where the system says that a folder which is there is not", () => {
    expect(refused(() => makeFolder("/proc/weir"))).toContain(
      "cannot make the folder /proc/weir: no folder can be made in /proc: it was removed, or is the kernel's",
    );
    const before = process.cwd();
    const gone = join(temporary(), "gone");
    mkdirSync(gone);
    onTestFinished(() => process.chdir(before));
    process.chdir(gone);
    rmSync(gone, { recursive: true });
    expect(refused(() => makeFolder("weir-results/run"))).toContain(
      "cannot make the folder weir-results: no folder can be made in .: it was removed",
    );
  });
});
