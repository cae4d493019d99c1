import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { WeirError } from "../../../src/base/error.js";
import type { Experiment } from "../experiment.js";
import { readReferences } from "../reference.js";
import { fakeExperiment } from "./fakes.js";

const root = mkdtempSync(join(tmpdir(), "weir-reference-"));
afterAll(() => rmSync(root, { recursive: true }));

const { traces: _, ...untraced } = fakeExperiment;
const kAll: readonly Experiment[] = [
  fakeExperiment,
  { ...fakeExperiment, id: "fake-fig2" },
  { ...untraced, id: "fake-fig3" },
];

let folders = 0;
function folder(files: Readonly<Record<string, string>>): string {
  const directory = join(root, String(folders++));
  mkdirSync(directory);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), text);
  }
  return directory;
}
const read = (directory: string) => readReferences(directory, kAll, [fakeExperiment]);

describe("references", () => {
  it("are curves by experiment and trace, each with the name of its file", () => {
    const directory = folder({
      "fake-fig1/rate/ns3.csv": "time,rate\n0,1.5\n# a remark\n1e-1,-2\n",
      "fake-fig1/rate/htsim.csv": "t, r\n0, 1\n1, 2\n",
      // This experiment is not asked for.
      "fake-fig2/rate/ns3.csv": "nonsense",
    });
    const found = read(directory);
    expect([...found.keys()]).toEqual(["fake-fig1"]);
    expect(found.get("fake-fig1")).toEqual({
      rate: [
        { label: "htsim", values: { x: [0, 1], y: [1, 2] } },
        { label: "ns3", values: { x: [0, 0.1], y: [1.5, -2] } },
      ],
    });
  });

  const kCsv = "fake-fig1/rate/a.csv";
  const kExpected = "a header line, then lines of two numbers: time, s; rate, Gb/s";
  it.each([
    [
      "an unknown experiment",
      { "fake-fig11/rate/a.csv": "" },
      "fake-fig11 is no experiment",
      "did you mean fake-fig1?",
    ],
    ["an experiment without traces", { "fake-fig3/rate/a.csv": "" }, "fake-fig3 has no traces", "fake-fig1, fake-fig2"],
    ["an unknown trace", { "fake-fig1/rat/a.csv": "" }, "rat is no trace of fake-fig1", "known: rate, unseen"],
    [
      "a file where folders are",
      { "notes.txt": "" },
      "notes.txt: is not a folder",
      "/<experiment>/<trace>/<label>.csv",
    ],
    [
      "a file where traces are",
      { "fake-fig1/a.csv": "" },
      "a.csv: is not a folder",
      "traces of fake-fig1: rate, unseen",
    ],
    ["another kind of file", { "fake-fig1/rate/a.txt": "" }, "a.txt: is no CSV file", kExpected],
    ["a folder of that name", { "fake-fig1/rate/a.csv/b": "" }, "a.csv: is no CSV file", kExpected],
    ["the name of a clock", { "fake-fig1/rate/sim.csv": "" }, "sim is the name of a clock", "ns3.csv"],
    ["an empty folder", {}, "is empty", "<experiment>/<trace>/<label>.csv"],
    ["an empty file", { [kCsv]: "" }, "a.csv: there are no rows", "a header, then rows"],
    ["no header", { [kCsv]: "0,1\n1,2\n2,3\n" }, "a.csv:1: two numbers instead of a header line", kExpected],
    ["one point", { [kCsv]: "x,y\n0,1\n" }, "a.csv: one point is no curve", kExpected],
    ["a third column", { [kCsv]: "x,y,z\n0,1,2\n" }, "a.csv:1: 3 columns instead of 2", kExpected],
    [
      "a row that is too long",
      { [kCsv]: "x,y\n0,1\n1,2,3\n" },
      "a.csv: is not CSV: Invalid Record Length: expect 2, got 3 on line 3",
      "",
    ],
    ["a word", { [kCsv]: "x,y\n0,1\n\n1,fast\n" }, 'a.csv:4: column y: "fast" is not a number', kExpected],
    ["a hole", { [kCsv]: "x,y\n0,1\n,2\n" }, "a.csv:3: column x: nothing is not a number", kExpected],
    ["no finite number", { [kCsv]: "x,y\n0,Infinity\n" }, "a.csv", ""],
    ["a step back", { [kCsv]: "x,y\n0,1\n2,1\n2,3\n" }, "a.csv:4: column x: 2 is not more than 2 before it", kExpected],
  ])("do not allow %s", (_what, files, message, hint) => {
    const directory = folder(files as Record<string, string>);
    let thrown: unknown;
    try {
      read(directory);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(WeirError);
    expect((thrown as WeirError).message).toContain(directory);
    expect((thrown as WeirError).message).toContain(message);
    expect((thrown as WeirError).hint ?? "").toContain(hint);
  });

  it("are in a folder that is there", () => {
    expect(() => read(join(root, "nowhere"))).toThrow("nowhere: no such folder");
  });
});
