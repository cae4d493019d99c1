import { describe, expect, it } from "vitest";
import { offeredLoad, scaleFor } from "../../src/lab/calibrate.js";
import { smallScenario } from "./evidence.js";

describe("scaleFor", () => {
  it.each([
    [1e9, 1e9, 1],
    [1e9, 5e9, 1],
    [0, 1e9, 1],
    [10e9, 1e9, 10],
    [10.1e9, 1e9, 11],
    [2.3e9, 1e9, 3],
    [160e9, 1.3e9, 130],
    [99.5e9, 1e9, 100],
    [1234e9, 1e9, 1300],
  ])("slows %d bit/s down to %d bit/s by %d", (load, capacity, scale) => {
    expect(scaleFor(load, capacity)).toBe(scale);
  });

  it("never asks for more than the host has", () => {
    for (let load = 1e6; load < 1e14; load *= 1.37)
      expect(load / scaleFor(load, 3e8)).toBeLessThanOrEqual(3e8 * (1 + 1e-12));
  });

  it("stays finite where nothing was carried", () => {
    expect(scaleFor(40e9, 0)).toBe(40e9);
  });
});

describe("offeredLoad", () => {
  const hosts = ["a", "b", "c"];

  it("adds up the senders' line rates, each once, however many flows it has", () => {
    const traffic = [
      { from: ["a", "b"], to: "c" },
      { from: "a", to: "b", qps: 4 },
    ];
    expect(offeredLoad(smallScenario({ traffic }))).toBe(20e9);
  });

  it("counts each switch on the way, of the longest way", () => {
    const links = ["a -- s1", "s1 -- s2", "s2 -- s3", "b -- s2", "c -- s3"];
    const topology = { link: { rate: "10Gbps" }, hosts, switches: ["s1", "s2", "s3"], links };
    expect(offeredLoad(smallScenario({ topology, traffic: [{ from: "a", to: "c" }] }))).toBe(30e9);
    const traffic = [
      { from: "a", to: "b" },
      { from: "a", to: "c" },
    ];
    expect(offeredLoad(smallScenario({ topology, traffic }))).toBe(30e9);
  });

  it("takes the sender's own link, not the receiver's", () => {
    const links = ["a -- s", { from: "s", to: "b", rate: "1Gbps" }, "c -- s"];
    const topology = { link: { rate: "10Gbps" }, hosts, switches: ["s"], links };
    expect(offeredLoad(smallScenario({ topology, traffic: [{ from: "b", to: "a" }] }))).toBe(1e9);
  });

  it("is nothing without traffic", () => {
    expect(offeredLoad(smallScenario({ traffic: [] }))).toBe(0);
  });
});
