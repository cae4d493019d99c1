/**
 * Prints after all tests the time of each part, those that failed before they passed and why, and those that were skipped,
 * by their reasons.
 */
import type { Reporter, TestCase, TestModule } from "vitest/node";

const kSlowest = 5;

export class SummaryReporter implements Reporter {
  /** Time of each project, from its first file to its last; ms. */
  readonly #spans = new Map<string, { first: number; last: number }>();
  readonly #files = new Map<TestModule, { began: number; took: number }>();

  onTestModuleStart(module: TestModule): void {
    const now = performance.now();
    this.#files.set(module, { began: now, took: 0 });
    const name = module.project.name;
    if (!this.#spans.has(name)) this.#spans.set(name, { first: now, last: now });
  }

  onTestModuleEnd(module: TestModule): void {
    const now = performance.now();
    const file = this.#files.get(module);
    if (file !== undefined) file.took = now - file.began;
    const span = this.#spans.get(module.project.name);
    if (span !== undefined) span.last = now;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const lines = [...timeLines(this.#spans, this.#files), ...retriedLines(modules), ...skippedLines(modules)];
    console.log(`\n${lines.join("\n")}\n`);
  }
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(0)} s`;

function timeLines(
  spans: ReadonlyMap<string, { first: number; last: number }>,
  files: ReadonlyMap<TestModule, { took: number }>,
): string[] {
  const projects = [...spans].map(([name, { first, last }]) => `${name} ${seconds(last - first)}`);
  const slowest = [...files].sort(([, a], [, b]) => b.took - a.took).slice(0, kSlowest);
  return [
    `Time: ${projects.join(", ")}. The longest files:`,
    ...slowest.map(([{ relativeModuleId }, { took }]) => `  ${seconds(took).padStart(5)}  ${relativeModuleId}`),
  ];
}

/** Tells of tests that passed after a failure: Vitest itself says nothing of them. */
function retriedLines(modules: readonly TestModule[]): string[] {
  const lines = modules
    .flatMap((module) => [...module.children.allTests("passed")])
    .filter((test) => test.diagnostic()?.flaky)
    .flatMap((test) => [
      `  ${test.module.relativeModuleId} > ${test.fullName}`,
      ...(test.result().errors ?? []).map(({ message }) => message.replace(/^/gm, "    ")),
    ]);
  return lines.length === 0 ? [] : ["Failed before they passed:", ...lines];
}

function skippedLines(modules: readonly TestModule[]): string[] {
  const byReason = new Map<string, TestCase[]>();
  for (const test of modules.flatMap((module) => [...module.children.allTests("skipped")])) {
    const reason = reasonOf(test);
    if (reason !== undefined) byReason.set(reason, [...(byReason.get(reason) ?? []), test]);
  }
  const lines = [...byReason].flatMap(([reason, tests]) => [
    `  ${tests.length} ${tests.length === 1 ? "test" : "tests"}: ${reason}`,
    ...[...new Set(tests.map(({ module }) => module.relativeModuleId))].map((file) => `    ${file}`),
  ]);
  return lines.length === 0 ? [] : ["Skipped:", ...lines];
}

/** Returns undefined for tests that `-t` left out. */
function reasonOf(test: TestCase): string | undefined {
  const result = test.result();
  const note = result.state === "skipped" ? result.note : undefined;
  return note ?? /\(skipped: (.*?)\)(?: > |$)/.exec(test.fullName)?.[1];
}
