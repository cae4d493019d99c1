/** Experiments under a second reading of the algorithm: what is run again, and what a report shows of it. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { hostFacts } from "../../../src/result/made.js";
import type { LiveStream } from "../../../src/result/report/terminal.js";
import type { Runners } from "../../../src/study/point.js";
import { PaperProgressLine } from "../../cli/paper_progress.js";
import { ALPHA_RESET } from "../../dcqcn/alpha.js";
import { DCQCN_EXPERIMENTS } from "../../dcqcn/experiments.js";
import { summarize } from "../all/summary.js";
import { renderAllMarkdown } from "../all/text.js";
import { documentOf } from "../document.js";
import type { Experiment } from "../experiment.js";
import { writePaper } from "../files.js";
import { type PaperOptions, runExperiment } from "../run.js";
import { renderText } from "../text.js";
import { loadTrial } from "../trial.js";
import { fakeExperiment, fakeOutcome, fakeRunners, invalid, paperOptions } from "./fakes.js";

const root = mkdtempSync(join(tmpdir(), "weir-paper-alternative-"));
afterAll(() => rmSync(root, { recursive: true }));

const kExperiment: Experiment = {
  ...fakeExperiment,
  statements: [
    ...fakeExperiment.statements.slice(0, 2),
    {
      quote: "Both agree.",
      where: "section 3",
      reading: "within 10%",
      checks: [{ quantity: "fast", near: { clock: "model", within: 0.1, margin: 0 } }],
    },
    ...fakeExperiment.statements.slice(3),
    { quote: "Slowly.", where: "section 5", reading: "up to 10 Gb/s", checks: [{ quantity: "slow", max: 10 }] },
  ],
  model: (alternative) => ({ values: { fast: alternative === undefined ? 12 : 6 }, plots: [] }),
  alternative: {
    name: "late start",
    reading: "Flows <start> late.",
    set: ["duration=7s"],
    concerns: ({ duration }) => duration === 8e9,
  },
};

/** 18.4 Gb/s, but of runs of 7 s. */
const kRunners: Runners = {
  ...fakeRunners,
  sim: {
    run: async ({ duration }) => {
      const outcome = fakeOutcome({ clock: "sim", scale: 1 });
      if (duration === 7e9) for (const flow of outcome.result.flows) flow.goodput_bps = 9e9;
      return outcome;
    },
  },
};

let folders = 0;
async function run(own: Partial<PaperOptions> = {}, runners = kRunners) {
  const directory = join(root, String(folders++));
  return { directory, outcome: await runExperiment(kExperiment, runners, paperOptions(directory, own)) };
}

describe("an alternative", () => {
  it("runs again what it concerns, in virtual time and by equations, and is judged by itself", async () => {
    const told: string[] = [];
    const stderr = { isTTY: false, write: (line: string) => told.push(line) > 0 } as unknown as LiveStream;
    const progress = new PaperProgressLine(stderr, "fake");
    const { outcome, directory } = await run({
      clocks: ["wire", "sim", "model"],
      onProgress: (one) => progress.update(one),
    });
    expect(outcome.runs.map(({ clock, trial, alternative }) => [clock, trial, alternative])).toEqual([
      ["wire", "fast", undefined],
      ["wire", "slow", undefined],
      ["sim", "fast", undefined],
      ["sim", "slow", undefined],
      ["sim", "slow", "late start"],
      ["model", "model", undefined],
      ["model", "model", "late start"],
    ]);
    expect(told.map((line) => /\d of 7 \(.*\)/.exec(line)?.[0]).slice(-3)).toEqual([
      "5 of 7 (sim, slow, late start)",
      "6 of 7 (model)",
      "7 of 7 (model, late start)",
    ]);
    expect(outcome.runs[4]?.folder).toBe("sim/late-start/slow");
    expect(existsSync(join(directory, "sim/late-start/slow/result.json"))).toBe(true);
    const rulings = (list: typeof outcome.statements = []) =>
      list.map(({ verdicts }) => verdicts.map(({ ruling }) => ruling));
    expect(rulings(outcome.statements)[4]).toEqual(["falls short", "falls short", "not judged"]);
    expect(rulings(outcome.alternative?.statements)[4]).toEqual(["holds", "not judged"]);
    // Its simulation is held against its model.
    expect(outcome.alternative?.statements[2]?.verdicts[0]?.findings[0]?.required).toBe("6.00 Gb/s +- 0.600 (model)");
    expect(outcome.alternative?.observations.sim?.values).toMatchObject({ fast: 18.4, slow: 9 });
  });

  it("is not judged by where a run that it shares is invalid", async () => {
    const late: Runners = {
      ...kRunners,
      sim: { run: async ({ duration }) => fakeOutcome(duration === 8e9 ? {} : invalid("the host was late")) },
    };
    const { outcome } = await run({}, late);
    expect(outcome.alternative?.statements[0]?.verdicts[0]).toMatchObject({
      ruling: "not judged",
      why: "run fast is invalid; run slow is invalid",
    });
  });

  it("is shown where it comes to something else", async () => {
    const { outcome, directory } = await run({ clocks: ["sim", "model"] });
    const document = documentOf(outcome);
    const text = renderText(document);
    expect(text).toContain(
      "sim, slow, late start: seed 1, valid\nmodel: valid\nmodel, late start: valid\nlate start: another reading, shown where it comes to something else. Flows <start> late.\n",
    );
    expect(text).toMatch(
      /5\. "Slowly\.".*\n.*\n +sim +falls short .*18\.40.*\n +sim +holds +late start:\n +.* 9\.00 Gb\/s/,
    );
    // "It is fast." holds on both clocks by the first, and by the alternative not in the model.
    expect(text.match(/late start:\n/g)?.length).toBe(3);
    expect(text).toMatch(/quantity +sim +model +sim, late start +model, late start\n/);
    await writePaper(directory, outcome, document);
    const read = (name: string) => readFileSync(join(directory, name), "utf8");
    expect(read("report.md")).toContain(
      "**falls short**<br>goodput, slow 18.40 Gb/s (not at most 10.00 Gb/s)<br>late start: **holds**<br>goodput, slow 9.00 Gb/s (at most 10.00 Gb/s) |",
    );
    expect(read("report.html")).toContain('<div class="holds">late start: <strong>holds</strong>');
    expect(read("report.html")).toContain("Flows &lt;start&gt; late.");
    expect(read("figure.svg")).toContain("sim: late start");
    expect(JSON.parse(read("paper.json"))).toMatchObject({
      alternative: { name: "late start", reading: "Flows <start> late." },
      quantities: [
        { values: { sim: 18.4, model: 12 }, alternative: { sim: 18.4, model: 6 } },
        { values: { sim: 18.4 }, alternative: { sim: 9 } },
        { values: { sim: null }, alternative: { sim: null } },
      ],
    });
  });

  it("is told of among all experiments, and does not count there", async () => {
    const { outcome } = await run({ clocks: ["sim", "model"] });
    const clocks = ["sim", "model"] as const;
    const task = { experiment: kExperiment, clocks, references: {}, key: "", seconds: 1 };
    const finished = [{ task, document: documentOf(outcome) }];
    const options = { clocks, seed: null, scale: null, only: [], reference: null, jobs: 1 };
    const facts = { weir: "0", host: hostFacts(), at: "", wall_s: 1, options, left_out: [] };
    const summary = summarize(finished, facts);
    expect(summary.totals.sim).toMatchObject({ statements: 5, hold: 1, us: 3, not_judged: 1 });
    expect(summary.experiments[0]?.statements[4]?.alternative).toEqual({
      name: "late start",
      rulings: { sim: "holds" },
    });
    expect(summary.experiments[0]?.statements[1]).not.toHaveProperty("alternative");
    expect(renderAllMarkdown(summary, finished)).toContain(
      '"Slowly." (section 5) | falls short (late start: holds) | not judged |',
    );
  });
});

describe("alpha reset", () => {
  const own = DCQCN_EXPERIMENTS.filter(({ alternative }) => alternative === ALPHA_RESET);

  it("is of those experiments in which a flow is at line rate before it is marked, or comes back to it", () => {
    expect(own.map(({ id }) => id)).toEqual([
      "dcqcn-fig8",
      "dcqcn-fig10",
      "dcqcn-fig11",
      "dcqcn-fig12",
      "dcqcn-section5.2",
      "dcqcn-increase",
      "dcqcn-fig13",
    ]);
  });

  it("concerns all their trials, and is what newer NICs do", () => {
    for (const { network } of own) {
      for (const trial of network?.trials ?? []) {
        expect(ALPHA_RESET.concerns(loadTrial(trial).scenario)).toBe(true);
      }
      const [first] = network?.trials ?? [];
      if (first === undefined) throw new Error("no trials");
      const { congestion } = loadTrial({ ...first, set: [...first.set, ...ALPHA_RESET.set] }).scenario;
      expect(congestion.parameters).toMatchObject({ alpha_decays_at_line_rate: false });
    }
  });

  it.each(own.filter(({ model }) => model !== undefined).map((one) => [one.id, one] as const))(
    "has other equations: %s",
    async (_, { model }) => {
      const [paper, reset] = [await model?.(), await model?.(ALPHA_RESET)];
      expect(Object.keys(reset?.values ?? {})).toEqual(Object.keys(paper?.values ?? {}));
      expect(reset?.values).not.toEqual(paper?.values);
    },
  );
});
