/** Lists, after all tests, those that were skipped, by their reasons. */
import type { Reporter, TestCase, TestModule } from "vitest/node";

export class SkippedReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const byReason = new Map<string, TestCase[]>();
    for (const test of modules.flatMap((module) => [...module.children.allTests("skipped")])) {
      const reason = reasonOf(test);
      if (reason !== undefined) byReason.set(reason, [...(byReason.get(reason) ?? []), test]);
    }
    if (byReason.size === 0) return;
    const lines = [...byReason].flatMap(([reason, tests]) => [
      `  ${tests.length} ${tests.length === 1 ? "test" : "tests"}: ${reason}`,
      ...[...new Set(tests.map(({ module }) => module.relativeModuleId))].map((file) => `    ${file}`),
    ]);
    console.log(`\nSkipped:\n${lines.join("\n")}\n`);
  }
}

/** Undefined for what `-t` left out. */
function reasonOf(test: TestCase): string | undefined {
  const result = test.result();
  const note = result.state === "skipped" ? result.note : undefined;
  return note ?? /\(skipped: (.*?)\)(?: > |$)/.exec(test.fullName)?.[1];
}
