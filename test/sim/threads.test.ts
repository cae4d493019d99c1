/** How many threads a network is worth. */
import { describe, expect, it } from "vitest";
import { Fabric } from "../../src/scenario/fabric.js";
import { composeSimulation } from "../../src/sim/compose.js";
import { kMostThreads, worthwhileThreads } from "../../src/sim/threads.js";
import { fatTree, incast } from "./scenarios.js";

const tree = (k: number, rate: string, delay: string) => {
  const scenario = fatTree({ topology: { kind: "fat-tree", k, link: { rate, delay } } });
  return composeSimulation(scenario, new Fabric(scenario), []);
};

describe("worthwhileThreads", () => {
  it("is one for a few hosts, whatever there is", () => {
    const scenario = incast();
    expect(worthwhileThreads(composeSimulation(scenario, new Fabric(scenario), []), 64)).toBe(1);
  });

  it("is what there is for many, up to what the core takes", () => {
    const large = tree(10, "400Gbps", "1us");
    expect([1, 2, 8].map((cpus) => worthwhileThreads(large, cpus))).toEqual([1, 2, 8]);
    expect(worthwhileThreads(large, 1000)).toBeLessThanOrEqual(kMostThreads);
  });

  it("is less the less can be sent in a window: short links, low rates", () => {
    const threads = (rate: string, delay: string) => worthwhileThreads(tree(8, rate, delay), 64);
    const [most, slow, short] = [threads("100Gbps", "1us"), threads("10Gbps", "1us"), threads("100Gbps", "50ns")];
    expect(most).toBeGreaterThan(4);
    expect(slow).toBeLessThan(most);
    expect(short).toBeLessThan(most);
    // Beyond the longest window nothing is gained.
    expect(threads("100Gbps", "50us")).toBe(most);
  });
});
