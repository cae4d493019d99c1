/** The fuzzer of TypeScript targets: what it draws, keeps, finds and leaves. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type FuzzOptions, fuzz, once, type Target } from "./engine.js";
import { Input } from "./input.js";

const kKey = Buffer.from("weir");

/** Looks for a key, and tells how much of it was right; `broken` fails at the key. */
function lock(broken: boolean, tried: Uint8Array[] = []): Target {
  return {
    longest: 64,
    run(input) {
      const bytes = input.take(64);
      tried.push(bytes);
      const right = [...kKey].findIndex((byte, i) => bytes[i] !== byte);
      if (right < 0 && broken) throw new Error(`open at ${tried.length}`);
      return [`${right} right`];
    },
  };
}

function options(target: Target, more: Partial<FuzzOptions> = {}): FuzzOptions {
  const folder = mkdtempSync(join(tmpdir(), "weir-fuzz-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { signal } = new AbortController();
  return {
    target,
    seed: 1,
    seconds: 1000,
    corpus: join(folder, "corpus"),
    current: join(folder, "current"),
    signal,
    tell: () => {},
    ...more,
  };
}

describe("the fuzzer", () => {
  it("comes to what is hard to guess, by what each input shows, and gives the shortest input that fails so", async () => {
    const outcome = await fuzz(options(lock(true)));
    expect(Buffer.from(outcome.failure?.input ?? []).toString()).toBe("weir");
    expect(outcome.failure?.error).toMatchObject({ message: expect.stringMatching(/^open at/) });
    expect(outcome.runs).toBeLessThan(2 ** 24);
  });

  it("keeps what shows something new, as short as that may be, and begins with it the next time", async () => {
    const first = options(lock(false), { runs: 30_000 });
    const { added, corpus } = await fuzz(first);
    expect([added, corpus]).toEqual([readdirSync(first.corpus).length, added]);
    const kept = readdirSync(first.corpus).map((name) => readFileSync(join(first.corpus, name)).toString("latin1"));
    const shown = kept.map((text) => [...kKey].findIndex((byte, i) => text.charCodeAt(i) !== byte));
    expect(new Set(shown).size).toBe(kept.length);
    expect(Math.max(...kept.map((text) => text.length))).toBeLessThanOrEqual(4);
    const tried: Uint8Array[] = [];
    const again = await fuzz({ ...first, target: lock(false, tried), runs: corpus });
    expect(tried.map((bytes) => Buffer.from(bytes).toString("latin1")).sort()).toEqual(kept.sort());
    expect(again).toMatchObject({ runs: corpus, corpus, added: 0 });
  });

  it("takes for a failure what fails only while what shows something new is shortened", async () => {
    let whole: Uint8Array | undefined;
    const run = (input: Input) => {
      const bytes = input.take(64);
      whole ??= bytes;
      if (bytes.length < whole.length) throw new Error("shorter");
      return ["any"];
    };
    const { runs, failure } = await fuzz(options({ longest: 64, run }));
    expect(runs).toBe(1);
    expect(failure?.error).toMatchObject({ message: "shorter" });
    expect(failure?.input.length).toBeLessThan(whole?.length ?? 0);
  });

  it("draws the same inputs from the same seed and corpus, and others from another", async () => {
    const triedWith = async (seed: number) => {
      const tried: Uint8Array[] = [];
      await fuzz(options(lock(false, tried), { seed, runs: 200 }));
      return tried.map((bytes) => Buffer.from(bytes).toString("hex"));
    };
    const [one, same, other] = [await triedWith(7), await triedWith(7), await triedWith(8)];
    expect(same).toEqual(one);
    expect(other).not.toEqual(one);
  });

  it("has the input that runs in a file, whatever becomes of the process", async () => {
    const given: boolean[] = [];
    const one = options({
      longest: 1000,
      run: (input) => {
        given.push(readFileSync(one.current).equals(input.take(1000)));
        return [];
      },
    });
    await fuzz({ ...one, runs: 100 });
    expect(given).toEqual(Array(100).fill(true));
  });

  it("stops between two inputs when it is told to", async () => {
    const stop = new AbortController();
    const target = { longest: 8, run: () => stop.abort() ?? [] };
    expect(await fuzz(options(target, { signal: stop.signal }))).toMatchObject({ runs: 1 });
  });

  it("takes an input that needs seconds of CPU time for one that fails", async () => {
    const usage = vi.spyOn(process, "cpuUsage");
    onTestFinished(() => usage.mockRestore());
    usage.mockReturnValue({ user: 4e6, system: 3e6 });
    const outcome = await fuzz(options({ longest: 8, run: () => [] }));
    expect(outcome).toMatchObject({ runs: 1, failure: { error: { message: "it took 7.0 s of CPU time" } } });
  });

  it("takes memory that is held over many inputs for a failure", async () => {
    const now = vi.spyOn(performance, "now");
    const memory = vi.spyOn(process, "memoryUsage");
    vi.stubGlobal("gc", () => {});
    onTestFinished(() => void vi.unstubAllGlobals());
    onTestFinished(() => void vi.restoreAllMocks());
    let [time, heap] = [0, 100 << 20];
    now.mockImplementation(() => time);
    memory.mockImplementation(() => ({ heapUsed: heap }) as NodeJS.MemoryUsage);
    const run = () => {
      time += 5000;
      heap += 10 << 20;
      return [];
    };
    const { failure, runs } = await fuzz(options({ longest: 8, run }));
    expect(String(failure?.error)).toMatch(/the heap has grown from \d+ to \d+ MB over many inputs/);
    expect(runs).toBeGreaterThan(10);
  });
});

describe("an input", () => {
  it("is decisions, then zeros", () => {
    const input = new Input(Uint8Array.from([5, 1, 2, 200]));
    expect([input.below(3), input.below(1000), input.empty, input.pick(["a", "b", "c"])]).toEqual([2, 258, false, "c"]);
    expect([input.empty, input.byte(), input.below(10), input.once(5), input.take(3).length]).toEqual([
      true,
      0,
      0,
      true,
      0,
    ]);
  });
});

it("one run gives what was seen, and throws what the target throws", async () => {
  expect([...(await once(lock(true), Buffer.from("we")))]).toEqual(["2 right"]);
  await expect(once(lock(true), Buffer.from("weir"))).rejects.toThrow("open at 1");
});
