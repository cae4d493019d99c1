/**
 * Files of runs, as others may hand them over: result.json, series.json and scenario.json, points.jsonl of a sweep and its
 * results. They are read, drawn, compared and told, or refused in the words of the product; texts in them become neither markup
 * nor control characters.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { WeirError } from "../../src/base/error.js";
import { compareRuns } from "../../src/result/report/overlay.js";
import { renderOverlay } from "../../src/result/report/overlay_html.js";
import { judge } from "../../src/result/report/overlay_limits.js";
import { renderComparison } from "../../src/result/report/overlay_table.js";
import { renderSavedRun } from "../../src/result/report/run_report.js";
import { renderTable } from "../../src/result/report/table.js";
import { readRun } from "../../src/result/run_files.js";
import { loadScenario } from "../../src/scenario/scenario.js";
import { filesByContent, identityOf, planText, readPlan, scenarioOf } from "../../src/study/plan.js";
import { ResultStore } from "../../src/study/store.js";
import { planSweep } from "../../src/study/sweep/plan_sweep.js";
import { loadSweep } from "../../src/study/sweep/spec.js";
import { axesOf, groupTable, merge } from "../../src/study/sweep/table.js";
import { sampleResult, sampleSeries, simulatedResult } from "../result/report/sample.js";
import type { OpenTarget } from "./engine.js";
import { Finding, type Input, requireThat } from "./input.js";
import { changedDocument, changedText, keysOf, kindOf, kMarkup } from "./mutate.js";

const kScenario = "examples/incast-4to1.yaml";
const kSweep = "examples/sweep-ecn.yaml";
const kLimits = {
  goodput: 0.05,
  total: 0.05,
  jain: 0.05,
  mean: 0.05,
  p50: 0.05,
  p95: 0.05,
  marks: 0.05,
  cnps: 0.05,
  pfc: 0.05,
};
/** Points of a plan that are looked at. */
const kPoints = 2;

/** A file with its text when it is sound. */
interface Sound {
  name: string;
  document: unknown;
}

export const open: OpenTarget = (folder) => {
  const [changed, sound] = [join(folder, "changed"), join(folder, "sound")];
  const set = ["seed=3"];
  const source = { text: readFileSync(kScenario, "utf8"), set, scenario: loadScenario(kScenario, { set }).scenario };
  const documents = [sampleResult(3), simulatedResult()].map((result): Sound[] => [
    { name: "result.json", document: result },
    { name: "series.json", document: sampleSeries(3, 5) },
    { name: "scenario.json", document: source },
  ]);
  mkdirSync(sound);
  for (const { name, document } of documents[0] as Sound[]) writeFileSync(join(sound, name), JSON.stringify(document));
  const reference = { ...readRun(join(sound, "result.json")), label: "sound" };
  const { plan } = planSweep(loadSweep(kSweep), kSweep, "code");
  const keys = keysOf([...documents, plan]);

  const readResult = (input: Input): Iterable<string> => {
    const given = new Given(changed);
    for (const { name, document } of input.pick(documents)) {
      if (name === "scenario.json") given.put(name, JSON.stringify(document));
      else given.write(input, name, JSON.stringify, document, keys);
    }
    return given.read(() => {
      const file = join(changed, "result.json");
      const run = { ...readRun(file), label: input.once(2) ? "changed" : kMarkup };
      const comparison = compareRuns([reference, run]);
      const verdicts = judge(comparison, kLimits);
      requirePlain(renderTable(run.result) + renderComparison(comparison, verdicts), given);
      requireHarmless(renderSavedRun(file) + renderOverlay([reference, run], comparison, verdicts), given);
      return [`result of ${run.result.clock}`];
    });
  };

  const readSweep = (input: Input): Iterable<string> => {
    const given = new Given(changed);
    const lines = planText(plan).trimEnd();
    const asLines = (all: unknown) => (Array.isArray(all) ? all : [all]).map((line) => JSON.stringify(line)).join("\n");
    given.write(
      input,
      "points.jsonl",
      asLines,
      lines.split("\n").map((line) => JSON.parse(line) as unknown),
      keys,
    );
    const { id } = plan.points[0] as { id: string };
    given.write(input, `${id}.json`, JSON.stringify, { id, point: null, result: simulatedResult() }, keys);
    return given.read(() => {
      const read = readPlan(join(changed, "points.jsonl"));
      filesByContent(read.study);
      for (const point of read.points.slice(0, kPoints)) scenarioOf(identityOf(read.study, point), changed);
      const merged = merge(read, ResultStore.open(changed), read.study.collect);
      return [
        `plan with ${groupTable(axesOf(read), merged, read.study.collect).rows.length > 0 ? "a result" : "none"}`,
      ];
    });
  };

  return { longest: 256, run: (input) => (input.once(4) ? readSweep(input) : readResult(input)) };
};

/** Files in a folder that was empty. */
class Given {
  private readonly texts: string[] = [];

  constructor(private readonly folder: string) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder);
  }

  /** Writes it sound, changed, as no JSON, or not at all. */
  write(
    input: Input,
    name: string,
    textOf: (document: unknown) => string,
    document: unknown,
    keys: readonly string[],
  ): void {
    const style = input.below(8);
    if (style === 0) return;
    const changed = style < 3 ? document : changedDocument(input, document, keys);
    const sound = textOf(changed);
    const text = style === 3 ? changedText(input, sound) : sound;
    this.put(name, text);
  }

  put(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text);
    this.texts.push(`${name}: ${text}`);
  }

  /** Returns what `read` does, or how it refused. */
  read(read: () => Iterable<string>): Iterable<string> {
    try {
      return read();
    } catch (error) {
      if (error instanceof WeirError) return [kindOf(error.message.replaceAll(this.folder, ""))];
      throw new Finding((error as Error).message, this.toString(), { cause: error });
    }
  }

  toString(): string {
    return this.texts.join("\n");
  }
}

function requireHarmless(page: string, given: Given): void {
  requireThat(!page.includes(kMarkup), "a page has markup that a file brought along", `${given}`);
}

function requirePlain(text: string, given: Given): void {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are looked for
  requireThat(!/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/.test(text), "a table has control characters", `${given}`);
}
