import { describe, expect, it } from "vitest";
import { allOutages, linksAvoided, linksDown, networkEvents, rerouteTimes } from "../../src/scenario/failures.js";
import { outages } from "../../src/scenario/faults.js";
import { parseScenario } from "../../src/scenario/scenario.js";
import { problemsOf } from "../fixtures/refusal.js";

const load = (...faults: object[]) =>
  parseScenario({
    duration: "10ms",
    topology: { kind: "star", hosts: 2, link: { rate: "10Gbps" } },
    traffic: [{ from: "h1", to: "h2" }],
    faults,
  }).scenario;
const problems = (...faults: object[]) => problemsOf(() => load(...faults));

describe("faults of a scenario", () => {
  it("are told of when they begin and end, and links that flap each time, up to the end of traffic", () => {
    const scenario = load(
      { at: "1ms", device: "h2", kind: "drop", share: "1%", for: "2ms" },
      { at: "4ms", device: "sw", port: "h1", kind: "corrupt" },
      { at: "5ms", device: "h1", kind: "down", down: "1ms", up: "2ms" },
    );
    expect(networkEvents(scenario).map(({ at, what }) => `${at / 1e6} ${what}`)).toEqual([
      "1 drop at h2 begins",
      "3 drop at h2 ends",
      "4 corrupt at sw from h1 begins",
      "5 link h1 -- sw goes down",
      "6 link h1 -- sw is up again",
      "8 link h1 -- sw goes down",
      "9 link h1 -- sw is up again",
    ]);
    const at = (ms: number) => linksDown(allOutages(scenario), ms * 1e6).size;
    expect([4.9, 5, 5.9, 6, 8, 8.9, 9].map(at)).toEqual([0, 1, 1, 0, 1, 1, 0]);
  });

  it("have routes follow a link that is down where they say so, each time", () => {
    const fault = { at: "1ms", device: "h1", kind: "down", down: "1ms", up: "4ms", reroute: "500us", for: "6ms" };
    const scenario = load(fault);
    expect(rerouteTimes(scenario)).toEqual([1.5e6, 2.5e6, 6.5e6, 7.5e6]);
    expect([1.4, 1.5, 2.4, 2.5, 6.6].map((ms) => linksAvoided(scenario, ms * 1e6).size)).toEqual([0, 1, 1, 0, 1]);
    expect(networkEvents(scenario).map(({ what }) => what)).toContain("routes without link h1 -- sw");
  });

  it("take a link down until they are over, or for good", () => {
    const ends = (fault: object) =>
      outages(load({ device: "h1", kind: "down", ...fault }), 10e6).map(({ until }) => until);
    expect(ends({ at: "2ms", for: "3ms" })).toEqual([5e6]);
    expect(ends({ at: "2ms" })).toEqual([Number.POSITIVE_INFINITY]);
    expect(ends({ at: "2ms", for: "60s" })).toEqual([Number.POSITIVE_INFINITY]);
    expect(ends({ at: "2ms", for: "3ms", down: "2ms", up: "500us" })).toEqual([4e6, 5e6]);
  });

  it("take all links of a device down where no port is named, and routes around it as a switch that fails has", () => {
    const scenario = load({ at: "1ms", device: "sw", kind: "down", for: "3ms", reroute: "500us" });
    const failed = parseScenario({
      duration: "10ms",
      topology: { kind: "star", hosts: 2, link: { rate: "10Gbps" } },
      traffic: [{ from: "h1", to: "h2" }],
      failures: [{ switch: "sw", at: "1ms", until: "4ms", reroute: "500us" }],
    }).scenario;
    for (const ms of [0.9, 1, 1.4, 1.5, 3.9, 4, 4.4, 4.5]) {
      const names = (links: Iterable<{ from: string }>) => [...links].map(({ from }) => from);
      const down = names(linksDown(allOutages(scenario), ms * 1e6));
      expect(down).toEqual(names(linksDown(allOutages(failed), ms * 1e6)));
      expect(down).toHaveLength(ms >= 1 && ms < 4 ? 2 : 0);
      expect(names(linksAvoided(scenario, ms * 1e6))).toEqual(names(linksAvoided(failed, ms * 1e6)));
    }
    expect(networkEvents(scenario).map(({ what }) => what)).toEqual([
      "switch sw goes down",
      "routes without switch sw",
      "switch sw is up again",
      "routes with switch sw",
    ]);
  });

  it("take links down 10,000 times at most, all of a device together", () => {
    const flapping = (device: string) => () =>
      parseScenario({
        duration: "10ms",
        topology: { kind: "star", hosts: 3, link: { rate: "10Gbps" } },
        traffic: [{ from: "h1", to: "h2" }],
        faults: [{ device, kind: "down", down: "1us", up: "1us" }],
      });
    expect(problemsOf(flapping("h1"))).toEqual([]);
    expect(problemsOf(flapping("sw"))).toEqual([expect.stringMatching(/^faults.0.down: links would go down more/)]);
  });

  it("are 64 at a port at most, as many as it looks at for each frame", () => {
    const many = Array.from({ length: 65 }, () => ({ device: "h1", kind: "drop" }));
    expect(problems(...many.slice(1))).toEqual([]);
    expect(problems(...many)).toEqual([expect.stringMatching(/^faults.64.device: h1 has 64 there already/)]);
  });

  it.each<[string, object, string, string]>([
    ["a device that there is not", { device: "h9", kind: "drop" }, "faults.0.device", "h9"],
    ["a switch without a port", { device: "sw", kind: "drop" }, "faults.0.port", "is missing: sw has 2"],
    ["a port that there is not", { device: "sw", port: "h7", kind: "drop" }, "faults.0.port", "h7"],
    ["a sender that there is not", { device: "h1", kind: "drop", from: "sw" }, "faults.0.from", "sw"],
    ["a time behind the end", { device: "h1", kind: "drop", at: "10ms" }, "faults.0.at", "is not before the end"],
    ["no kind", { device: "h1" }, "faults.0.kind", ""],
    ["delay without a time", { device: "h1", kind: "delay" }, "faults.0.delay", "is missing"],
    ["a code of what has none", { device: "h1", kind: "drop", code: "rnr" }, "faults.0.code", "not with kind drop"],
    ["nak without a code", { device: "h1", kind: "nak" }, "faults.0.code", "is missing"],
    ["an error of a switch", { device: "sw", port: "h1", kind: "error" }, "faults.0.device", "is a switch"],
    ["a slow switch", { device: "sw", port: "h1", kind: "slow", rate: "1Gbps" }, "faults.0.device", "is a switch"],
    ["slow without a rate", { device: "h1", kind: "slow" }, "faults.0.rate", "is missing"],
    ["a status of another kind", { device: "h1", kind: "drop", status: "fatal" }, "faults.0.status", "not with kind"],
    ["trimming that nobody knows", { device: "h1", kind: "trim" }, "faults.0.dscp", "no host knows 40"],
    [
      "routes around what is there",
      { device: "h1", kind: "drop", reroute: "1ms" },
      "faults.0.reroute",
      "not with kind",
    ],
    ["a link that is down one way", { device: "h1", kind: "down", direction: "out" }, "faults.0.direction", "not out"],
    ["frames of a pause", { device: "h1", kind: "pause", count: 3 }, "faults.0.count", "not with kind pause"],
    ["priorities that are none", { device: "h1", kind: "pause", priorities: [8] }, "faults.0.priorities.0", "8"],
    ["an unknown code", { device: "h1", kind: "nak", code: "tired" }, "faults.0.code", "tired"],
    [
      "frames of a link that is down",
      { device: "h1", kind: "down", share: "1%" },
      "faults.0.share",
      "not with kind down",
    ],
    [
      "times that are too short",
      { device: "h1", kind: "down", down: "10ns", up: "1ms" },
      "faults.0.down",
      "out of range",
    ],
  ])("refuse %s", (_, fault, path, message) => {
    const [problem, ...others] = problems(fault);
    expect(problem).toMatch(new RegExp(`^${path}: .*${message}`));
    expect(others).toEqual([]);
  });
});
