import { EventEmitter } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { CliContext } from "../../../src/cli/context.js";
import { addVersusOn } from "../../../src/cli/versus.js";
import type { Clock } from "../../../src/clocks/clock.js";
import { kClocks } from "../../../src/clocks/clocks.js";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import { sampleSeries, simulatedResult } from "../../result/report/sample.js";
import { clocksWith } from "../fake_tools.js";
import { folder, kScenario } from "../fixture.js";
import { runVerb } from "../verb.js";

/** Goodput is the seed in Gb/s, and the queue that of the algorithm. */
const simulate = (): Clock["run"] => async (scenario) => {
  const result = simulatedResult();
  const { algorithm, profile } = scenario.congestion;
  Object.assign(result, { scenario: scenario.name, congestion_control: algorithm, profile, seed: scenario.seed });
  result.totals.goodput_bps = scenario.seed * 1e9;
  result.fidelity.valid = !scenario.description.includes("invalid");
  const performance = { cpu_s: 1, wall_s: 1, events: 1, hops: 1, threads: 1, round_ns: 1, rounds: 1, rss_bytes: 1 };
  return { result, series: sampleSeries(2, 50), flowTable: [], performance, complete: true };
};

/** Runs every point in this process. */
async function versus(
  argv: readonly string[],
  text = kScenario,
  simulation: (signals: EventEmitter) => Clock["run"] = simulate,
  directory = folder(),
  context: Partial<CliContext> = {},
) {
  const signals = new EventEmitter();
  const file = join(directory, "incast.yaml");
  const out = join(directory, "out");
  writeFileSync(file, text);
  const own = await context.clocks?.();
  const clocks = { ...clocksWith(simulation(signals)), ...(own && { wire: own.wire }) };
  const ran = await runVerb(addVersusOn, ["versus", file, "--jobs", "1", "--out", out, ...argv], {}, signals, {
    ...context,
    clocks: async () => clocks,
  });
  const page = join(out, "versus.html");
  return { ...ran, page: existsSync(page) ? readFileSync(page, "utf8") : "" };
}

/** Stops the run by Ctrl-C at the second point. */
const interrupted = (signals: EventEmitter): Clock["run"] => {
  let points = 0;
  return async (scenario, options) => {
    const outcome = await simulate()(scenario, options);
    if (++points === 2) signals.emit("SIGINT", "SIGINT");
    return { ...outcome, complete: points < 2 };
  };
};

/** Labs of which the first is not valid; how many there were is counted. */
function labs() {
  const ran: string[] = [];
  const run: Clock["run"] = async (scenario, { signal }) => {
    ran.push(scenario.congestion.algorithm);
    const { result, series } = await simulate()(scenario, { signal });
    result.totals.goodput_bps /= 2;
    result.fidelity.valid = ran.length > 1;
    return { result, series, flowTable: [], complete: true };
  };
  const clocks = { ...kClocks, wire: { ...kClocks.wire, run } };
  return { ran, context: { clocks: async () => clocks, elevate: async () => undefined } };
}

const kReal = `${kScenario}transport: { type: rc }
duration: 3ms
warmup: 1ms
probes: { interval: 20us }
`;

describe("weir versus", () => {
  it("runs simulations, in which who hears nothing fills the queue", async () => {
    const algorithms = ["--algorithms", "none,swift,dctcp", "--seeds", "1", "--json", "--quiet"];
    const { status, stdout, page } = await versus(algorithms, kReal, () => runSimulation);
    expect(status).toBe(0);
    const [none, swift, dctcp] = JSON.parse(stdout).contenders;
    expect(swift.figures.queue_p99_bytes.mean).toBeLessThan(none.figures.queue_p99_bytes.mean);
    expect(dctcp.figures.ecn_marked.mean).toBeGreaterThan(0);
    expect(swift.figures.convergence_s.mean).toBeLessThan(2e-3);
    expect(page).toContain("curves are of seed 1");
  });

  it("stops at Ctrl-C, and goes on from there", async () => {
    const directory = folder();
    const argv = ["--algorithms", "dcqcn,none", "--seeds", "2"];
    const stopped = await versus(argv, kScenario, interrupted, directory);
    expect(stopped).toMatchObject({ status: 130, stdout: "", page: "" });
    expect(stopped.stderr).toContain("4 points: 1 done, 3 left; results in ");
    const again = await versus([...argv, "--quiet"], kScenario, simulate, directory);
    expect(again).toMatchObject({ status: 0, stderr: "" });
  });

  it("shows figures of each with confidence over the seeds, and differences seed by seed", async () => {
    const { status, stdout, page } = await versus(["--algorithms", "dcqcn,none", "--seeds", "3"]);
    expect(status).toBe(0);
    expect(page).toContain("<title>incast - Weir</title>");
    expect(page).toContain("Slowdown by size, p99");
    expect(page).toContain('id="charts"');
    expect(stdout).toContain("incast, mean +- 95% confidence over 3 seeds\n");
    expect(stdout).toMatch(/^goodput Gb\/s +2\.000 \+-2\.484 +2\.000 \+-2\.484$/m);
    expect(stdout).toMatch(/^paused us, all senders +25\.00 \+-0 +25\.00 \+-0$/m);
    expect(stdout).toMatch(/^up to 10 KB +p99 +3\.75 \+-0 +3\.75 \+-0$/m);
    expect(stdout).not.toContain("packets sent again");
    expect(stdout).toContain("Against dcqcn, seed by seed: mean difference +- 95% confidence\n");
    expect(stdout).toMatch(/^goodput Gb\/s +0\.0% \+-0\.0% \?$/m);
    expect(stdout).toContain("+-0: the same with every seed\n");
  });

  it("has contenders where none are named, by the transport", async () => {
    const usual = async (...more: string[]) => {
      const { stdout } = await versus(["--seeds", "1", "--json", ...more]);
      return JSON.parse(stdout).contenders.map(({ label }: { label: string }) => label);
    };
    expect(await usual()).toEqual(["dcqcn", "dcqcn:mlx5", "none"]);
    expect(await usual("--set", "transport.type=rc")).toEqual(["dcqcn", "timely-patched", "swift", "dctcp", "none"]);
  });

  it("has all as JSON, and each run as CSV", async () => {
    const { stdout } = await versus(["--algorithms", "dcqcn:hpcc-ns3,none", "--seeds", "2", "--json"]);
    const document = JSON.parse(stdout);
    expect(document).toMatchObject({ scenario: "incast", seeds: [1, 2] });
    const [first] = document.contenders;
    expect(first).toMatchObject({ label: "dcqcn:hpcc-ns3", algorithm: "dcqcn", profile: "hpcc-ns3" });
    expect(first.figures.goodput_bps).toMatchObject({ mean: 1.5e9, min: 1e9, max: 2e9, seeds: 2 });
    expect(first.sizes.map(({ size }: { size: string }) => size)).toEqual(["all", "up to 10 KB", "over 10 MB"]);
    const csv = await versus(["--algorithms", "dcqcn,none", "--seeds", "1", "--csv"]);
    expect(csv.stdout.split("\n").slice(0, 2)).toEqual([
      expect.stringMatching(/^contender,clock,seed,valid,goodput_bps,jain,/),
      expect.stringMatching(/^dcqcn,sim,1,true,1000000000,0\.9987,/),
    ]);
  });

  it("has real frames beside virtual time, and runs again what was not valid", async () => {
    const directory = folder();
    const argv = ["--algorithms", "dcqcn,none", "--on", "all", "--seeds", "1"];
    const { ran, context } = labs();
    const first = await versus(argv, kScenario, simulate, directory, context);
    expect(first.status).toBe(3);
    expect(first.stdout).toMatch(/^figure +dcqcn sim +dcqcn wire +none sim +none wire$/m);
    expect(first.stdout).toMatch(/^goodput Gb\/s +1\.000 +0\.500 +1\.000 +0\.500$/m);
    expect(first.stdout).toContain("Wire against virtual time, of the means\n");
    expect(first.stdout).toMatch(/^goodput Gb\/s +-50\.0% +-50\.0%$/m);
    expect(first.stdout).toContain("INVALID: dcqcn wire, seed 1: ");
    const again = await versus([...argv, "--json", "--quiet"], kScenario, simulate, directory, context);
    expect(again.status).toBe(0);
    expect(ran).toEqual(["dcqcn", "none", "dcqcn"]);
    const { contenders } = JSON.parse(again.stdout);
    expect(contenders.map(({ label, clock }: Record<string, string>) => `${label} ${clock}`)).toEqual([
      "dcqcn sim",
      "dcqcn wire",
      "none sim",
      "none wire",
    ]);
  });

  it("has equations beside virtual time, for what they are of", async () => {
    const on = ["--on", "sim,model", "--seeds", "1", "--quiet"];
    const { status, stdout } = await versus(["--algorithms", "dcqcn", ...on], kScenario);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^figure +dcqcn sim +dcqcn model$/m);
    expect(stdout).toMatch(/^goodput Gb\/s +1\.000 +\d/m);
    const document = await versus(["--algorithms", "dcqcn", ...on, "--json"], kScenario);
    const [sim, model] = JSON.parse(document.stdout).contenders;
    // The equations know nothing of these: 0 would be a claim.
    for (const name of ["pauses", "drops"]) {
      expect(sim.figures).toHaveProperty(name);
      expect(model.figures).not.toHaveProperty(name);
    }
    const other = await versus(["--algorithms", "dcqcn,none", ...on], kScenario);
    expect(other).toMatchObject({ status: 2, stderr: expect.stringContaining("with none: congestion.algorithm: ") });
  });

  it("says what no lab runs before anything runs", async () => {
    const large = [
      "--algorithms",
      "dcqcn",
      "--on",
      "wire",
      "--set",
      "topology={kind: leaf-spine, leaves: 4, spines: 2, hosts: 64}",
      "--set",
      "traffic=[]",
    ];
    const { status, stderr } = await versus(large);
    expect(status).toBe(2);
    expect(stderr).toContain("256 hosts are too many for a lab");
    const unknown = await versus(["--algorithms", "dcqcn", "--on", "hardware"]);
    expect(unknown).toMatchObject({ status: 2, stderr: expect.stringContaining("use sim, wire, model or all") });
  });

  it("refuses with status 2, and says with 3 that runs are not valid", async () => {
    const refused = await versus(["--algorithms", "dcqcn,swift"]);
    expect(refused).toMatchObject({ status: 2, stdout: "", stderr: expect.stringContaining("with swift: ") });
    const invalid = await versus(["--algorithms", "dcqcn"], `${kScenario}description: invalid\n`);
    expect(invalid).toMatchObject({ status: 3, stdout: expect.stringContaining("INVALID: dcqcn, seed 1: ") });
  });
});
