import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readReferenced } from "../../src/scenario/file_references.js";
import { identityOf, type Plan, planText, readPlan, scenarioOf } from "../../src/study/plan.js";
import { folder, kScenario, plan, writeSweep } from "./fixture.js";

const kSweep = { vary: { "switch.ecn.kmax": ["100KB", "200KB"] }, seeds: [3, 4] };
const ids = ({ points }: Plan) => points.map(({ id }) => id);

describe("a plan", () => {
  it("numbers the points and is the same every time", () => {
    const file = writeSweep(folder(), kSweep);
    const made = plan(file);
    expect(made.points.map(({ index, set, seed }) => [index, set["switch.ecn.kmax"], seed])).toEqual([
      [0, "100KB", 3],
      [1, "100KB", 4],
      [2, "200KB", 3],
      [3, "200KB", 4],
    ]);
    expect(new Set(ids(made)).size).toBe(4);
    expect(planText(plan(file))).toBe(planText(made));
    expect(ids(plan(writeSweep(folder(), kSweep)))).toEqual(ids(made));
  });

  it("counts seeds from the scenario's own on", () => {
    const file = writeSweep(folder(), { seeds: 3 }, `seed: 7\n${kScenario}`);
    expect(plan(file).points.map(({ seed }) => seed)).toEqual([7, 8, 9]);
  });

  it("gives another id for other code, another value or another text, and none for comments, the seed or where a value is from", () => {
    const directory = folder();
    const before = ids(plan(writeSweep(directory, kSweep)));
    expect(ids(plan(join(directory, "sweep.yaml"), "0.0.1+test")).filter((id) => before.includes(id))).toEqual([]);
    const other = plan(writeSweep(directory, kSweep, kScenario.replace("5KB", "6KB")));
    expect(ids(other).filter((id) => before.includes(id))).toEqual([]);
    const same = kScenario.replace("# A comment.", "# Another one.\nseed: 99");
    expect(ids(plan(writeSweep(directory, kSweep, same)))).toEqual(before);
    const written = kScenario.replace("200KB", "100KB");
    expect(ids(plan(writeSweep(directory, { seeds: [3, 4] }, written)))).toEqual(before.slice(0, 2));
  });

  it("gives another id where points skip what repeats itself, which is in virtual time", () => {
    const directory = folder();
    const idsOn = (clock: string, fast_forward?: string | number) =>
      ids(plan(writeSweep(directory, { ...kSweep, on: [clock], ...(fast_forward !== undefined && { fast_forward }) })));
    const [exact, fast] = [idsOn("sim"), idsOn("sim", "auto")];
    expect(fast.filter((id) => exact.includes(id))).toEqual([]);
    expect(idsOn("sim", "3%")).toEqual(fast);
    expect(idsOn("sim", "5%")).not.toEqual(fast);
    expect(idsOn("sim", "off")).toEqual(exact);
    expect(idsOn("wire", "auto")).toEqual(idsOn("wire"));
    expect(() => idsOn("sim", "60%")).toThrow("fast_forward: 60% is out of range");
  });

  it("does not change when the scenario's file does", () => {
    const directory = folder();
    const file = join(directory, "points.jsonl");
    writeFileSync(file, planText(plan(writeSweep(directory, kSweep))));
    writeFileSync(join(directory, "scenario.yaml"), "broken");
    const { study, points } = readPlan(file);
    const point = points[2];
    if (point === undefined) throw new Error("no third point");
    const { scenario } = scenarioOf(identityOf(study, point), directory);
    expect(scenario).toMatchObject({ name: "incast", seed: 3, switches: [{ ecn: { kmin: 5000, kmax: 200_000 } }] });
  });

  it("carries files that the scenario refers to, and knows them by what is in them", () => {
    const flows = (bytes: number) => `src,dst,size_bytes,start_s\nh1,r,${bytes},0\nh2,r,${bytes},0.001\n`;
    const scenario = `${kScenario.slice(0, kScenario.indexOf("traffic:"))}transport: { type: rc }
traffic:
  - { pattern: list, csv: lists/a.csv }
  - { pattern: poisson, load: 10%, sizes: { csv: sizes.csv } }
`;
    const directory = folder();
    mkdirSync(join(directory, "lists"));
    const list = join(directory, "lists/a.csv");
    writeFileSync(list, flows(1000));
    writeFileSync(join(directory, "sizes.csv"), "size_bytes,cdf\n1000,0\n2000,1\n");
    const file = writeSweep(directory, { seeds: [1] }, scenario);
    const before = plan(file);
    writeFileSync(list, flows(1001));
    const after = plan(file);
    expect(ids(after)).not.toEqual(ids(before));
    expect(before.study.scenarios[0]?.files).toEqual({
      "lists/a.csv": flows(1000),
      "sizes.csv": readFileSync(join(directory, "sizes.csv"), "utf8"),
    });
    const point = before.points[0] as Plan["points"][number];
    expect(JSON.stringify(identityOf(before.study, point))).toMatch(
      /"csv":"[0-9a-f]{64}\.csv".*"csv":"[0-9a-f]{64}\.csv"/,
    );
  });

  it("carries message graphs that are text, and refuses those that are not", () => {
    const scenario = (file: string) => `${kScenario.slice(0, kScenario.indexOf("traffic:"))}transport: { type: rc }
traffic:
  - { pattern: graph, file: ${file} }
`;
    const directory = folder();
    const text = "num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 0\n}\nrank 1 {\nl1: recv 8b from 0 tag 0\n}\n";
    writeFileSync(join(directory, "a.goal"), text);
    const { study, points } = plan(writeSweep(directory, { seeds: [1] }, scenario("a.goal")));
    expect(study.scenarios[0]?.files).toEqual({ "a.goal": text });
    expect(JSON.stringify(identityOf(study, points[0] as Plan["points"][number]))).toMatch(
      /"file":"[0-9a-f]{64}\.goal"/,
    );
    writeFileSync(join(directory, "b.bin"), Buffer.from([0x80, 0xff, 0, 1]));
    expect(() => readReferenced(join(directory, "b.bin"))).toThrow(/b\.bin: plans carry files as text, .* binary/);
    writeFileSync(join(directory, "c.0.et"), "text");
    expect(() => readReferenced(join(directory, "c.0.et"))).toThrow(/c\.0\.et: plans carry files as text/);
  });

  const errorOf = (spec: object, scenario = kScenario): string => {
    try {
      plan(writeSweep(folder(), spec, scenario));
      return "";
    } catch (error) {
      return (error as Error).message;
    }
  };

  it("names the axis and the value that are wrong, each once", () => {
    const text = errorOf({
      vary: { "switch.ecn.kmax": ["100KB", "80 apples", "1KB"], duration: ["1ms", "2ms"] },
      seeds: 5,
    });
    expect(text.split("\n").filter((line) => /^ {2}\S/.test(line))).toEqual([
      expect.stringMatching(/^ {2}at switch\.ecn\.kmax=80 apples: switch\.ecn\.kmax: 80 apples: /),
      expect.stringMatching(
        /^ {2}at switch\.ecn\.kmax=1KB, duration=1ms, and 1 more: switch\.ecn\.kmin: 5 KB is greater /,
      ),
    ]);
  });

  it("takes no congestion control of a library, whose content it would not know", () => {
    const own = `${kScenario}congestion: { algorithm: library, library: { file: mine.so } }\n`;
    expect(() => plan(writeSweep(folder(), { seeds: 1 }, own))).toThrow(
      "congestion.algorithm: library is of this machine",
    );
  });

  it("does not blame the values for what is wrong in the scenario, and none where a path leads nowhere", () => {
    const bad = kScenario.replace("to: r", "to: nobody");
    expect(errorOf({ vary: { duration: ["1ms", "2ms"] } }, bad)).toMatch(/^sweep \S+: traffic\.0\.to: /);
    expect(errorOf({ vary: { "name.of.it": ["x"] } })).toMatch(/name\.of\.it="x": name has no fields/);
  });
});

describe("a plan's file", () => {
  const file = () => {
    const directory = folder();
    const path = join(directory, "points.jsonl");
    const text = planText(plan(writeSweep(directory, kSweep)));
    return { path, text, lines: text.trimEnd().split("\n") };
  };

  it("is one JSON object per line: the sweep, then the points", () => {
    const { lines } = file();
    const [sweep, ...points] = lines.map((line) => JSON.parse(line));
    expect(sweep).toMatchObject({ weir_sweep: 2, name: "sweep", code: "0.0.0+test", points: 4 });
    expect(points[3]).toEqual({
      index: 3,
      id: expect.any(String),
      clock: "sim",
      set: { "switch.ecn.kmax": "200KB" },
      seed: 4,
    });
  });

  it("is read back as it was", () => {
    const { path, text } = file();
    writeFileSync(path, text);
    expect(planText(readPlan(path))).toBe(text);
  });

  it.each([
    ["cut off at a line", (lines: string[]) => lines.slice(0, -1).join("\n"), /has 3 of 4 points/],
    ["cut off in a line", (lines: string[]) => lines.join("\n").slice(0, -9), /line 5 is not JSON/],
    ["of something else", () => '{"a":1}\n', /line 1: weir_sweep/],
    [
      "out of its folder",
      (lines: string[]) => lines.join("\n").replace('"seed":3}', '"seed":3,"folder":"a/../../b"}'),
      /line 2: folder/,
    ],
    [
      "of a scenario that is not there",
      (lines: string[]) => lines.join("\n").replace('"seed":3}', '"seed":3,"scenario":1}'),
      /point 0 is of a scenario/,
    ],
    ["out of order", ([sweep, a, b, ...rest]: string[]) => [sweep, b, a, ...rest].join("\n"), /not in order/],
  ])("is refused when it is %s", (_, change, message) => {
    const { path, lines } = file();
    writeFileSync(path, change(lines));
    expect(() => readPlan(path)).toThrow(message);
  });
});
