import { describe, expect, it } from "vitest";
import {
  kMostBusy,
  kMostBusyRealTime,
  offeredLoad,
  type ProbeResult,
  searchScale,
  twoDigits,
} from "../../../src/clocks/lab/calibrate.js";
import { smallScenario } from "./evidence.js";

describe("searchScale", () => {
  /** A host whose worker is fully busy at the scale `full`; `spoilt`: probes, by their number, that a neighbour spoils. */
  function host(full: number, { overhead = 0, spoilt = [] as readonly number[], most = kMostBusy } = {}) {
    const tried: number[] = [];
    const probe = async (scale: number): Promise<ProbeResult> => {
      tried.push(scale);
      const busy = Math.min(1, overhead + full / scale);
      return { valid: busy < 1 && !spoilt.includes(tried.length - 1), busy, most };
    };
    return { tried, probe };
  }

  it.each([
    [40, 10],
    [40, 3],
    [200, 50],
    [5, 60],
    [1, 0.001],
    [1000, 2],
  ])("finds from %d on what suits a host that is full at %d", async (first, full) => {
    const { tried, probe } = host(full);
    const scale = await searchScale(first, probe);
    const best = Math.max(1, full / kMostBusy);
    expect(scale).toBeGreaterThanOrEqual(best);
    expect(scale).toBeLessThanOrEqual(Math.max(best * 1.3, best + 1));
    expect(tried).toContain(scale);
  });

  it("stops where little could be gained", async () => {
    const { tried, probe } = host(10);
    expect(await searchScale(18, probe)).toBe(18);
    expect(tried).toEqual([18]);
  });

  it("goes on where the load of idle devices does not fall with the scale", async () => {
    const { tried, probe } = host(10, { overhead: 0.2 });
    const scale = await searchScale(40, probe);
    expect(tried).toContain(scale);
    expect(0.2 + 10 / scale).toBeLessThanOrEqual(kMostBusy);
  });

  it("goes between what passed and what failed where it was not for want of time", async () => {
    const tried: number[] = [];
    const scale = await searchScale(200, async (scale) => {
      tried.push(scale);
      return { valid: scale >= 100, busy: 20 / scale, most: kMostBusy };
    });
    expect(tried).toEqual([200, 34, 34, 83, 83, 130, 92, 92]);
    expect(scale).toBe(130);
  });

  it("lets a worker be busier where a probe says so", async () => {
    const { tried, probe } = host(10, { most: kMostBusyRealTime });
    expect(await searchScale(40, probe)).toBe(14);
    expect(tried).toEqual([40, 14]);
  });

  it("finds the same where chance spoils one probe, whichever it is", async () => {
    for (const spoilt of [[0], [1]]) {
      const { tried, probe } = host(10, { spoilt });
      expect(await searchScale(40, probe)).toBe(17);
      expect(tried).toEqual(spoilt[0] === 0 ? [40, 40, 17] : [40, 17, 17]);
    }
  });

  it("gives a scale at which a probe was valid, whatever spoils others", async () => {
    for (const spoilt of [[0], [1], [0, 1], [1, 2], [0, 1, 3], [2, 3]]) {
      const { tried, probe } = host(10, { spoilt });
      const scale = await searchScale(40, probe);
      expect(tried.some((at, i) => at === scale && !spoilt.includes(i))).toBe(true);
    }
  });

  it("ends on a host on which nothing is valid, with a larger scale than all that were tried", async () => {
    const { tried, probe } = host(10, { spoilt: [0, 1, 2, 3, 4, 5, 6, 7, 8] });
    const scale = await searchScale(40, probe);
    expect(tried.length).toBeLessThan(9);
    expect(scale).toBeGreaterThan(Math.max(...tried));
  });
});

describe("twoDigits", () => {
  it.each([
    [0, 1],
    [Number.NaN, 1],
    [0.3, 1],
    [1, 1],
    [10.1, 11],
    [2.3, 3],
    [123, 130],
    [99.5, 100],
    [1234, 1300],
    [55.00000000000001, 55],
  ])("rounds %d up to %d", (scale, rounded) => expect(twoDigits(scale)).toBe(rounded));
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
