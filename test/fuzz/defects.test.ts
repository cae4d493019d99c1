/** The targets find defects: each is run with one in the product that it is there to find. */
import { afterEach, expect, it, onTestFinished, vi } from "vitest";
import { fuzzShortly } from "./short.js";

/** Inputs at most, of one seed: some hundred times as many as it takes. */
const kInputs = 5000;

afterEach(() => {
  vi.restoreAllMocks();
  vi.resetModules();
});

/** Finding of the target with a module of the product as `change` makes it. */
async function finding(name: string, module: string, change: (original: Record<string, unknown>) => object) {
  vi.resetModules();
  vi.doMock(module, async (original) => {
    const exported = await original<Record<string, unknown>>();
    return { ...exported, ...change(exported) };
  });
  onTestFinished(() => void vi.doUnmock(module));
  const outcome = await fuzzShortly(name, kInputs);
  return String((outcome.failure?.error as Error | undefined)?.message);
}

type Methods = Record<string, (...given: unknown[]) => unknown>;

/** A class of `original` with a method that is another. */
function withMethod(original: Record<string, unknown>, className: string, method: string, other: Methods[string]) {
  const Original = original[className] as new (...given: never[]) => object;
  const Changed = class extends Original {};
  (Changed.prototype as Methods)[method] = other;
  return { [className]: Changed };
}

it("cm: a reader of frames that reads beyond their end", async () => {
  const change = ({ readMadFrame }: Record<string, unknown>) => ({
    readMadFrame(frame: Buffer) {
      frame.readUInt16BE(40);
      return (readMadFrame as Methods[string])(frame);
    },
  });
  expect(await finding("cm", "../../src/wire/cm/frame.js", change)).toMatch(/outside buffer bounds|out of range/);
});

it("config: fields that nobody compares with each other", async () => {
  const change = () => ({ checkScenario: () => ({ problems: [], warnings: [] }) });
  expect(await finding("config", "../../src/scenario/check.js", change)).toMatch(/^(scenario|sweep): /);
});

it("config: a library that prints what it thinks of a file", async () => {
  const change = ({ readScenarioFile }: Record<string, unknown>) => ({
    readScenarioFile(...given: unknown[]) {
      if (String(given[3]).includes("&")) process.emitWarning("an anchor");
      return (readScenarioFile as Methods[string])(...given);
    },
  });
  expect(await finding("config", "../../src/base/yaml.js", change)).toBe("a library prints: an anchor");
});

it("graphs: a reader of recordings that takes more events than there are", async () => {
  const change = ({ readRecording }: Record<string, unknown>) => ({
    readRecording(file: string) {
      const events = (readRecording as Methods[string])(file) as { at: number }[];
      if ((events[2] as { at: number }).at < 0) throw new Error("never");
      return events;
    },
  });
  expect(await finding("graphs", "../../src/scenario/graphs/recording_file.js", change)).toMatch(
    /^recording: .*undefined/,
  );
});

it("results: a page with what a file says as it is", async () => {
  const change = () => ({ escapeHtml: (text: string) => text });
  expect(await finding("results", "../../src/result/report/markup.js", change)).toBe(
    "a page has markup that a file brought along",
  );
});

it("protocols: a dashboard that lets everybody change things", async () => {
  const change = (original: Record<string, unknown>) => withMethod(original, "Guard", "mayChange", () => true);
  expect(await finding("protocols", "../../src/watch/dashboard/guard.js", change)).toBe(
    "a stranger has changed something",
  );
});

it("protocols: a dashboard that takes changes from pages of others", async () => {
  const change = (original: Record<string, unknown>) => withMethod(original, "Guard", "admitChange", () => undefined);
  expect(await finding("protocols", "../../src/watch/dashboard/guard.js", change)).toBe(
    "a stranger has changed something",
  );
});

it("protocols: a daemon that takes a request for what it should be", async () => {
  const change = () => ({
    parseCaptureRequest: ({ ports }: { ports: string[] }) => ports.map((port) => port.toUpperCase()),
  });
  expect(await finding("protocols", "../../src/device/capture/request.js", change)).toMatch(
    /is not a function|undefined/,
  );
});
