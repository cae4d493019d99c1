/** Cyclic buffer dependencies that `weir plan check` finds. */
import { describe, expect, it } from "vitest";
import { checkPlan } from "../../src/models/buffers/check.js";
import { bufferCycles } from "../../src/models/buffers/cycles.js";
import { loadScenario, parseScenario } from "../../src/scenario/scenario.js";

const kPfc = { enabled: true, priorities: [3], link_pause: false, by: "pfc" as const };
const lossless = (...names: string[]) => new Map(names.map((name) => [name, { pfc: kPfc }]));
const pair = (ingress: string, name: string, egress: string, priority = 3) => ({
  switch: name,
  ingress,
  egress,
  priority,
});

describe("cyclic buffer dependencies", () => {
  const ring = [pair("s3", "s1", "s2"), pair("s1", "s2", "s3"), pair("s2", "s3", "s1")];

  it("are circles of links, at one priority", () => {
    const [cycle, ...others] = bufferCycles(ring, lossless("s1", "s2", "s3"));
    expect(others).toEqual([]);
    expect(cycle?.priority).toBe(3);
    expect([...(cycle?.switches ?? [])].sort()).toEqual(["s1", "s2", "s3"]);
    const successor = cycle?.switches[((cycle?.switches.indexOf("s1") ?? 0) + 1) % 3];
    expect(successor).toBe("s2");
  });

  it("are none where the circle is open, not lossless, of several priorities, or goes through a host", () => {
    expect(bufferCycles(ring.slice(1), lossless("s1", "s2", "s3"))).toEqual([]);
    expect(bufferCycles(ring, lossless("s1", "s2"))).toEqual([]);
    expect(bufferCycles([...ring.slice(1), pair("s3", "s1", "s2", 4)], lossless("s1", "s2", "s3"))).toEqual([]);
  });

  it("go through all priorities where PAUSE frames stop a link as a whole", () => {
    const all = { pfc: { ...kPfc, priorities: [0, 1, 2, 3, 4, 5, 6, 7], link_pause: true, by: "pause" as const } };
    const mixed = [...ring.slice(1), pair("s3", "s1", "s2", 4)];
    expect(bufferCycles(mixed, new Map(["s1", "s2", "s3"].map((name) => [name, all])))).toHaveLength(1);
  });

  it("that have nothing to do with each other are told apart, and of a large one a shortest circle", () => {
    const other = [pair("b", "a", "b"), pair("a", "b", "a")];
    const detour = [pair("s3", "s1", "x"), pair("s1", "x", "s2"), pair("x", "s2", "s3")];
    const cycles = bufferCycles([...detour, ...ring, ...other], lossless("s1", "s2", "s3", "x", "a", "b"));
    expect(cycles.map(({ switches }) => switches.length).sort()).toEqual([2, 3]);
  });

  it("take no stack: a ring of 5,000 switches", () => {
    const names = Array.from({ length: 5_000 }, (_, i) => `s${i}`);
    const at = (i: number) => names[(i + names.length) % names.length] as string;
    const cycles = bufferCycles(
      names.map((name, i) => pair(at(i - 1), name, at(i + 1))),
      lossless(...names),
    );
    expect(cycles.map(({ switches }) => switches.length)).toEqual([5_000]);
  });
});

describe("weir plan check", () => {
  const ring = loadScenario("examples/deadlock-ring.yaml").scenario;

  it("names the circle of the example, and none in trees and leaf-spine fabrics, with traffic and without", () => {
    const { deadlock_free, findings } = checkPlan(ring);
    expect(deadlock_free).toBe(false);
    expect(findings.filter(({ kind }) => kind === "deadlock").map(({ message }) => message)).toEqual([
      expect.stringContaining("s1 -> s2 -> s3 -> s1"),
    ]);
    for (const topology of [
      { kind: "leaf-spine", leaves: 4, spines: 3, hosts: 2 },
      { kind: "fat-tree", k: 4 },
      { kind: "dumbbell", senders: 3 },
    ]) {
      for (const traffic of [[], [{ pattern: "permutation" }]]) {
        const { scenario } = parseScenario({ name: "tree", topology, traffic });
        expect(checkPlan(scenario)).toMatchObject({ deadlock_free: true, cycles: [] });
      }
    }
  });

  it("judges nothing where no traffic is lossless, though switches are", () => {
    const flows = ring.flows.map((flow) => ({ ...flow, priority: 0 }));
    const { deadlock_free, lossless, findings } = checkPlan({ ...ring, flows });
    expect({ deadlock_free, lossless }).toEqual({ deadlock_free: null, lossless: false });
    expect(findings.map(({ message }) => message)).toContainEqual(
      expect.stringContaining("nothing to judge of deadlocks: no traffic is lossless"),
    );
  });

  it("goes by routes where there is no traffic", () => {
    expect(checkPlan({ ...ring, flows: [] }).deadlock_free).toBe(false);
    expect(checkPlan({ ...ring, flows: ring.flows.slice(1) }).deadlock_free).toBe(true);
  });
});
