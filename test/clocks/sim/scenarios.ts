import { parseScenario, type Scenario } from "../../../src/scenario/scenario.js";

/** Two hosts that send to a third over one switch, 10 Gb/s, 1 ms of which 200 us are warm-up. */
export function incast(overrides: Record<string, unknown> = {}): Scenario {
  return parseScenario({
    name: "two-to-one",
    duration: "1ms",
    warmup: "200us",
    topology: {
      link: { rate: "10Gbps", delay: "2us" },
      hosts: ["a", "b", "c"],
      switches: ["sw"],
      links: ["a -- sw", "b -- sw", "sw -- c"],
    },
    traffic: [{ id: "x", from: ["a", "b"], to: "c" }],
    ...overrides,
  }).scenario;
}

/** One host at either end of a chain of two switches, with a link of 40 Gb/s between two of 100 Gb/s. */
export function chain(overrides: Record<string, unknown> = {}): Scenario {
  return parseScenario({
    name: "chain",
    duration: "5ms",
    warmup: "0ms",
    topology: {
      hosts: ["a", "b"],
      switches: ["s", "t"],
      links: [
        { from: "a", to: "s", rate: "100Gbps", delay: "1us" },
        { from: "s", to: "t", rate: "40Gbps", delay: "3us" },
        { from: "t", to: "b", rate: "100Gbps", delay: "2us" },
      ],
    },
    traffic: [{ from: "a", to: "b", bytes: 5000 }],
    ...overrides,
  }).scenario;
}

/** A fat tree of 16 hosts, 4 core switches and pods of 2 + 2 switches. */
export function fatTree(overrides: Record<string, unknown> = {}): Scenario {
  return parseScenario({
    name: "tree",
    duration: "200us",
    warmup: "20us",
    transport: { type: "rc" },
    topology: { kind: "fat-tree", k: 4, link: { rate: "100Gbps", delay: "1us" } },
    traffic: [{ pattern: "poisson", load: 0.3, sizes: "20KB" }],
    ...overrides,
  }).scenario;
}
