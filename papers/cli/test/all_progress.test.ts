import { describe, expect, it } from "vitest";
import { memoryStream } from "../../../test/cli/memory_stream.js";
import type { Task } from "../../engine/all/task.js";
import { allFake } from "../../engine/test/all_fakes.js";
import { AllProgress } from "../paper_all_progress.js";

/** Two on two CPUs, and one on the wire; a stream that remembers, and a clock in ms that is set by hand. */
function setup(isTTY: boolean) {
  const { stream, writes: written } = memoryStream({ isTTY });
  const clock = { now: 1000 };
  const task = (name: string, seconds: number, own: Partial<Task> = {}): Task => {
    return { experiment: allFake(name), clocks: ["sim"], references: {}, key: "", seconds, ...own };
  };
  const tasks = [task("a", 10), task("b", 20), task("c", 100, { clocks: ["wire"] })] as const;
  const progress = new AllProgress(stream, tasks, 2, () => clock.now);
  return { progress, tasks, written, clock };
}

describe("progress of weir paper all", () => {
  it("is plain lines where there is no terminal: what begins, what ends, and every ten seconds what runs", () => {
    const { progress, tasks, written, clock } = setup(false);
    const [a, b] = tasks;
    progress.begin(a);
    progress.begin(b);
    progress.update(b, 0.5);
    expect(written).toEqual(["fake-a: begins (sim)\n", "fake-b: begins (sim)\n"]);
    clock.now += 10_000;
    progress.update(b, 0.5);
    // Ten of thirty listed seconds have passed in as many, and twenty are left; then the wire.
    expect(written.slice(2)).toEqual(["0 of 3 done, 10.0 s, about 2:00 min left: fake-a 0.0%, fake-b 50.0%\n"]);
    clock.now += 10_000;
    // Twenty listed seconds have passed in as many: so will the rest of b.
    progress.end(a, { status: "done" });
    expect(written[3]).toBe("fake-a: done, 20.0 s (1 of 3 done, 20.0 s, about 1:50 min left)\n");
    progress.end(b, { status: "failed", error: "a bug" });
    expect(written.at(-1)).toContain("fake-b: failed: a bug, 20.0 s (2 of 3 done, 20.0 s, about 1:40 min left)");
    progress.finish();
  });

  it("is a line that is drawn again on a terminal, below what has ended", () => {
    const { progress, tasks, written, clock } = setup(true);
    const [a] = tasks;
    progress.begin(a);
    clock.now += 300;
    progress.update(a, 0.5);
    expect(written.join("")).toContain("fake-a 50.0%");
    expect(written.join("")).not.toContain("begins");
    progress.end(a, { status: "done" });
    expect(written.join("")).toContain("fake-a: done, 0.3 s");
    const before = written.length;
    progress.finish();
    expect(written.slice(before).join("")).not.toContain("fake");
  });
});
