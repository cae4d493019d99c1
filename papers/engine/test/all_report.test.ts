/** Choice of the experiments that `weir paper all` takes, and its report. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { hostFacts } from "../../../src/result/made.js";
import { writeAll } from "../all/files.js";
import { type Finished, type Summary, summarize } from "../all/summary.js";
import { planTasks, selectExperiments, type Task } from "../all/task.js";
import { renderAllText } from "../all/text.js";
import { documentOf, type PaperDocument } from "../document.js";
import { CLOCKS, type Experiment } from "../experiment.js";
import { writePaper } from "../files.js";
import { paperMade } from "../made.js";
import { runExperiment } from "../run.js";
import { kAllFakes } from "./all_fakes.js";
import { fakeExperiment, fakeOutcome, fakeRunners, invalid, paperOptions } from "./fakes.js";

const root = mkdtempSync(join(tmpdir(), "weir-paper-report-"));
afterAll(() => rmSync(root, { recursive: true }));

const kOptions = {
  clocks: CLOCKS,
  named: false,
  references: new Map(),
  weir: "0.0.0+test",
  seconds: () => 2,
};

describe("selectExperiments", () => {
  const ids = (...patterns: string[]) => selectExperiments(kAllFakes, patterns).map(({ id }) => id);

  it("takes ids and patterns, each experiment once, in the order of the list", () => {
    expect(ids()).toHaveLength(kAllFakes.length);
    expect(ids("fake-framed")).toEqual(["fake-framed"]);
    expect(ids("fake-bug", "fake-l*", "*-long")).toEqual(["fake-long", "fake-late", "fake-bug"]);
    expect(ids("*framed*")).toEqual(["fake-framed", "fake-framed-too"]);
  });

  it("does not know others", () => {
    expect(() => ids("fake-shorts")).toThrow(expect.objectContaining({ hint: "did you mean fake-short?" }));
    expect(() => ids("fake-short", "dcqcn*")).toThrow("no experiment dcqcn*");
    expect(() => ids("fake.short")).toThrow("no experiment fake.short");
  });
});

describe("planTasks", () => {
  const plan = (own: Partial<Parameters<typeof planTasks>[1]>) =>
    planTasks(kAllFakes.slice(0, 5), { ...kOptions, ...own }).tasks.map(({ experiment, clocks, seconds }) => {
      return [experiment.id, clocks.join(), seconds];
    });

  it("gives each experiment the clocks that it has, and leaves out those that have none", () => {
    expect(plan({ clocks: ["sim", "model"], named: true })).toEqual([
      ["fake-short", "sim", 2],
      ["fake-long", "sim", 2],
      ["fake-modelled", "sim,model", 4],
      ["fake-framed", "sim", 2],
    ]);
    expect(plan({ clocks: ["wire"], named: true }).map(([id]) => id)).toEqual(["fake-framed", "fake-framed-too"]);
  });

  it("wants someone to have each clock that was named", () => {
    const only = (own: Partial<Parameters<typeof planTasks>[1]>) =>
      planTasks(kAllFakes.slice(0, 1), { ...kOptions, ...own }).tasks;
    expect(() => only({ clocks: ["sim", "model"], named: true })).toThrow("none of the experiments runs on model");
    expect(only({})).toHaveLength(1);
  });
});

/** One that was run, one with an invalid run, one that failed, one that was not reached. */
async function finish(directory: string): Promise<{ summary: Summary; finished: Finished[] }> {
  const names = ["a", "b", "c", "d"].map((name): Experiment => ({ ...fakeExperiment, id: `fake-${name}` }));
  const [a, b, c, d] = planTasks(names, { ...kOptions, clocks: ["sim", "model"] }).tasks as [Task, Task, Task, Task];
  const late = { ...fakeRunners, sim: { run: async () => fakeOutcome(invalid("the host was late")) } };
  const run = async ({ experiment, clocks, key }: Task, runners = fakeRunners): Promise<PaperDocument> => {
    const folder = join(directory, experiment.id);
    const outcome = await runExperiment(experiment, runners, paperOptions(folder, { clocks }));
    const document = documentOf(outcome, paperMade({ key, weir: kOptions.weir }, performance.now()));
    await writePaper(folder, outcome, document);
    return document;
  };
  const finished: Finished[] = [
    { task: a, document: await run(a) },
    { task: b, document: await run(b, late), outcome: { status: "done" } },
    { task: c, outcome: { status: "failed", error: "a <bug>" } },
    { task: d },
  ];
  const options = { clocks: ["sim", "model"] as const, seed: null, scale: null, only: [], reference: null, jobs: 2 };
  const facts = {
    weir: kOptions.weir,
    host: hostFacts(),
    at: "2026-01-31T00:00:00Z",
    wall_s: 61,
    options,
    left_out: ["fake-e"],
  };
  return { summary: summarize(finished, facts), finished };
}

describe("the report", () => {
  it("says what each experiment came to, and what is missing", async () => {
    const { summary } = await finish(join(root, "summary"));
    expect(summary.complete).toBe(false);
    expect(summary.experiments.map(({ id, state, reused }) => [id, state, reused])).toEqual([
      ["fake-a", "complete", true],
      ["fake-b", "partial", false],
      ["fake-c", "failed", false],
      ["fake-d", "not run", false],
    ]);
    // Each sentence of the same paper in two experiments is one statement.
    const itself = { agree: 0, differ: 0, not_judged: 1 };
    expect(summary.total).toEqual({ statements: 3, hold: 1, algorithm: 0, us: 1, not_judged: 1, itself });
    expect(summary.totals).toEqual({
      sim: { statements: 3, hold: 1, algorithm: 0, us: 1, not_judged: 1, itself },
      model: { statements: 3, hold: 1, algorithm: 0, us: 0, not_judged: 2, itself },
    });
    expect(summary.experiments[0]?.runs[0]).toMatchObject({ clock: "sim", seed: 1, valid: true });
    const text = renderAllText(summary);
    expect(text).toMatch(/fake-a +Fake +figure 1 +1 holds, 1 falls short, 2 not judged .* complete, made before/);
    expect(text).toContain("Partial: 3 of 4 experiments are not complete.");
    expect(text).toContain("- fake-b: 2 of 3 runs did not come to a valid end\n- fake-c: a <bug>\n- fake-d: not run\n");
    expect(text).toContain("left out, as they run on other clocks only: fake-e\nthis call took 1:01 min");
    expect(text).toContain(
      "3 statements: 1 hold, 0 fall short by the algorithm, 1 by us, 1 not judged; 1 compared with Weir itself: 0 agree, 0 differ, 1 not judged\nsim alone: 3 statements",
    );
  });

  it("is one page that needs nothing else, with every figure, and links that lead somewhere", async () => {
    const directory = join(root, "page");
    const { summary, finished } = await finish(directory);
    const page = readFileSync(writeAll(directory, summary, finished), "utf8");
    expect(page).not.toMatch(/(?:src|href|action|data)="?\s*(?:https?:)?\/\//);
    expect(page).not.toMatch(/<script|<link|<img|<iframe|@import|url\((?!#)/);
    for (const id of ["fake-a", "fake-b", "fake-c", "fake-d"]) {
      expect(page).toContain(`<section class="experiment" id="${id}">`);
      expect(page).toContain(`href="#${id}"`);
    }
    const ids = [...page.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [, target] of page.matchAll(/(?:href="|url\()#([^")]+)/g)) expect(ids).toContain(target);
    expect(page.match(/<figure class="wide paper"><svg /g)).toHaveLength(2);
    // Once more for paper: their plots, two in each.
    expect(page.match(/<use href="#fake-[ab]-figure"/g)?.length).toBe(4);
    expect(page).toContain("a &lt;bug&gt;");
    expect(page).toContain("<strong>Partial.</strong> 3 of 4 experiments");
    expect(page).toContain("<q>It is fast.</q>");
    expect(page).toContain(hostFacts().kernel);
  });

  it("is Markdown with pictures beside it, and data", async () => {
    const directory = join(root, "markdown");
    const { summary, finished } = await finish(directory);
    writeAll(directory, summary, finished);
    const text = readFileSync(join(directory, "report.md"), "utf8");
    expect(text).toContain("| [fake-a](fake-a/report.html) | Fake | figure 1 |");
    expect(text).toContain("](fake-a/figure.svg)");
    expect(text).toContain('| fake-a | "It is fast." (section 1) | holds | holds |');
    expect(text).toContain("\n## fake-b: goodput of <two> trials\n");
    expect(text).toContain("\n### Measured\n");
    expect(text).toContain(`\nMade by Weir ${kOptions.weir}, Linux ${hostFacts().kernel}`);
    expect(JSON.parse(readFileSync(join(directory, "summary.json"), "utf8"))).toEqual(
      JSON.parse(JSON.stringify(summary)),
    );
  });

  it("says that it is complete where it is", async () => {
    const directory = join(root, "complete");
    const { summary, finished } = await finish(directory);
    const whole = summarize(finished.slice(0, 1), summary);
    expect(whole.complete).toBe(true);
    const page = readFileSync(writeAll(directory, whole, finished.slice(0, 1)), "utf8");
    expect(page).toContain("<strong>Complete.</strong>");
    expect(readFileSync(join(directory, "report.md"), "utf8")).not.toContain("Partial");
  });
});
