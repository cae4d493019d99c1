import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { tableFromIPC } from "@uwdata/flechette";
import { tableFromIPC as apacheTableFromIPC } from "apache-arrow";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { csvLine } from "../../src/base/csv_line.js";
import { writeSeries } from "../../src/clocks/series_files.js";
import type { Series } from "../../src/result/result.js";
import { sampleSeries } from "../result/report/sample.js";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "weir-series-"));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const kSeries: Series = {
  interval_s: 0.1,
  time_s: [0.1, 0.2, 0.1 + 0.2],
  flows: {
    "incast/h1": { rate_bps: [40e9, 1.5, 0], alpha: [1, 1 / 3, 5e-7], goodput_bps: [1, 2] },
    'b, the "second"': { rate_bps: [1, 2, 3], target_rate_bps: [4, 5, 6], alpha: [0, 0, 0], goodput_bps: [7, 8, 9] },
  },
  queues: { "sw:r:3": { bytes: [0, 1106, 2212], max_bytes: [0, 1106, 3318] } },
  pauses: { "sw:h1:3": [0, 2, 0] },
  marks: {},
};

/** The rows that the flows above come to; null where nothing was sampled. */
const kFlowRows = [
  { time_s: 0.1, flow: "incast/h1", rate_bps: 40e9, target_rate_bps: null, alpha: 1, goodput_bps: 1 },
  { time_s: 0.2, flow: "incast/h1", rate_bps: 1.5, target_rate_bps: null, alpha: 1 / 3, goodput_bps: 2 },
  { time_s: 0.1 + 0.2, flow: "incast/h1", rate_bps: 0, target_rate_bps: null, alpha: 5e-7, goodput_bps: null },
  { time_s: 0.1, flow: 'b, the "second"', rate_bps: 1, target_rate_bps: 4, alpha: 0, goodput_bps: 7 },
  { time_s: 0.2, flow: 'b, the "second"', rate_bps: 2, target_rate_bps: 5, alpha: 0, goodput_bps: 8 },
  { time_s: 0.1 + 0.2, flow: 'b, the "second"', rate_bps: 3, target_rate_bps: 6, alpha: 0, goodput_bps: 9 },
];

describe("writeSeries", () => {
  it("writes CSV: a row per sample, quoted names, numbers that read back the same", () => {
    const out = join(directory, "new", "csv");
    const files = writeSeries(out, kSeries, "csv");
    expect(files).toEqual(["flows", "queues", "pauses"].map((name) => join(out, `${name}.csv`)));
    expect(files.map((file) => readFileSync(file, "utf8"))).toEqual([
      `time_s,flow,rate_bps,target_rate_bps,alpha,goodput_bps
0.1,incast/h1,40000000000,,1,1
0.2,incast/h1,1.5,,0.3333333333333333,2
0.30000000000000004,incast/h1,0,,5e-7,
0.1,"b, the ""second""",1,4,0,7
0.2,"b, the ""second""",2,5,0,8
0.30000000000000004,"b, the ""second""",3,6,0,9
`,
      "time_s,queue,bytes,max_bytes\n0.1,sw:r:3,0,0\n0.2,sw:r:3,1106,1106\n0.30000000000000004,sw:r:3,2212,3318\n",
      "time_s,queue,pauses\n0.1,sw:h1:3,0\n0.2,sw:h1:3,2\n0.30000000000000004,sw:h1:3,0\n",
    ]);
  });

  it("writes Arrow files with the same rows, names as a dictionary", () => {
    const files = writeSeries(join(directory, "arrow"), kSeries, "arrow");
    expect(files.map((file) => basename(file))).toEqual(["flows.arrow", "queues.arrow", "pauses.arrow"]);
    const bytes = readFileSync(files[0] as string);
    // The file format, not the stream: the magic at both ends.
    expect([bytes.subarray(0, 8).toString(), bytes.subarray(-6).toString()]).toEqual(["ARROW1\0\0", "ARROW1"]);
    // The library that wrote it; others are asked below.
    expect(tableFromIPC(bytes).toArray()).toEqual(kFlowRows);
  });

  it("writes Arrow files that Apache's own library reads", () => {
    const [file = ""] = writeSeries(join(directory, "apache"), kSeries, "arrow");
    const table = apacheTableFromIPC(readFileSync(file));
    expect(table.schema.fields.map(({ type }) => String(type))).toEqual([
      "Float64",
      "Dictionary<Int32, Utf8>",
      ...["Float64", "Float64", "Float64", "Float64"],
    ]);
    expect(table.toArray().map((row) => row.toJSON())).toEqual(kFlowRows);
  });

  it.each(["csv", "arrow"] as const)("writes the same bytes again (%s), also past a flush of rows", (format) => {
    const series = sampleSeries(3, 7000);
    const [first, second] = ["a", "b"].map((name) => writeSeries(join(directory, format + name), series, format));
    expect(first?.map((file) => basename(file, `.${format}`))).toEqual(["flows", "queues", "pauses", "cnps", "marks"]);
    expect(first?.map((file) => readFileSync(file).toString("hex"))).toEqual(
      second?.map((file) => readFileSync(file).toString("hex")),
    );
    if (format === "csv") {
      const lines = readFileSync(first?.[0] ?? "", "utf8").split("\n");
      expect(lines).toHaveLength(1 + 3 * 7000 + 1);
      expect(lines[10_001]?.startsWith(`${series.time_s[3000]},incast.2,`)).toBe(true);
    }
  });

  it("writes nothing for a run without samples", () => {
    expect(writeSeries(join(directory, "none"), { interval_s: 1, time_s: [], flows: {}, queues: {} }, "csv")).toEqual(
      [],
    );
  });
});

describe("csvLine", () => {
  it("quotes commas, quotes and line breaks, and nothing else", () => {
    expect(csvLine(["a b", "c,d", 'e"f', "g\nh", 1e21, -0.5, undefined])).toBe('a b,"c,d","e""f","g\nh",1e+21,-0.5,\n');
  });
});
