/** Traffic patterns: their flows, the part of the seed, and that they offer what they promise. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Random } from "../../src/base/random.js";
import { loadScenario, parseScenario, parseScenarioText } from "../../src/scenario/scenario.js";
import { kDistributionNames, SizeDistribution } from "../../src/scenario/size_distribution.js";
import type { Flow, Scenario } from "../../src/scenario/types.js";
import { problemsOf } from "../fixtures/refusal.js";

const STAR = { kind: "star", hosts: 16, link: { rate: "100Gbps" } };
const RC = { transport: { type: "rc" } };

function scenarioOf(traffic: object[], rest: object = {}): Scenario {
  return parseScenario({ duration: "10ms", topology: STAR, traffic, ...rest }).scenario;
}
const flowsOf = (entry: object, rest: object = {}) => scenarioOf([entry], rest).flows;

const refusal = (entry: object, rest: object = {}) => problemsOf(() => flowsOf(entry, rest)).join("\n");
const bytesIn = (flows: readonly Flow[]) => flows.reduce((sum, flow) => sum + (flow.bytes ?? 0), 0);

describe("size distributions", () => {
  // The means of the published points, computed by hand: sum of (p_i - p_(i-1)) (x_i + x_(i-1)) / 2.
  it.each([
    ["web-search", 1_711_250],
    ["data-mining", 7_470_235.8],
    ["storage", 40_869.8],
  ] as const)("%s has its mean, and its draws have too", (name, mean) => {
    const sizes = SizeDistribution.named(name);
    expect(sizes.mean).toBeCloseTo(mean, 0);
    // One draw in each of 100,000 equal shares of the probability: the rare large sizes come as often as they should.
    const random = new Random(1, name);
    let sum = 0;
    for (let i = 0; i < 100_000; i++) {
      const u = (i + random.fraction()) / 100_000;
      sum += sizes.draw({ fraction: () => u });
    }
    expect(Math.abs(sum / 100_000 / mean - 1)).toBeLessThan(0.01);
  });

  it.each(kDistributionNames)("%s: 100,000 independent draws keep to the mean and to the bounds", (name) => {
    const sizes = SizeDistribution.named(name);
    const random = new Random(5, name);
    const drawn = Array.from({ length: 100_000 }, () => sizes.draw(random));
    const mean = drawn.reduce((sum, bytes) => sum + bytes, 0) / drawn.length;
    const deviation = Math.sqrt(drawn.reduce((sum, bytes) => sum + (bytes - mean) ** 2, 0) / drawn.length);
    expect(Math.abs(mean - sizes.mean)).toBeLessThan((4 * deviation) / Math.sqrt(drawn.length));
    expect(drawn.every((bytes) => Number.isInteger(bytes) && bytes >= 1 && bytes <= sizes.largest)).toBe(true);
  });

  it("gives a share at a size its weight", () => {
    const random = new Random(1, "atom");
    const mining = Array.from({ length: 10_000 }, () => SizeDistribution.named("data-mining").draw(random));
    expect(mining.filter((bytes) => bytes === 1460).length / 10_000).toBeCloseTo(0.5, 1);
    expect(SizeDistribution.fixed(777).draw(random)).toBe(777);
    expect(SizeDistribution.fixed(777).mean).toBe(777);
  });
});

describe("randomness", () => {
  it("is uniform", () => {
    const random = new Random(1, "x");
    const counts = Array<number>(10).fill(0);
    for (let i = 0; i < 100_000; i++) {
      const drawn = random.below(10);
      counts[drawn] = (counts[drawn] ?? 0) + 1;
    }
    // Chi-squared of 9 degrees of freedom: 27.9 is exceeded once in a thousand seeds.
    expect(counts.reduce((sum, n) => sum + (n - 10_000) ** 2 / 10_000, 0)).toBeLessThan(27.9);
  });

  it("is exponential with mean 1", () => {
    const random = new Random(1, "x");
    const drawn = Array.from({ length: 100_000 }, () => random.exponential());
    expect(Math.abs(drawn.reduce((sum, x) => sum + x, 0) / drawn.length - 1)).toBeLessThan(0.02);
    expect(drawn.filter((x) => x > 1).length / drawn.length).toBeCloseTo(Math.exp(-1), 2);
    expect(drawn.every((x) => x >= 0 && Number.isFinite(x))).toBe(true);
  });

  it("is apart for each seed and purpose", () => {
    const first = (seed: number, stream: string) => new Random(seed, stream).fraction();
    expect(first(1, "x")).toBe(first(1, "x"));
    expect(new Set([first(1, "x"), first(2, "x"), first(1, "y"), first(2 ** 52, "x")]).size).toBe(4);
  });
});

describe("poisson", () => {
  const entry = { id: "ws", pattern: "poisson", load: "50%", sizes: "64KB" };

  it("offers its load on average", () => {
    const flows = flowsOf(entry, { duration: "100ms" });
    // 16 hosts at 100 Gb/s, half of it, for 100 ms: 10 GB in 156,250 flows.
    expect(Math.abs(bytesIn(flows) / 10e9 - 1)).toBeLessThan(0.02);
    expect(flows.length).toBeGreaterThan(150_000);
  });

  it("offers the load of a skewed distribution too", () => {
    const flows = flowsOf({ ...entry, sizes: "storage" }, { duration: "100ms" });
    expect(Math.abs(bytesIn(flows) / 10e9 - 1)).toBeLessThan(0.02);
  });

  it("arrives as a Poisson process: gaps as long as they scatter", () => {
    const starts = flowsOf(entry).map((flow) => flow.start);
    const gaps = starts.slice(1).map((start, i) => start - (starts[i] ?? 0));
    const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
    const deviation = Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length);
    expect(mean).toBeGreaterThan(600);
    expect(mean).toBeLessThan(680);
    expect(deviation / mean).toBeGreaterThan(0.95);
    expect(deviation / mean).toBeLessThan(1.05);
    expect(starts.every((start) => Number.isInteger(start) && start >= 0 && start < 10e6)).toBe(true);
  });

  it("spreads over senders by rate, and over receivers evenly", () => {
    const hosts = ["a", "b", "c"];
    const links = [{ from: "a", to: "s", rate: "40Gbps" }, "b -- s", "c -- s"];
    const topology = { hosts, switches: ["s"], link: { rate: "10Gbps" }, links };
    const flows = flowsOf({ ...entry, sizes: 1000 }, { topology });
    const share = (end: "from" | "to", host: string) =>
      flows.filter((flow) => flow[end] === host).length / flows.length;
    expect(share("from", "a")).toBeCloseTo(4 / 6, 1);
    expect(share("from", "c")).toBeCloseTo(1 / 6, 1);
    expect(share("to", "a")).toBeCloseTo(1 / 6, 1);
    expect(share("to", "b")).toBeCloseTo(2.5 / 6, 1);
    expect(flows.every(({ from, to }) => from !== to)).toBe(true);
  });

  it("makes each arrival a flow with one message, and has start, stop, hosts and class", () => {
    const hosts = ["h2", "h3"];
    const flows = flowsOf({ ...entry, hosts, start: "2ms", stop: "4ms", priority: 0, dscp: 1, operation: "send" });
    expect(flows[0]).toMatchObject({
      id: "ws#1",
      group: "ws",
      bytes: 64_000,
      message: 64_000,
      stop: 4e6,
      priority: 0,
      dscp: 1,
      operation: "send",
      sizes: undefined,
    });
    expect(flows.every(({ from, to, start }) => hosts.includes(from) && hosts.includes(to) && start >= 2e6)).toBe(true);
    expect(flows.at(-1)?.start).toBeLessThan(4e6);
    expect(new Set(flows.map(({ id }) => id)).size).toBe(flows.length);
  });

  it("repeats with the seed, differs with another, and does not depend on other entries", () => {
    const one = flowsOf(entry);
    expect(flowsOf(entry)).toEqual(one);
    expect(flowsOf(entry, { seed: 2 })).not.toEqual(one);
    const beside = scenarioOf([{ pattern: "permutation" }, entry]).flows.filter(({ group }) => group === "ws");
    expect(beside).toEqual(one);
  });

  it.each([
    [{ load: "150%" }, /^traffic.0.load: 150% is out of range/],
    [{ load: undefined }, /^traffic.0.load: is missing/],
    [{ sizes: undefined }, /^traffic.0.sizes: is missing/],
    [{ sizes: "web-serch" }, /^traffic.0.sizes: web-serch.*did you mean web-search\?/],
    [{ sizes: "3GB" }, /^traffic.0.sizes: 3GB is out of range; must be 1 B to 2147483648 B/],
    [{ sizes: {} }, /^traffic.0.sizes.csv: is missing/],
    [{ hosts: ["h1", "h99"] }, /^traffic.0.hosts.1: unknown host h99/],
    [{ hosts: ["h1", "h1"] }, /^traffic.0.hosts.1: h1 is there twice/],
    [{ sizes: 10, stop: "10ms" }, /^traffic.0.load: makes \d+ flows, at most 2000000 are possible; shorten/],
    [{ to: "h1" }, /^traffic.0.to: unknown field/],
    [{ stop: "1ms", start: "1ms" }, /^traffic.0.stop: 1 ms is not after start 1 ms/],
  ])("refuses %j", (change, message) => expect(refusal({ ...entry, ...change })).toMatch(message));

  it("needs two hosts", () => {
    expect(refusal(entry, { topology: { kind: "star", hosts: 1 } })).toMatch(/^traffic.0.pattern: there is 1 host/);
  });
});

describe("incast", () => {
  it("has the senders that are named, or as many at random", () => {
    expect(flowsOf({ pattern: "incast", to: "h1", from: ["h2", "h3"] }).map((f) => `${f.id} ${f.to}`)).toEqual([
      "incast/h2 h1",
      "incast/h3 h1",
    ]);
    const entry = { id: "rebuild", pattern: "incast", to: "h1", degree: 5, bytes: "1MB", qps: 2 };
    const flows = flowsOf(entry);
    expect(new Set(flows.map(({ from }) => from)).size).toBe(5);
    expect(flows.every(({ from, to, bytes }) => from !== "h1" && to === "h1" && bytes === 1e6)).toBe(true);
    expect(flows).toHaveLength(10);
    expect(flows[1]).toMatchObject({ id: `rebuild/${flows[0]?.from}#2`, group: "rebuild" });
    expect(flowsOf(entry)).toEqual(flows);
    const senders = (seed: number) =>
      flowsOf(entry, { seed })
        .map(({ from }) => from)
        .join();
    expect(new Set([1, 2, 3, 4].map(senders)).size).toBeGreaterThan(1);
  });

  it("chooses the receiver too, if it is not named", () => {
    const receivers = [1, 2, 3, 4, 5].map((seed) => flowsOf({ pattern: "incast", degree: 15 }, { seed })[0]?.to);
    expect(new Set(receivers).size).toBeGreaterThan(1);
    const from = Array.from({ length: 15 }, (_, i) => `h${i + 1}`);
    expect(flowsOf({ pattern: "incast", from })[0]?.to).toBe("h16");
  });

  it("repeats with a period until it stops", () => {
    const entry = { pattern: "incast", to: "h1", from: ["h2"], bytes: 1000, period: "2ms", start: "1ms", stop: "7ms" };
    expect(flowsOf(entry).map(({ id, start, stop }) => [id, start, stop])).toEqual([
      ["incast/h2", 1e6, 7e6],
      ["incast/h2#2", 3e6, 7e6],
      ["incast/h2#3", 5e6, 7e6],
    ]);
  });

  it.each([
    [{ to: "h1" }, /^traffic.0.degree: is missing; give degree, or from/],
    [{ to: "h1", degree: 2, from: ["h2"] }, /^traffic.0.degree: from is given too/],
    [{ to: "h1", degree: 16 }, /^traffic.0.degree: 16 senders, but 15 hosts besides h1/],
    [{ to: "q", degree: 2 }, /^traffic.0.to: unknown host q/],
    [{ to: "h1", from: ["h2", "h1"] }, /^traffic.0.from.1: h1 sends to itself/],
    [{ to: "h1", from: ["h2", "h2"] }, /^traffic.0.from.1: h2 is there twice/],
    [{ to: "h1", degree: 2, period: "1ms" }, /^traffic.0.period: nothing ends; give bytes too/],
    [{ to: "h1", degree: 15, period: "1ns", bytes: 1 }, /^traffic.0.period: makes 150000000 flows/],
  ])("refuses %j", (change, message) => expect(refusal({ pattern: "incast", ...change })).toMatch(message));
});

describe("permutation", () => {
  it("has every host send once and receive once, never to itself", () => {
    for (let seed = 1; seed <= 20; seed++) {
      const flows = flowsOf({ pattern: "permutation", bytes: "1MB" }, { seed });
      expect(new Set(flows.map(({ from }) => from)).size).toBe(16);
      expect(new Set(flows.map(({ to }) => to)).size).toBe(16);
      expect(flows.every(({ from, to }) => from !== to)).toBe(true);
      expect(flows[0]).toMatchObject({ id: "permutation/h1", bytes: 1e6, message: 4e6 });
    }
    const targets = (seed: number) =>
      flowsOf({ pattern: "permutation" }, { seed })
        .map(({ to }) => to)
        .join();
    expect(targets(1)).toBe(targets(1));
    expect(new Set([1, 2, 3].map(targets)).size).toBe(3);
  });

  it("can be among some hosts", () => {
    const flows = flowsOf({ pattern: "permutation", hosts: ["h4", "h9"] });
    expect(flows.map(({ from, to }) => [from, to])).toEqual([
      ["h4", "h9"],
      ["h9", "h4"],
    ]);
  });
});

it("READs are for reliable connections", () => {
  const reads = { from: "h1", to: "h2", operation: "read" };
  expect(refusal(reads)).toMatch(
    /^traffic.0.operation: is read, which the stream transport does not have; use reliable/,
  );
  expect(refusal({ ...reads, operation: "fetch" }, RC)).toMatch(/write, send, read/);
});

describe("pairs", () => {
  const entry = { id: "users", pattern: "pairs", count: 40, sizes: "storage" };
  const flows = flowsOf(entry, RC);

  it("are different pairs, and all hosts send in as many", () => {
    expect(flows).toHaveLength(40);
    expect(new Set(flows.map(({ from, to }) => `${from} ${to}`)).size).toBe(40);
    expect(flows.every(({ from, to }) => from !== to)).toBe(true);
    const counts = new Map<string, number>();
    for (const { from } of flows) counts.set(from, (counts.get(from) ?? 0) + 1);
    expect([...counts.values()].sort()).toEqual([...Array(8).fill(2), ...Array(8).fill(3)]);
  });

  it("have messages enough for the whole time at line rate, one at a time", () => {
    for (const { sizes = [], outstanding, message, bytes } of flows) {
      const sum = sizes.reduce((total, size) => total + size, 0);
      expect(sum).toBeGreaterThan((100e9 / 8) * 10e-3);
      expect(sum - (sizes.at(-1) ?? 0)).toBeLessThanOrEqual((100e9 / 8) * 10e-3);
      expect([outstanding, message, bytes]).toEqual([1, Math.max(...sizes), undefined]);
    }
    expect(flows[0]).toMatchObject({ id: "users#1", group: "users" });
    expect(flowsOf(entry, RC)).toEqual(flows);
    expect(flowsOf(entry, { ...RC, seed: 9 })).not.toEqual(flows);
  });

  it("can be all pairs there are, and no more", () => {
    const hosts = ["h1", "h2", "h3"];
    expect(flowsOf({ ...entry, hosts, count: 6, stop: "1ms" }, RC)).toHaveLength(6);
    expect(refusal({ ...entry, hosts, count: 7 }, RC)).toMatch(/^traffic.0.count: 7 pairs of 3 hosts; at most 6/);
  });

  it("need reliable connections", () => {
    expect(refusal(entry)).toMatch(
      /^traffic.0.pattern: waits for messages.*use reliable connections: transport: \{ type: rc \}/,
    );
  });

  it("refuse more messages than there is memory for", () => {
    expect(refusal({ ...entry, sizes: 1 }, RC)).toMatch(/^traffic.0.count: makes \d+ messages, at most 10000000/);
  });
});

describe("files", () => {
  let directory = "";
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "weir-traffic-"));
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  const scenarioText = (traffic: string) => `{duration: 10ms, topology: {kind: star, hosts: 4}, traffic: [${traffic}]}`;
  const load = (csv: string, entry = "{pattern: list, csv: t.csv}") => {
    writeFileSync(join(directory, "t.csv"), csv);
    return parseScenarioText(scenarioText(entry), "s", { directory });
  };
  const refused = (csv: string, entry?: string) => problemsOf(() => load(csv, entry)).join("\n");
  const cdf = "{pattern: poisson, load: 10%, sizes: {csv: t.csv}}";

  it("replays a list: hosts by number or name, seconds or nanoseconds", () => {
    const { flows } = load(
      "# made up\nsize_bytes,src,extra,dst,start_s\n4096, 0 ,x,3,0.000000312\n\n5000000000,h2,,h1,1e-3\n",
      "{id: r, pattern: list, csv: t.csv, start: 1us}",
    ).scenario;
    expect(flows).toMatchObject([
      { id: "r#1", group: "r", from: "h1", to: "h4", bytes: 4096, message: 4096, start: 1312 },
      { id: "r#2", from: "h2", to: "h1", bytes: 5e9, message: 2 ** 31, start: 1_001_000 },
    ]);
    expect(load("from,to,bytes,start_ns\n1,2,10,77").scenario.flows).toMatchObject([
      { from: "h2", to: "h3", bytes: 10, start: 77 },
    ]);
  });

  it("leaves out what starts after the end, and says so", () => {
    const { scenario, warnings } = load("src,dst,size_bytes,start_s\n0,1,10,0.001\n0,1,10,0.01\n");
    expect(scenario.flows.map(({ id }) => id)).toEqual(["list#1"]);
    expect(warnings).toEqual(["traffic list: 1 of the 2 flows in t.csv start after the end and are left out"]);
  });

  it("finds files beside the scenario", () => {
    writeFileSync(join(directory, "t.csv"), "src,dst,size,start\n0,1,10,0\n");
    const file = join(directory, "scenario.yaml");
    writeFileSync(file, scenarioText("{pattern: list, csv: t.csv}"));
    expect(loadScenario(file).scenario.flows).toHaveLength(1);
  });

  it.each([
    [
      "src,dst,size_bytes,start_s\n0,1,10,0\n0,9,10,0\n",
      "t.csv:3: column dst: unknown host 9; use a name, or a number from 0 to 3",
    ],
    [
      "src,dst,size_bytes,start_s\n0,1,ten,0\n",
      "t.csv:2: column size_bytes: ten is not a number from 1 to 1000000000000000",
    ],
    ["src,dst,size_bytes,start_s\n0,1,1.5,0\n", "t.csv:2: column size_bytes: 1.5 is not a whole number of bytes"],
    ["src,dst,size_bytes,start_s\n0,1,10,\n", "t.csv:2: column start_s: nothing is not a number from 0 to 3600"],
    ["src,dst,size_bytes,start_s\n0,1,10,-1\n", "t.csv:2: column start_s: -1 is not a number from 0 to 3600"],
    ["src,dst,size_bytes,start_s\n2,h3,10,0\n", "t.csv:2: column dst: h3 sends to itself; src and dst must differ"],
    [
      "src,dest,size_bytes,start_s\n0,1,10,0\n",
      "t.csv:1: there is no column dst, or destination, or to; rename dest? columns: src, dest, size_bytes, start_s",
    ],
    ["src,dst\n", "t.csv: there are no rows; a header, then rows"],
  ])("refuses the list %j", (csv, message) => expect(refused(csv)).toBe(`traffic.0.csv: ${message}`));

  it("refuses a row that is too short, and names its line", () => {
    expect(refused("src,dst,size_bytes,start_s\n0,1,10,0\n0,1\n")).toMatch(/^traffic.0.csv: t.csv: .*line 3/);
  });

  it("refuses a file that is not there", () => {
    expect(problemsOf(() => flowsOf({ pattern: "list", csv: "none.csv" }))[0]).toMatch(
      /^traffic.0.csv: none.csv: no such file \(looked for \/.*none.csv\)/,
    );
  });

  it("draws from a distribution of the user", () => {
    const { flows } = load("bytes,probability\n1000,0.25\n3000,1\n", cdf).scenario;
    expect(flows.length).toBeGreaterThan(5000);
    const mean = bytesIn(flows) / flows.length;
    expect(Math.abs(mean / (0.25 * 1000 + 0.75 * 2000) - 1)).toBeLessThan(0.02);
    expect(flows.every(({ bytes = 0 }) => bytes >= 1000 && bytes <= 3000)).toBe(true);
  });

  it.each([
    ["size_bytes,cdf\n10,0.5\n20,0.9\n", "t.csv:3: column cdf: ends at 0.9; the last probability is 1"],
    ["size_bytes,cdf\n10,50\n20,100\n", "t.csv:2: column cdf: 50 is not a number from 0 to 1"],
    ["size_bytes,cdf\n10,0.5\n10,1\n", "t.csv:3: column size_bytes: 10 does not follow 10; sizes ascend"],
    [
      "size_bytes,cdf\n10,0.5\n20,0.4\n",
      "t.csv:3: column cdf: 0.4 is less than 0.5 before it; probabilities do not fall",
    ],
    ["size_bytes,cdf\n0,1\n", "t.csv:2: column size_bytes: no size is above 0; give sizes in bytes"],
    ["size,p\n0,1\n", "t.csv:1: there is no column cdf, or probability; columns: size, p"],
  ])("refuses the distribution %j", (csv, message) =>
    expect(refused(csv, cdf)).toBe(`traffic.0.sizes.csv: ${message}`),
  );
});

describe("entries side by side", () => {
  it("have ids that differ", () => {
    const two = [{ pattern: "permutation" }, { pattern: "permutation" }];
    expect(problemsOf(() => scenarioOf(two))).toEqual([
      "traffic.1.id: permutation is also the id of traffic.0; ids must differ",
    ]);
    expect(scenarioOf([{ pattern: "permutation" }, { pattern: "permutation", id: "p2" }]).flows).toHaveLength(32);
  });

  it("may not make two flows of one name", () => {
    const two = [
      { from: "h1", to: "h2" },
      { id: "h1-h2", from: "h1", to: "h2" },
    ];
    expect(problemsOf(() => scenarioOf(two))).toEqual([
      "traffic: two flows are called h1-h2; give the entries ids that differ",
    ]);
  });

  it("tell their flows' group", () => {
    const groups = scenarioOf([
      { from: "h1", to: "h2", qps: 2 },
      { from: "h1", to: "h2" },
      { id: "x", from: ["h3", "h4"], to: "h5", outstanding: 7 },
    ]).flows.map(({ id, group, outstanding }) => `${id} ${group} ${outstanding}`);
    expect(groups).toEqual(["h1-h2 h1-h2 2", "h1-h2#2 h1-h2 2", "h1-h2#3 h1-h2 2", "x/h3 x 7", "x/h4 x 7"]);
  });

  it("refuse a pattern that is not known", () => {
    expect(refusal({ pattern: "poison" })).toMatch(
      /^traffic.0.pattern: poison is not one of flows, incast.*did you mean poisson/,
    );
  });
});

describe("transport and probes", () => {
  it("fills in the window of the kind of recovery", () => {
    const transportOf = (transport: object) => scenarioOf([], { transport }).transport;
    expect(transportOf({ type: "rc" })).toEqual({
      type: "rc",
      recovery: "go-back-n",
      timeout: 14,
      retry_count: 7,
      window: 2048,
      reordering: 3,
      trim_naks: false,
      spraying: "none",
      entropies: 256,
    });
    expect(transportOf({ recovery: "selective-repeat" }).window).toBe(256);
    expect(transportOf({ recovery: "selective-repeat", window: 100 }).window).toBe(100);
    const wide = { recovery: "selective-repeat", window: 512 };
    expect(problemsOf(() => transportOf(wide))).toEqual([
      "transport.window: 512 packets are more than a selective acknowledgement can tell apart; at most 256, or recovery: go-back-n",
    ]);
    expect(problemsOf(() => transportOf({ timeout: 32 }))[0]).toMatch(/^transport.timeout: 32 is too large/);
  });

  it("samples the ports to the first 64 destinations", () => {
    const topology = { kind: "leaf-spine", leaves: 10, spines: 1, hosts: 10 };
    const { probes, flows } = scenarioOf([{ pattern: "permutation" }], { topology, probes: { flows: 5 } });
    expect(probes.queues).toHaveLength(64);
    expect(probes.queues[63]).toEqual({ switch: expect.stringMatching(/^leaf/), port: flows[63]?.to, priority: 3 });
    expect(probes.flows).toBe(5);
  });
});

describe("warnings of many flows", () => {
  it("name every switch on the way once, and those alone", () => {
    const { warnings } = parseScenario({
      topology: {
        kind: "leaf-spine",
        leaves: 3,
        spines: 2,
        hosts: 2,
        switch_overrides: { spine2: { dscp_map: { 26: 3, 48: 6 } } },
      },
      switch: { dscp_map: "sonic-azure" },
      traffic: [{ pattern: "permutation", hosts: ["h1-1", "h2-1"], dscp: 26 }],
    });
    const wrong = "dscp_map gives DSCP 26 (data of priority 3) priority 1, not 3";
    expect([...warnings].sort()).toEqual(["leaf1", "leaf2", "spine1"].map((name) => `switch ${name}: ${wrong}`));
  });
});
