import { describe, expect, it } from "vitest";
import { CASES } from "../../bench/simulation/cases.js";
import { parsePeer, runPeer } from "../../bench/simulation/peer.js";
import { machine, tables } from "../../bench/simulation/report.js";
import { hpccFabric } from "../../bench/simulation/scenarios.js";
import { markdown } from "../../bench/table.js";
import { Fabric } from "../../src/scenario/fabric.js";
import { parseScenario } from "../../src/scenario/scenario.js";

const small = CASES.filter(({ name }) => !/1024|8192|100000|10ms/.test(name));

describe("cases of the simulation benchmark", () => {
  it.each(small.map((one) => [one.name, one] as const))("%s is a valid scenario", (name, { scenario, group }) => {
    const { hosts, flows } = scenario({ name, quick: true });
    expect(hosts.length).toBeGreaterThan(1);
    expect(flows.length > 0).toBe(group !== "hosts" && name !== "flows-0");
  });

  it("connect HPCC's fabric as its description has it", () => {
    const { scenario } = parseScenario(hpccFabric("100us"));
    expect([scenario.hosts.length, scenario.switches.length, scenario.links.length]).toEqual([320, 56, 480]);
    const fabric = new Fabric(scenario);
    const degrees = scenario.switches.map((_, i) => fabric.ports[i]?.length);
    expect(degrees).toEqual([...Array(20).fill(20), ...Array(20).fill(8), ...Array(16).fill(5)]);
    const rates = scenario.links.map(({ rate }) => rate / 1e9);
    expect(rates).toEqual([...Array(320).fill(100), ...Array(160).fill(400)]);
    const kmin = scenario.switches.map(({ ecn }) => ecn.kmin / 1e3);
    expect(kmin).toEqual([...Array(20).fill(400), ...Array(36).fill(1600)]);
  });
});

describe("a simulator beside ours", () => {
  it("is timed as a whole, with the hops that it prints last", async () => {
    const peer = parsePeer("incast-2-rc=for i in $(seq 20000); do :; done; echo hops 7; echo hops 42", ["incast-2-rc"]);
    const { cpu_s, hops } = await runPeer(peer, 30);
    expect(hops).toBe(42);
    expect(cpu_s).toBeGreaterThan(0);
  });

  it("must name a case", () => {
    expect(() => parsePeer("incast-9=true", ["incast-2-rc"])).toThrow("It is CASE=COMMAND");
  });

  it("may fail or take too long", async () => {
    await expect(runPeer({ name: "one", command: "exit 3" }, 30)).rejects.toThrow("exit status 3");
    await expect(runPeer({ name: "one", command: "sleep 30" }, 1)).rejects.toThrow("exit status 124");
  });
});

describe("the report", () => {
  const memory = { before: 1e6, built: 2e6, after: 3e6, peak: 4e6 };
  const sample = (run_cpu_s: number) => ({
    hosts: 5,
    flows: 4,
    simulated_s: 0.02,
    hops: 600_000,
    events: 900_000,
    run_cpu_s,
    whole_cpu_s: 2 * run_cpu_s,
    memory,
  });

  it("gives medians, and ratios of neighbours in time", () => {
    const peers = [
      { cpu_s: 1, hops: 300_000 },
      { cpu_s: 4, hops: 300_000 },
    ];
    const all = tables([{ name: "incast-4-rc", samples: [sample(0.1), sample(0.2)], peers }]);
    const [speed, , beside] = all.map(markdown);
    expect(speed).toContain("| incast-4-rc | 5 | 4 | 20000 | 600000 | 0.150 | 0.300 | 4.50 | 4.0 |");
    // 6 M/s to 300 k/s, then 3 M/s to 75 k/s; 1 s to 0.1 s, then 4 s to 0.2 s.
    expect(beside).toContain("| incast-4-rc | 2.50 | 300000 | 187.5 | 30.00 | 15.00 | 15.00 | 7.50 |");
  });

  it("names the machine", () => {
    expect(machine()).toMatch(/CPUs, Node \d+.*load average \d/);
  });
});
