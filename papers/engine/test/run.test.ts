import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { WeirError } from "../../../src/base/error.js";
import type { Runners } from "../../../src/study/point.js";
import { documentOf } from "../document.js";
import { type Bench, clocksOf, type Experiment } from "../experiment.js";
import { writePaper } from "../files.js";
import { type PaperOptions, type PaperProgress, runExperiment } from "../run.js";
import { renderText } from "../text.js";
import { loadTrial } from "../trial.js";
import { fakeExperiment, fakeOutcome, fakeRunners, invalid, paperOptions } from "./fakes.js";

const directory = mkdtempSync(join(tmpdir(), "weir-paper-"));
afterAll(() => rmSync(directory, { recursive: true }));

let folders = 0;
const run = (own: Partial<PaperOptions> = {}, runners: Partial<Runners> = {}) =>
  runExperiment(fakeExperiment, { ...fakeRunners, ...runners }, paperOptions(join(directory, String(folders++)), own));

describe("runExperiment", () => {
  it("runs every trial on every clock and judges", async () => {
    const seen: PaperProgress[] = [];
    const outcome = await run({ clocks: ["wire", "sim", "model"], onProgress: (one) => seen.push(one) });
    expect(outcome.complete).toBe(true);
    expect(outcome.runs.map(({ clock, trial, valid, scale }) => [clock, trial, valid, scale])).toEqual([
      ["wire", "fast", true, 10],
      ["wire", "slow", true, 10],
      ["sim", "fast", true, 1],
      ["sim", "slow", true, 1],
      ["model", "model", true, 1],
    ]);
    expect(outcome.statements.map(({ verdicts }) => verdicts.map(({ ruling }) => ruling))).toEqual([
      ["holds", "holds", "holds"],
      ["falls short", "falls short", "not judged"],
      ["agrees", "not judged", "not judged"],
      ["not judged", "not judged", "not judged"],
    ]);
    expect(new Set(seen.map(({ number, runs }) => `${number}/${runs}`))).toEqual(
      new Set(["1/5", "2/5", "3/5", "4/5", "5/5"]),
    );
    expect(seen.some(({ clock, done }) => clock === "sim" && done === 0.5)).toBe(true);
  });

  it("gives seed and scale to the scenarios, the scale to the wire only", async () => {
    const scenarios: string[] = [];
    await run(
      { clocks: ["wire", "sim"], seed: 7, scale: 3 },
      {
        wire: {
          run: async ({ seed, scale }) => {
            scenarios.push(`wire ${seed} ${scale}`);
            return fakeOutcome();
          },
        },
        sim: {
          run: async ({ seed, scale, duration }) => {
            scenarios.push(`sim ${seed} ${scale} ${duration}`);
            return fakeOutcome();
          },
        },
      },
    );
    expect(scenarios).toEqual(["wire 7 3", "wire 7 3", "sim 7 10 9700000000", "sim 7 10 8000000000"]);
  });

  it("runs all trials with several seeds in virtual time, and judges medians", async () => {
    const { network } = fakeExperiment;
    const gbps = [9, 30, 11];
    const runs: string[] = [];
    const experiment: Experiment = { ...fakeExperiment, ...(network && { network: { ...network, seeds: 3 } }) };
    const folder = join(directory, "seeds");
    const outcome = await runExperiment(
      experiment,
      {
        ...fakeRunners,
        sim: {
          run: async ({ seed }) => {
            runs.push(String(seed));
            const { flows } = fakeOutcome().result;
            const bps = (gbps[seed - 7] as number) * 1e9;
            return fakeOutcome({ clock: "sim", scale: 1, flows: flows.map((flow) => ({ ...flow, goodput_bps: bps })) });
          },
        },
      },
      paperOptions(folder, { clocks: ["wire", "sim"], seed: 7 }),
    );
    expect(runs).toEqual(["7", "7", "8", "8", "9", "9"]);
    expect(outcome.runs.map(({ clock, trial }) => `${clock}/${trial}`)).toEqual([
      "wire/fast",
      "wire/slow",
      ...[1, 2, 3].flatMap((seed) => [`sim/fast-seed${seed}`, `sim/slow-seed${seed}`]),
    ]);
    expect(existsSync(join(folder, "sim/slow-seed3/result.json"))).toBe(true);
    const sim = outcome.statements[0]?.verdicts[1];
    expect(sim).toMatchObject({
      ruling: "holds",
      findings: [{ measured: expect.stringContaining("11.00 Gb/s, with 3 seeds 9.00 to 30.00") }],
    });
    const document = documentOf(outcome);
    // A quantity that never happens has a median as well.
    expect(document.quantities[2]).toMatchObject({ values: { sim: null }, seeds: { sim: [null, null, null] } });
    expect(renderText(document)).toContain("what never happens not in the run, with each of 3 seeds");
    expect(document.quantities[0]).toMatchObject({ values: { sim: 11 }, seeds: { sim: [9, 30, 11] } });
    expect(renderText(document)).toContain("11.00 Gb/s, with 3 seeds 9.00 to 30.00");
  });

  it("keeps repeats of a run different, whatever the seed", () => {
    const repeat = { name: "third", file: "qcn/netfpga-1-source.yaml", set: ["seed=3"] };
    expect(loadTrial(repeat).scenario.seed).toBe(3);
    expect(loadTrial(repeat, { seed: 7 }).scenario.seed).toBe(9);
  });

  it("does not judge by a run that is invalid, and shows its figures", async () => {
    const runners = { sim: { run: async () => fakeOutcome(invalid("the host was late")) } };
    const outcome = await run({}, runners);
    expect(outcome.complete).toBe(false);
    const [verdict] = outcome.statements[0]?.verdicts ?? [];
    expect(verdict).toMatchObject({
      ruling: "not judged",
      why: "run fast is invalid; run slow is invalid",
    });
    expect(verdict?.findings[0]?.measured).toBe("goodput, fast 18.40 Gb/s");
    expect(renderText(documentOf(outcome))).toContain("sim, fast: seed 1, INVALID (the host was late)");
  });

  it("ends when it is stopped: what was done stands, the rest was not run", async () => {
    const stop = new AbortController();
    let runs = 0;
    const outcome = await run(
      { clocks: ["sim", "model"], signal: stop.signal },
      {
        sim: {
          run: async () => {
            runs++;
            stop.abort(new Error("stopped by SIGINT"));
            return fakeOutcome({ until_s: 1.5, ...invalid("stopped at 1.5 s of 9.7 s") });
          },
        },
      },
    );
    expect(runs).toBe(1);
    expect(outcome.complete).toBe(false);
    expect(outcome.observations.sim).toBeUndefined();
    expect(outcome.runs.map(({ complete, reasons }) => [complete, ...reasons])).toEqual([
      [false, "stopped"],
      [false, "not run"],
      [false, "not run"],
    ]);
    expect(outcome.statements[0]?.verdicts[0]?.why).toBe("run fast is incomplete; run slow is incomplete");
  });

  it("goes on after what the user could mend, and says what it was", async () => {
    const runLab = async () => {
      throw new WeirError("no user namespaces");
    };
    const outcome = await run({ clocks: ["wire", "sim"] }, { wire: { run: runLab } });
    expect(outcome.complete).toBe(false);
    expect(outcome.statements[0]?.verdicts.map(({ ruling }) => ruling)).toEqual(["not judged", "holds"]);
    expect(outcome.runs[0]?.reasons).toEqual(["no user namespaces"]);
    const broken = run({}, { sim: { run: () => Promise.reject(new TypeError("a bug")) } });
    await expect(broken).rejects.toThrow("a bug");
  });
});

describe("a bench in the place of scenarios on the wire", () => {
  const withBench = (bench: Bench["run"], own: Partial<PaperOptions> = {}) => {
    const { network } = fakeExperiment;
    const experiment: Experiment = {
      ...fakeExperiment,
      ...(network && { network: { ...network, clocks: ["sim"] } }),
      bench: { seconds: 5, run: bench },
    };
    const options = paperOptions(join(directory, String(folders++)), { clocks: ["wire", "sim"], ...own });
    expect(clocksOf(experiment)).toEqual(["wire", "sim", "model"]);
    return runExperiment(experiment, fakeRunners, options);
  };
  const observation = { values: { fast: 11 }, plots: [] };

  it("is one run, which has a folder and no seed", async () => {
    const seen: PaperProgress[] = [];
    const outcome = await withBench(
      async ({ directory: own, onProgress }) => {
        expect(existsSync(own)).toBe(true);
        onProgress(0.5);
        return { observation, doubts: [] };
      },
      { onProgress: (one) => seen.push(one) },
    );
    expect(outcome.complete).toBe(true);
    expect(outcome.runs.map(({ clock, trial }) => `${clock} ${trial}`)).toEqual(["wire bench", "sim fast", "sim slow"]);
    expect(outcome.runs[0]).toMatchObject({ valid: true, folder: "wire/bench" });
    expect(renderText(documentOf(outcome))).toContain("wire, bench: valid\n");
    expect(seen[1]).toMatchObject({ clock: "wire", trial: "bench", done: 0.5, number: 1, runs: 3 });
    expect(outcome.statements[0]?.verdicts.map(({ ruling }) => ruling)).toEqual(["holds", "holds"]);
  });

  it("is not judged by when it has doubts, and shows its figures", async () => {
    const outcome = await withBench(async () => ({ observation, doubts: ["others were busy"] }));
    expect(outcome.complete).toBe(false);
    expect(renderText(documentOf(outcome))).toContain("wire, bench: INVALID (others were busy)");
    expect(outcome.statements[0]?.verdicts[0]).toMatchObject({
      ruling: "not judged",
      why: "run bench is invalid",
      findings: [{ measured: "goodput, fast 11.00 Gb/s" }],
    });
  });

  it("says what it lacks, and the other clocks go on", async () => {
    const outcome = await withBench(async () => {
      throw new WeirError("iperf3 not found", { hint: "apt install iperf3" });
    });
    expect(outcome.runs[0]).toMatchObject({
      complete: false,
      reasons: ["iperf3 not found; apt install iperf3"],
    });
    expect(outcome.statements[0]?.verdicts.map(({ ruling }) => ruling)).toEqual(["not judged", "holds"]);
    await expect(withBench(() => Promise.reject(new TypeError("a bug")))).rejects.toThrow("a bug");
  });

  it("is stopped like a run, or not begun", async () => {
    const stop = new AbortController();
    const stopped = await withBench(
      async ({ signal }) => {
        stop.abort();
        signal.throwIfAborted();
        return { observation, doubts: [] };
      },
      { signal: stop.signal },
    );
    expect(stopped.runs[0]?.reasons).toEqual(["stopped"]);
    const never = await withBench(async () => ({ observation, doubts: [] }), { signal: stop.signal });
    expect(never.runs[0]?.reasons).toEqual(["not run"]);
  });
});

describe("what an experiment leaves", () => {
  it("is a page, Markdown, a picture, data, and the runs", async () => {
    const folder = join(directory, "all");
    const outcome = await runExperiment(
      fakeExperiment,
      fakeRunners,
      paperOptions(folder, { clocks: ["sim", "model"] }),
    );
    const page = readFileSync(await writePaper(folder, outcome), "utf8");
    const read = (name: string) => readFileSync(join(folder, name), "utf8");
    const svg = read("figure.svg");
    expect(page).toContain(svg);
    expect(page).not.toContain("<script");
    expect(page).toContain("goodput of &lt;two&gt; trials");
    expect(page).toContain("<q>It is fast.</q>");
    expect(page).toContain('<td class="name short"><strong>falls short</strong>');
    expect(page).toContain("It never does.");
    expect(page).not.toContain("Partial.");
    expect(svg).toContain("Goodput &lt;b&gt;");
    expect(read("report.md")).toContain('| "It happens \\| soon." (section 2) | within 1 s | **falls short**<br>');
    expect(read("report.md")).toContain("![goodput of <two> trials](figure.svg)");
    expect(JSON.parse(read("paper.json"))).toEqual(JSON.parse(JSON.stringify(documentOf(outcome))));
    for (const name of ["result.json", "series.json", "scenario.json", "report.html"]) {
      expect(existsSync(join(folder, "sim/slow", name)), name).toBe(true);
    }
  });

  it("has what clocks and references share first in the picture, and how far they are apart", async () => {
    const folder = join(directory, "overlay");
    const references = { rate: [{ label: "ns3", values: { x: [0, 2], y: [1, 1] } }] };
    const options = paperOptions(folder, { clocks: ["sim", "model"], references });
    const outcome = await runExperiment(fakeExperiment, fakeRunners, options);
    const page = readFileSync(await writePaper(folder, outcome), "utf8");
    const svg = readFileSync(join(folder, "figure.svg"), "utf8");
    expect(svg.indexOf("all clocks")).toBeGreaterThan(0);
    expect(svg.indexOf("all clocks")).toBeLessThan(svg.indexOf("sim: discrete events"));
    expect(page).toContain("<h2>Mean absolute difference</h2>");
    expect(readFileSync(join(folder, "report.md"), "utf8")).toContain(
      "| Rate | time, s 0 to 2 | sim, model | 1.00 Gb/s |",
    );
    expect(renderText(documentOf(outcome))).toMatch(/Rate +time, s 0 to 2 +model, ns3 +2\.00 Gb\/s/);
    expect(documentOf(outcome).traces).toMatchObject([
      {
        name: "rate",
        unit: "Gb/s",
        x_range: [0, 2],
        curves: [{ source: "sim" }, { source: "model" }, { source: "ns3", reference: true }],
        differences: [{ between: ["sim", "model"], mean_absolute: 1 }, { mean_absolute: 1 }, { mean_absolute: 2 }],
      },
    ]);
  });

  it("says that it is partial where it is", async () => {
    const folder = join(directory, "partial");
    const runSimulation = async () => fakeOutcome(invalid("the host was late"));
    const outcome = await runExperiment(
      fakeExperiment,
      { ...fakeRunners, sim: { run: runSimulation } },
      paperOptions(folder),
    );
    const page = readFileSync(await writePaper(folder, outcome), "utf8");
    expect(page).toContain("<strong>Partial.</strong> 2 of 2 runs did not come to a valid end.");
    expect(readFileSync(join(folder, "report.md"), "utf8")).toContain("**Partial: 2 of 2 runs");
  });

  it("has a document with every quantity and statement, null for what did not happen", async () => {
    const outcome = await run({ clocks: ["sim", "model"] });
    const document = documentOf(outcome);
    expect(document).toMatchObject({
      experiment: "fake-fig1",
      paper: { name: "Fake" },
      place: "figure 1",
      clocks: ["sim", "model"],
      complete: true,
    });
    expect(document.quantities).toEqual([
      { name: "fast", label: "goodput, fast", unit: "Gb/s", values: { sim: 18.4, model: 12 } },
      { name: "slow", label: "goodput, slow", unit: "Gb/s", values: { sim: 18.4 } },
      { name: "never", label: "what never happens", unit: "s", values: { sim: null } },
    ]);
    expect(document.statements[1]).toMatchObject({
      quote: "It happens | soon.",
      where: "section 2",
      reading: "within 1 s",
      verdicts: [
        { clock: "sim", ruling: "falls short", findings: [{ measured: "what never happens not in the run" }] },
        { clock: "model", ruling: "not judged" },
      ],
    });
    expect(document.runs[0]).toMatchObject({ clock: "sim", trial: "fast", valid: true, folder: "sim/fast" });
  });
});
