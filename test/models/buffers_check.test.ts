/** Verdicts of `weir plan check` on scenarios: simulations of them lose frames and pause as it says. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../src/clocks/sim/run.js";
import { checkPlan } from "../../src/models/buffers/check.js";
import { parseScenario, type Scenario } from "../../src/scenario/scenario.js";
import { pfcThresholdAlone } from "../../src/scenario/thresholds.js";
import { nativeObstacle, skipWhere } from "../obstacles.js";

const simulate = (scenario: Scenario) => runSimulation(scenario, { signal: new AbortController().signal });

interface Incast {
  rate: number;
  delay: number;
  mtu: number;
  senders: number;
  headroom: number;
  mode?: "dynamic" | "static";
  /** Two switches, so that one pauses the other. */
  dumbbell?: boolean;
}

/** Nothing but PFC holds senders at full rate back; the receiver sends as well, so that PFC frames have to wait for its frames. */
function incast({ rate, delay, mtu, senders, headroom, mode = "dynamic", dumbbell = false }: Incast): Scenario {
  const ports = senders + 2;
  const topology = dumbbell ? { kind: "dumbbell", senders, receivers: 2 } : { kind: "star", hosts: senders + 1 };
  const names = Array.from({ length: senders }, (_, i) => (dumbbell ? `s${i + 1}` : `h${i + 2}`));
  const sink = dumbbell ? "r1" : "h1";
  const buffer = { headroom, total: 8 * ports * headroom + 200_000, mode };
  return parseScenario({
    name: "incast",
    duration: "400us",
    warmup: "0us",
    congestion: { algorithm: "none" },
    host: { path_mtu: 1024 },
    topology: { ...topology, link: { rate, delay, mtu } },
    switch: { buffer, ecn: { enabled: false } },
    traffic: [
      { id: "in", from: names, to: sink },
      ...names.slice(0, 2).map((to, i) => ({ id: `out${i}`, from: sink, to })),
    ],
  }).scenario;
}

/** Bytes that the tightest link needs. */
function needed(input: Omit<Incast, "headroom">): number {
  const { links } = checkPlan(incast({ ...input, headroom: 1e6 }), { response: 0 });
  return Math.max(...links.map(({ needed_bytes }) => needed_bytes));
}

const kIncasts = fc.record({
  rate: fc.constantFrom(10e9, 40e9, 100e9),
  delay: fc.integer({ min: 0, max: 3_000 }),
  mtu: fc.constantFrom(1_088, 1_500),
  senders: fc.integer({ min: 2, max: 5 }),
  mode: fc.constantFrom("dynamic" as const, "static" as const),
  dumbbell: fc.boolean(),
});

describe("an incast that only PFC holds back", () => {
  skipWhere(nativeObstacle());

  it("loses nothing where the plan says lossless", async () => {
    await fc.assert(
      fc.asyncProperty(kIncasts, async (input) => {
        const scenario = incast({ ...input, headroom: needed(input) });
        expect(checkPlan(scenario, { response: 0 })).toMatchObject({ lossless: true });
        const { result } = await simulate(scenario);
        expect(result.frames).toMatchObject({ dropped: 0, missing: 0 });
        const paused = Object.values(result.switches).map(({ pfc_sent }) => pfc_sent["3"] ?? 0);
        expect(Math.max(...paused)).toBeGreaterThan(0);
      }),
      { seed: 6, numRuns: 40 },
    );
  });

  // While the rest comes in, an ingress of two still drains at half of its rate.
  it("loses frames where the headroom holds two fifths of what is on the cable", async () => {
    await fc.assert(
      fc.asyncProperty(kIncasts, async (input) => {
        const headroom = 1 + Math.floor((0.4 * 2 * input.delay * input.rate) / 8e9);
        const scenario = incast({ ...input, headroom });
        const { lossless, findings } = checkPlan(scenario, { response: 0 });
        expect(lossless).toBe(false);
        expect(findings.map(({ kind }) => kind)).toContain("loss");
        const { result } = await simulate(scenario);
        const drops = Object.values(result.switches).flatMap((s) => Object.keys(s.drops));
        expect(new Set(drops)).toEqual(new Set(["headroom_full"]));
      }),
      { seed: 7, numRuns: 40 },
    );
  });

  it("loses frames without room for the one that crosses the threshold", async () => {
    const input = { rate: 40e9, delay: 0, mtu: 1_088, senders: 4 };
    const frame = input.mtu + 22;
    const { result } = await simulate(incast({ ...input, headroom: needed(input) - frame }));
    expect(result.switches.sw?.drops.headroom_full).toBeGreaterThan(0);
  });
});

/** One ingress at 40 Gb/s, one egress at 10 Gb/s: the queue grows until the ingress is paused. F is 540 KB. */
function funnel(mode: "dynamic" | "static", ecn: Record<string, unknown> = { enabled: false }): Scenario {
  return parseScenario({
    name: "funnel",
    duration: "1ms",
    warmup: "0us",
    congestion: { algorithm: "none" },
    topology: {
      hosts: ["a", "b"],
      switches: ["sw"],
      links: [
        { from: "a", to: "sw", rate: "40Gbps", delay: "0ns" },
        { from: "sw", to: "b", rate: "10Gbps", delay: "0ns" },
      ],
    },
    switch: {
      buffer: { total: "700KB", headroom: "10KB", mode, ...(mode === "static" && { threshold: "100KB" }) },
      ecn,
    },
    traffic: [{ id: "x", from: "a", to: "b" }],
    probes: { interval: "1us", queues: ["sw:b:3"] },
  }).scenario;
}

describe.each(["dynamic", "static"] as const)("the shared buffer, %s", (mode) => {
  skipWhere(nativeObstacle());

  // The threshold is F / 2 for beta = P.
  const alone = mode === "static" ? 100_000 : 270_000;
  const frame = 1_522;

  it("stops the queue of one ingress where the plan says", async () => {
    const scenario = funnel(mode);
    const [sw] = scenario.switches;
    expect(sw && pfcThresholdAlone(sw.buffer, 2)).toBe(alone);
    const { series } = await simulate(scenario);
    const most = Math.max(...(series.queues["sw:b:3"]?.bytes ?? []));
    // The frame that crosses it and the one begun at the sender come on top; the one being sent is not in the queue.
    expect(most).toBeGreaterThan(alone - 2 * frame);
    expect(most).toBeLessThanOrEqual(alone + 3 * frame);
  });

  it("marks before it pauses exactly where the plan says", async () => {
    const judged = async (threshold: number) => {
      const scenario = funnel(mode, { kmin: threshold, kmax: threshold, pmax: 1 });
      const { result } = await simulate(scenario);
      const { ecn_marked, pfc_sent } = result.switches.sw ?? {};
      expect(pfc_sent?.["3"]).toBeGreaterThan(0);
      return { planned: checkPlan(scenario).ecn_before_pfc, marked: (ecn_marked as number) > 0 };
    };
    expect(await judged(alone - 2 * frame)).toEqual({ planned: true, marked: true });
    expect(await judged(alone + 4 * frame)).toEqual({ planned: false, marked: false });
  });
});

const star = (
  changes: Record<string, unknown> = {},
  traffic: unknown[] = [{ id: "x", from: ["h2", "h3"], to: "h1" }],
) => parseScenario({ topology: { kind: "star", hosts: 5 }, traffic, ...changes }).scenario;

describe("a plan check", () => {
  it("finds nothing in the defaults", () => {
    expect(checkPlan(star())).toMatchObject({ lossless: true, ecn_before_pfc: true, findings: [] });
  });

  it("allows peers the response of the standard, or what is given", () => {
    const scenario = star({ topology: { kind: "star", hosts: 5, link: { rate: "100Gbps", delay: "500ns" } } });
    expect(checkPlan(scenario).lossless).toBe(false);
    expect(checkPlan(scenario, { response: 0 }).lossless).toBe(true);
    const [link] = checkPlan(scenario, { response: 0 }).links;
    expect(link?.needed_bytes).toBe(3 * 1_522 + 84 + 2 * 6_250);
    expect(checkPlan(scenario, { response: 1_000 }).links[0]?.needed_bytes).toBe(3 * 1_522 + 84 + 2 * 6_250 + 12_500);
  });

  it.each([
    ["PFC is off", { switch: { pfc: { enabled: false } } }, "traffic of priority 3 is not lossless (PFC is off)"],
    [
      "the priority is lossy",
      { switch: { pfc: { priorities: [4] } } },
      "traffic of priority 3 is not lossless (pfc.priorities: 4)",
    ],
    [
      "the threshold is out of reach",
      { switch: { buffer: { mode: "static", threshold: "12MB" } } },
      "xoff is never reached: the threshold 12 MB is not below the 11.104 MB that all share",
    ],
    [
      "a slow host has no room after xoff",
      { host: { receive_buffer: { rate: "10Gbps", size: "100KB", xoff: "90KB" } } },
      "10 KB is less than the 22.202 KB that may come from sw (40 Gb/s, 1 us) after a pause",
    ],
  ])("finds that %s", (_, changes, message) => {
    const { lossless, findings } = checkPlan(star(changes));
    expect(lossless).toBe(false);
    expect(findings.filter(({ kind }) => kind === "loss").map((finding) => finding.message)).toContain(message);
  });

  it("finds a neighbour that does not obey", () => {
    const { scenario } = parseScenario({
      topology: {
        kind: "dumbbell",
        senders: 2,
        receivers: 2,
        switch_overrides: { left: { pfc: { priorities: [3, 4] } } },
      },
      switch: { pfc: { priorities: [4] } },
      traffic: [],
    });
    const { findings } = checkPlan(scenario);
    expect(findings).toContainEqual({
      kind: "loss",
      device: "left",
      message: "switch right does not obey pauses of priority 3",
    });
  });

  // F = 1 MB - 8 x 5 x 22.4 KB = 104 KB and beta = P. One ingress, e queues of q: kmin < F / (e + q).
  const small = { switch: { buffer: { total: "1MB" } } };
  it.each([
    ["h2 alone to h1", [{ id: "x", from: "h2", to: "h1" }], 1, 1, 52_000],
    [
      "h2 to two",
      [
        { from: "h2", to: "h1" },
        { from: "h2", to: "h3" },
      ],
      2,
      2,
      26_000,
    ],
    [
      "two to two others",
      [
        { from: "h2", to: "h1" },
        { from: "h4", to: "h3" },
      ],
      1,
      2,
      34_666,
    ],
    ["two to one", [{ id: "x", from: ["h2", "h3"], to: "h1" }], 1, 1, 52_000],
  ])("bounds kmin by the queues in use: %s", (_, traffic, e, q, bound) => {
    const { pairs } = checkPlan(star(small, traffic));
    expect(pairs[0]).toMatchObject({ egress_queues: e, switch_queues: q, t_ecn_bytes: bound });
    const judged = (kmin: number) =>
      checkPlan(star({ switch: { ...small.switch, ecn: { kmin } } }, traffic)).ecn_before_pfc;
    expect([bound - 1, bound + 1].map(judged)).toEqual([true, false]);
  });

  it("names the pair of ports where a pause may come first, and what other traffic could do", () => {
    const { ecn_before_pfc, findings, switches } = checkPlan(
      star({ switch: { ...small.switch, ecn: { kmin: "60KB" } } }, [{ from: "h2", to: "h1" }]),
    );
    expect(ecn_before_pfc).toBe(false);
    // Its t_ECN is F / (P n (beta + 1)) beta.
    expect(switches[0]).toMatchObject({ t_ecn_bytes: 2_311, ecn_before_pfc: false });
    expect(findings.map(({ kind }) => kind)).toEqual(["order", "note"]);
    expect(findings[0]?.message).toContain("h2 -> h1, priority 3: kmin 60 KB is not below 52 KB");
  });

  it("takes every pair of ports without traffic, and those on all shortest paths with it", () => {
    expect(checkPlan(star({}, [])).pairs).toHaveLength(5 * 4);
    const { scenario } = parseScenario({
      topology: { kind: "leaf-spine", leaves: 2, spines: 2, hosts: 1 },
      traffic: [{ from: "h1-1", to: "h2-1" }],
    });
    const pairs = checkPlan(scenario).pairs.map((pair) => `${pair.switch}: ${pair.ingress} > ${pair.egress}`);
    expect(pairs.sort()).toEqual([
      "leaf1: h1-1 > spine1",
      "leaf1: h1-1 > spine2",
      "leaf2: spine1 > h2-1",
      "leaf2: spine2 > h2-1",
      "spine1: leaf1 > leaf2",
      "spine2: leaf1 > leaf2",
    ]);
  });

  it("follows pinned paths only", () => {
    const { scenario } = parseScenario({
      topology: {
        kind: "leaf-spine",
        leaves: 2,
        spines: 2,
        hosts: 1,
        routes: [{ from: "h1-1", to: "h2-1", via: ["leaf1", "spine2", "leaf2"] }],
      },
      traffic: [{ from: "h1-1", to: "h2-1" }],
    });
    expect(checkPlan(scenario).pairs.map((pair) => pair.egress)).toEqual(["spine2", "leaf2", "h2-1"]);
  });

  it("does not judge links without a rate", () => {
    const { scenario } = parseScenario({
      topology: {
        hosts: ["a", "b"],
        switches: ["s", "t"],
        links: ["a -- s", { from: "s", to: "t", rate: "unlimited" }, "t -- b"],
      },
      traffic: [{ from: "a", to: "b" }],
    });
    const { links, findings } = checkPlan(scenario);
    expect(links.map(({ device, peer }) => `${device} ${peer}`)).toEqual(["s a", "t b"]);
    expect(findings).toContainEqual({ kind: "note", device: "s", message: "not checked: links without a rate, to t" });
  });
});

describe("ECN before PFC", () => {
  const scenario = (algorithm: string, ecn: object) =>
    parseScenario({
      topology: { kind: "star", hosts: 3, link: { delay: "0ns" } },
      switch: { ecn },
      congestion: { algorithm },
      transport: { type: "rc" },
      traffic: [{ from: ["h1", "h2"], to: "h3" }],
    }).scenario;
  const late = { kmin: "11MB", kmax: "12MB" };

  it.each(["timely", "swift", "hpcc", "none"])(
    "is no condition under %s, which takes no marks, and that is told",
    (algorithm) => {
      const unmarked = checkPlan(scenario(algorithm, { enabled: false }), { response: 0 });
      expect(unmarked).toMatchObject({ lossless: true, ecn_before_pfc: null, ecn_heard: false });
      const found = checkPlan(scenario(algorithm, late), { response: 0 });
      expect(found).toMatchObject({ ecn_before_pfc: false, ecn_heard: false });
      expect(new Set(found.findings.map(({ kind }) => kind))).toEqual(new Set(["note"]));
      expect(found.findings.at(-1)?.message).toBe(
        `congestion control ${algorithm} takes no marks: that ECN comes before PFC is no condition`,
      );
    },
  );

  it.each(["dcqcn", "dctcp", "nscc"])("is one under %s", (algorithm) => {
    expect(checkPlan(scenario(algorithm, { enabled: false }))).toMatchObject({ ecn_before_pfc: null, ecn_heard: true });
    const { findings } = checkPlan(scenario(algorithm, late), { response: 0 });
    expect(findings.map(({ kind }) => kind)).toContain("order");
  });
});
