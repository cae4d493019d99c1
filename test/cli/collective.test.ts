/** `weir collective`, `weir graph`, and message graphs given to `weir sim run`. */
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../src/clocks/sim/run.js";
import { type FakeSim, weir as run } from "./harness.js";

const folder = () => mkdtempSync(join(tmpdir(), "weir-"));
const simulated: FakeSim = (options, _signals, scenario) => runSimulation(scenario, options);
const weir = (...argv: string[]) => run(argv, undefined, undefined, simulated);

function fileOf(name: string, text: string): string {
  const file = join(folder(), name);
  writeFileSync(file, text);
  return file;
}
const kPingPong = `num_ranks 2
rank 0 {
  l1: send 1000b to 1 tag 5
  l2: recv 1000b from 1 tag 6
  l3: calc 700
  l3 requires l2
}
rank 1 {
  l1: recv 1000b from 0 tag 5
  l2: send 1000b to 0 tag 6
  l2 requires l1
}
`;
const kFabric = `name: fabric
topology: { kind: star, hosts: 3, link: { rate: 100Gbps, delay: 1us } }
congestion: { algorithm: none }
traffic: [{ from: h1, to: h3, id: own }]
`;

describe("weir collective", () => {
  it("prints the columns of nccl-tests for each size and algorithm", async () => {
    const { status, stdout } = await weir(
      "collective",
      "all-reduce",
      "--ranks",
      "4",
      "--size",
      "400KB..800KB",
      "--algorithm",
      "ring,halving-doubling",
      "--quiet",
    );
    expect(status).toBe(0);
    const rows = stdout.split("\n").filter((line) => /^\d/.test(line));
    expect(rows.map((row) => row.trim().split(/\s+/).slice(0, 3))).toEqual([
      ["400000", "100000", "ring"],
      ["400000", "100000", "halving-doubling"],
      ["800000", "200000", "ring"],
      ["800000", "200000", "halving-doubling"],
    ]);
    expect(stdout).toMatch(/time us +algbw +busbw +ideal us +slowdown +PFC sent +marked +lost/);
  });

  it("equals its closed form on an ideal network: 2(n-1)(L + S/n G), and bus bandwidth follows from it", async () => {
    const { stdout } = await weir(
      "collective",
      "allreduce",
      "--ranks",
      "8",
      "--size",
      "8MB",
      "--network",
      "ideal",
      "--json",
      "--quiet",
    );
    const [row] = JSON.parse(stdout).rows;
    // Two cables of 500 ns, 1 MB at 100 Gb/s.
    const time = 14 * (1 + 80);
    expect(row.time_us).toBeCloseTo(time, 9);
    expect(row.algbw_GBps).toBeCloseTo(8e6 / time / 1e3, 9);
    expect(row.busbw_GBps).toBeCloseTo(((8e6 / time / 1e3) * 14) / 8, 9);
  });

  it("takes known phases from memory, says how much and how wrong that was, and judges it", async () => {
    const words = ["collective", "allreduce", "--ranks", "8", "--iterations", "10", "--json", "--quiet"];
    const [[exact], [fast]] = await Promise.all(
      [[], ["--fast-forward", "auto"]].map(async (more) => {
        const { status, stdout } = await weir(...words, ...more);
        expect(status).toBe(0);
        return JSON.parse(stdout).rows;
      }),
    );
    expect(exact).not.toHaveProperty("skipped");
    expect(fast.skipped).toBeGreaterThan(0.8);
    expect(fast.error).toBeLessThan(0.01);
    expect(fast.time_us / exact.time_us).toBeCloseTo(1, 2);
    const { stdout } = await weir(...words.slice(0, -2), "--quiet", "--fast-forward", "auto");
    expect(stdout).toMatch(/lost +from memory +verified +error\n/);
  });

  it("simulates as much of what is known as is asked for", async () => {
    const words = ["collective", "allreduce", "--ranks", "8", "--iterations", "10", "--json", "--quiet"];
    const { status, stdout } = await weir(...words, "--fast-forward", "auto", "--verify", "20%");
    expect(status).toBe(0);
    const [{ verified, skipped }] = JSON.parse(stdout).rows;
    expect(verified).toBeGreaterThan(0.2);
    expect(verified).toBeLessThan(0.4);
    expect(skipped).toBeGreaterThan(0.5);
    const without = await weir(...words, "--verify", "20%");
    expect(without.status).toBe(2);
    expect(without.stderr).toContain("--verify: not without --fast-forward");
  });

  it("does not believe what was not compared", async () => {
    const args = ["--ranks", "2", "--iterations", "5", "--fast-forward", "0.1%"];
    const { status, stderr } = await weir("collective", "allreduce", ...args, "--quiet");
    expect(status).toBe(3);
    expect(stderr).toMatch(/^warning: ring, 1 MB: .* that it takes: use --fast-forward off\n/);
  });

  it("has no packets to skip on other networks", async () => {
    const { status, stderr } = await weir("collective", "allreduce", "--network", "fair", "--fast-forward", "auto");
    expect(status).toBe(2);
    expect(stderr).toContain("--fast-forward: not with --network fair");
  });

  it("takes what NCCL would choose", async () => {
    const { stdout } = await weir(
      "collective",
      "allreduce",
      "--ranks",
      "32",
      "--size",
      "8KB",
      "--algorithm",
      "auto,tree",
      "--network",
      "ideal",
      "--json",
      "--quiet",
    );
    const [auto, tree] = JSON.parse(stdout).rows;
    expect(auto.time_us).toBe(tree.time_us);
    expect(auto.ran).toBe("allreduce by tree");
    const tuner = fileOf("rules.csv", "allreduce,0,1000000,ring,simple,-1,-1,-1\n");
    const ruled = await weir(
      "collective",
      "allreduce",
      "--ranks",
      "32",
      "--size",
      "8KB",
      "--tuner",
      tuner,
      "--network",
      "ideal",
      "--json",
      "--quiet",
    );
    expect(JSON.parse(ruled.stdout).rows[0].ran).toBe("allreduce by ring");
  });

  it("leaves nothing on a stream that is no terminal but what it has to say", async () => {
    const { stderr } = await weir("collective", "allreduce", "--network", "ideal");
    expect(stderr).not.toContain("\r");
    expect(stderr).not.toContain("\u001b");
  });

  it.each([
    [["allsum"], "allsum is no collective"],
    [["alltoall", "--algorithm", "ring"], "--algorithm ring: alltoall has pairwise, pxn, and auto"],
    [["allreduce", "--size", "2MB..1MB"], "not a size, nor a range of rising ones"],
    [["allreduce", "--size", "0"], "not a size"],
    [["allreduce", "--with-traffic"], "--with-traffic: not without --fabric"],
    [["allreduce", "--ranks", "9", "--fabric", fileOf("fabric.yaml", kFabric)], "9 ranks, and room for 3"],
  ])("refuses %j", async (argv, message) => {
    const { status, stderr } = await weir("collective", ...argv, "--quiet");
    expect(status).toBe(2);
    expect(stderr).toContain(message);
  });
});

describe("weir sim run with a message graph", () => {
  it("runs it on the network of a scenario, whose own traffic is left out", async () => {
    const [graph, fabric, out] = [
      fileOf("ping.goal", kPingPong),
      fileOf("fabric.yaml", kFabric),
      join(folder(), "out"),
    ];
    const argv = ["sim", "run", graph, "--fabric", fabric, "--place", "h3,h1", "--json", "--quiet", "--out", out];
    const { status, stdout, stderr } = await weir(...argv);
    expect(stderr).not.toContain("error");
    expect(status).toBe(0);
    const result = JSON.parse(stdout);
    expect(result).toMatchObject({
      scenario: "ping",
      flows: [
        { from: "h3", to: "h1" },
        { from: "h1", to: "h3" },
      ],
    });
    expect(result.graphs[0]).toMatchObject({
      id: "ping",
      ranks: 2,
      messages: 2,
      critical: { messages: 2, calculation_s: 700e-9 },
    });
    expect(JSON.parse(readFileSync(join(out, "timeline.json"), "utf8")).traceEvents.length).toBeGreaterThan(4);
    const both = await weir(...argv, "--with-traffic", "--duration", "1ms");
    expect(JSON.parse(both.stdout).flows.map(({ id }: { id: string }) => id)).toContain("own");
  });

  it("tells its time where each message is alone, and what it lacks", async () => {
    const [graph, fabric] = [fileOf("ping.goal", kPingPong), fileOf("fabric.yaml", kFabric)];
    const { status, stdout } = await weir("sim", "run", graph, "--fabric", fabric, "--network", "ideal", "--json");
    expect(status).toBe(0);
    // Twice two cables and 1,000 bytes, and the calculation.
    expect(JSON.parse(stdout).graphs[0].time_s).toBeCloseTo(2 * (2000e-9 + 80e-9) + 700e-9, 15);
    const alone = await weir("sim", "run", graph);
    expect([alone.status, alone.stderr]).toEqual([
      2,
      expect.stringContaining("is a message graph, and has no network"),
    ]);
    const flows = await weir("sim", "run", fabric, "--network", "ideal");
    expect([flows.status, flows.stderr]).toEqual([2, expect.stringContaining("has no message graph")]);
  });

  it("tells its time on fair shares, names them, the busiest links and what is left out, and nothing that only packets have", async () => {
    const file = fileOf(
      "jobs.yaml",
      `${kFabric.replace(/traffic.*\n/, "")}traffic:
  - { from: h1, to: h3, id: own }
  - { id: one, pattern: collective, collective: broadcast, algorithm: ring, size: 1MB, ranks: 2, place: [h1, h2] }
  - { id: other, pattern: collective, collective: broadcast, algorithm: ring, size: 1MB, ranks: 2, place: [h3, h2] }
`,
    );
    const argv = ["sim", "run", file, "--set", "transport.type=rc", "--network", "fair"];
    const { status, stdout, stderr } = await weir(...argv, "--json");
    expect(status).toBe(0);
    expect(stderr).toContain("warning: --network fair leaves out: traffic that is no message graph (1)\n");
    const told = JSON.parse(stdout);
    expect(Object.keys(told)).toEqual(["scenario", "network", "graphs", "links"]);
    expect(told.network).toBe("fair");
    // Both have a half of the receiver's link.
    for (const graph of told.graphs) expect(graph.time_s).toBeCloseTo(2000e-9 + 160e-6, 12);
    expect(told.graphs[0].slowdown).toBeCloseTo(162 / 82, 9);
    expect(told.links[0]).toMatchObject({ from: "sw", to: "h2", bytes: 2e6 });
    const table = (await weir(...argv)).stdout;
    expect(table).toContain("Message graphs, fair shares of links, no packets");
    expect(table).toMatch(/Busiest links\nfrom +to +bytes +busy\n.*\nsw +h2 +2\.00M +98\.8%/);
    expect(table).not.toMatch(/PFC|mark|queue/i);
    const columns = (await weir("collective", "allreduce", "--ranks", "4", "--network", "fair")).stdout;
    expect(columns).toContain("; fair shares of links, no packets");
    expect(columns).toMatch(/ideal us +slowdown *\n/);
  });

  it("refuses a graph that can never end, by rank, operation and line", async () => {
    const graph = fileOf("bad.goal", kPingPong.replace("from 0 tag 5", "from 0 tag 7"));
    const { status, stderr } = await weir("sim", "run", graph, "--fabric", fileOf("fabric.yaml", kFabric), "--quiet");
    expect(status).toBe(2);
    expect(stderr).toMatch(/rank [01], operation 0 \((send|receive).*line \d+/);
  });
});

describe("weir graph", () => {
  it("shows what is in a file, and writes it as GOAL that says the same", async () => {
    const file = fileOf("ping.goal", kPingPong);
    const { status, stdout } = await weir("graph", "show", file, "--json");
    expect(status).toBe(0);
    const summary = JSON.parse(stdout);
    expect(summary).toMatchObject({
      ranks: 2,
      sends: 2,
      receives: 2,
      calculations: 1,
      bytes: 2000,
      criticalCalculation: 700,
    });
    const output = join(folder(), "again.goal");
    expect((await weir("graph", "convert", file, "-o", output)).status).toBe(0);
    const again = JSON.parse((await weir("graph", "show", output, "--json")).stdout);
    expect({ ...again, source: file }).toEqual(summary);
    expect((await weir("graph", "show", file)).stdout).toContain("critical path, calculations alone");
  });

  it("names the formats that there are", async () => {
    const { status, stderr } = await weir("graph", "show", fileOf("what.ever", "?"));
    expect(status).toBe(2);
    expect(stderr).toContain("GOAL text");
    expect((await weir("graph", "show", "/nowhere.goal")).status).toBe(2);
  });
});
