/** The queue of a 20 to 1 incast: what ns-3 is said to have measured, the model of DCTCP, and what is varied. */
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import { itUnless, nativeObstacle } from "../../../test/obstacles.js";
import type { Trial } from "../../engine/experiment.js";
import { readReferences } from "../../engine/reference.js";
import { loadTrial } from "../../engine/trial.js";
import { kNs3, lengthsOf } from "../incast_queue.js";
import { DCQCN_QUEUE_20TO1 } from "../queue_20to1.js";
import { DCQCN_FIGURE_19, dctcpModel } from "../queue_distribution.js";
import { kVariations } from "../queue_variations.js";

const kReferences = fileURLToPath(new URL("../reference", import.meta.url));
const kFiles: Readonly<Record<string, string>> = {
  "HPCC-ns3": "hpcc-ns3",
  "HPCC-ns3, R_HAI = R_AI": "hpcc-ns3-hai40",
  "ns3-rdma": "ns3-rdma",
};
const run = async (trial: Trial, ...set: string[]) =>
  runSimulation(loadTrial({ ...trial, set: [...trial.set, ...set] }).scenario, {
    signal: new AbortController().signal,
  });

describe("ns-3's queue", () => {
  const found = readReferences(kReferences, [DCQCN_FIGURE_19], [DCQCN_FIGURE_19]).get("dcqcn-fig19")?.queue_dcqcn ?? [];

  it.each(kNs3)("$label has the percentiles of its distribution", ({ label, p50, p95, p99, max }) => {
    const { x, y } = found.find((one) => one.label === kFiles[label])?.values ?? { x: [], y: [] };
    const reaches = (part: number) => x[y.findIndex((at) => at >= part)];
    // Files have five digits.
    expect(reaches(0.5)).toBeCloseTo(p50, 2);
    expect(reaches(0.95)).toBeCloseTo(p95, 2);
    expect(reaches(0.99)).toBeCloseTo(p99, 2);
    expect(x.at(-1)).toBeCloseTo(max, 2);
    expect(y.at(-1)).toBe(1);
  });
});

describe("the analysis of DCTCP", () => {
  it("has K + N packets of 1,082 bytes, and a swing of half the root of 2 N (C RTT + K)", () => {
    const { top, swing } = dctcpModel();
    expect(top).toBeCloseTo(160 + 20 * 1.082, 3);
    // C RTT: 4 us and two packets of 1,106 bytes on the link.
    const pipe = 2 + (40e9 * 4e-6) / 8 / 1106;
    expect(swing).toBeCloseTo((1.082 * Math.sqrt(40 * (pipe + 160 / 1.082))) / 2, 6);
  });

  itUnless(nativeObstacle(), "is what the simulator does", async () => {
    const dctcp = DCQCN_FIGURE_19.network?.trials.find(({ name }) => name === "dctcp") as Trial;
    const { result } = await run(dctcp, "duration=40ms", "warmup=20ms");
    const { top, swing } = dctcpModel();
    const { p50, p95, max } = lengthsOf({ result });
    expect(max / top).toBeCloseTo(1, 1);
    expect(p95 / top).toBeCloseTo(1, 1);
    expect(p50).toBeGreaterThan(top - swing);
    expect(result.frames).toMatchObject({ dropped: 0, missing: 0 });
  });
});

describe("variations of the 20 to 1 incast", () => {
  it("differ from table 14, each in another way", () => {
    const scenarios = (DCQCN_QUEUE_20TO1.network?.trials ?? []).map((trial) =>
      JSON.stringify(loadTrial(trial).scenario),
    );
    expect(new Set(scenarios).size).toBe(kVariations.length);
  });

  it("runs two of them on the wire", () => {
    const wire = DCQCN_QUEUE_20TO1.network?.trials.filter(({ clocks }) => clocks === undefined);
    expect(wire?.map(({ name }) => name)).toEqual(["base", "pmax-10"]);
  });

  itUnless(nativeObstacle(), "leave a run with a larger Pmax below Kmax, and one without beyond", async () => {
    const trial = (name: string) => DCQCN_QUEUE_20TO1.network?.trials.find((one) => one.name === name) as Trial;
    const base = lengthsOf(await run(trial("base")));
    const steep = lengthsOf(await run(trial("pmax-10")));
    expect(base.p95).toBeGreaterThan(200);
    expect(steep.max).toBeLessThan(150);
  });
});
