import { basename } from "node:path";
import fc from "fast-check";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { loadScenario, parseScenario, parseScenarioText, WeirError } from "../../src/scenario/scenario.js";
import { examples } from "../fixtures/examples.js";
import { problemsOf, refusalOf } from "../fixtures/refusal.js";

const BASE = `
duration: 100ms
topology:
  hosts: [h1, h2, r]
  switches: [sw]
  links:
    - h1 -- sw
    - h2 -- sw
    - r -- sw
switch:
  ecn: { kmin: 5KB, kmax: 200KB }
traffic:
  - { id: incast, from: [h1, h2], to: r }
`;

const load = (...set: string[]) => parseScenarioText(BASE, "incast.yaml", { set });

/** The CLI's text for the base scenario with these overrides. */
const refusal = (...set: string[]) => refusalOf(() => load(...set));

describe("a good scenario", () => {
  const { scenario, warnings } = load();

  it("has no warnings", () => expect(warnings).toEqual([]));

  it("is in base units with defaults filled in", () => {
    expect(scenario).toMatchObject({ name: "incast.yaml", scale: "auto", seed: 1, duration: 100e6, warmup: 20e6 });
    expect(scenario.links[0]).toEqual({ from: "h1", to: "sw", rate: 40e9, delay: 1000, mtu: 1500 });
    expect(scenario.switches[0]).toMatchObject({
      name: "sw",
      buffer: {
        total: 12e6,
        headroom: 22_400,
        priorities: 8,
        beta: 8,
        mode: "dynamic",
        xon_offset: 3000,
        lossy_alpha: 1,
      },
      ecn: {
        enabled: true,
        kmin: 5000,
        kmax: 200_000,
        pmax: 0.01,
        mark: "enqueue",
        queue: "instantaneous",
        priorities: [3],
      },
      pfc: { enabled: true, priorities: [3] },
      scheduler: { strict: [6], weights: [50, 1, 1, 50, 1, 1, 1, 1] },
      forwarding: "static",
    });
    expect(scenario.hosts[0]).toMatchObject({
      name: "h1",
      path_mtu: 1024,
      initial_rate: 40e9,
      cnp: { dscp: 48, priority: 6 },
    });
    expect(scenario.probes).toEqual({
      interval: 100_000,
      queues: [{ switch: "sw", port: "r", priority: 3 }],
      flows: 64,
    });
    expect(scenario).toMatchObject({
      ecmp_seed: 1,
      transport: { type: "stream", recovery: "go-back-n", timeout: 14, retry_count: 7, window: 2048 },
    });
  });

  it("expands traffic to flows", () => {
    expect(scenario.flows).toEqual([
      {
        id: "incast/h1",
        group: "incast",
        from: "h1",
        to: "r",
        priority: 3,
        dscp: 26,
        start: 0,
        stop: 100e6,
        operation: "write",
        message: 4e6,
        rate: undefined,
        bytes: undefined,
        sizes: undefined,
        outstanding: 2,
        source_mac: "host",
      },
      expect.objectContaining({ id: "incast/h2", group: "incast", from: "h2" }),
    ]);
    const ids = load(
      "traffic.0.qps=2",
      "traffic.1={from: h1, to: r}",
      "traffic.2={from: h1, to: r}",
    ).scenario.flows.map((f) => f.id);
    expect(ids).toEqual(["incast/h1", "incast/h1#2", "incast/h2", "incast/h2#2", "h1-r", "h1-r#2"]);
    expect(load("traffic.0.from=h1").scenario.flows.map((f) => f.id)).toEqual(["incast"]);
    expect(load("traffic.0.from=[]").scenario.flows).toEqual([]);
  });

  it("fills in an impairment, of one link or of all", () => {
    const none = { loss: 0, corrupt: 0, duplicate: 0, reorder: 0, jitter: 0, reorder_delay: 10_000 };
    const { links } = load(
      "topology.link.impairment.loss=1%",
      "topology.links.0={from: h1, to: sw, impairment: {jitter: 2us}}",
    ).scenario;
    expect(links.map((link) => link.impairment)).toEqual([
      { ...none, loss: 0.01, jitter: 2000 },
      { ...none, loss: 0.01 },
      { ...none, loss: 0.01 },
    ]);
  });

  it("takes the DSCP of a flow from the switch's map", () => {
    expect(load("switch.dscp_map=sonic-azure").scenario.flows[0]?.dscp).toBe(3);
    expect(load("switch.dscp_map={30: 3, 48: 6}").scenario.flows[0]?.dscp).toBe(30);
  });

  it("merges defaults, sections and devices", () => {
    fc.assert(
      fc.property(
        fc.option(fc.integer({ min: 0, max: 10_000 }), { nil: undefined }),
        fc.option(fc.integer({ min: 0, max: 10_000 }), { nil: undefined }),
        fc.option(fc.constantFrom(1, 4, 8), { nil: undefined }),
        (shared, own, beta) => {
          const topology = {
            hosts: ["a", "b"],
            switches: { x: { ecn: { kmin: own }, buffer: { beta } }, y: null },
            links: ["a -- x", "x -- y", "y -- b"],
          };
          const { scenario: s } = parseScenario({ topology, switch: { ecn: { kmin: shared, pmax: "2%" } } });
          const [x, y] = s.switches;
          expect(x?.ecn.kmin).toBe(own ?? shared ?? 5000);
          expect(y?.ecn.kmin).toBe(shared ?? 5000);
          expect([x?.ecn.pmax, x?.ecn.kmax, x?.buffer.beta, y?.buffer.beta]).toEqual([0.02, 200_000, beta ?? 8, 8]);
        },
      ),
    );
  });

  it("resolves the congestion profile", () => {
    expect(scenario.congestion.parameters).toMatchObject({
      form: "paper",
      g: 1 / 256,
      rate_decrease_factor: 0.5,
      rpg_time_reset: 55_000,
      initial_alpha_value: 1,
    });
    const other = load(
      "congestion.profile=mlx5",
      "congestion.parameters.rp_time_reset=100",
      "congestion.parameters.rpg_ai_rate=1%",
    ).scenario.congestion;
    expect(other.parameters).toMatchObject({
      form: "slotted",
      g: 5 / 1024,
      rpg_time_reset: 100_000,
      rpg_ai_rate: 400e6,
      rpg_hai_rate: 50e6,
    });
    expect(load("congestion.profile=otg").scenario.congestion.parameters).toMatchObject({
      rpg_ai_rate: 400_000,
      rpg_min_dec_fac: 0.9,
    });
  });
});

describe("--set", () => {
  it("overrides fields, list members and whole lists", () => {
    const { scenario } = load(
      "switch.ecn.kmin=20KB",
      "traffic.0.from=[h2]",
      "topology.links.0={from: h1, to: sw, delay: 5us}",
      "scale=40",
    );
    expect(scenario.switches[0]?.ecn.kmin).toBe(20_000);
    expect(scenario.flows.map((f) => f.from)).toEqual(["h2"]);
    expect([scenario.links[0]?.delay, scenario.scale]).toEqual([5000, 40]);
  });

  it("changes nothing but its field where aliases share a section", () => {
    const text = `
topology:
  hosts: { h1: &host { path_mtu: 1024, cnp: &cnp { priority: 6 } }, h2: *host, r: { cnp: *cnp } }
  switches: [sw]
  links: [h1 -- sw, h2 -- sw, r -- sw]
traffic: [{ from: h1, to: r }]
`;
    const set = ["topology.hosts.h1.path_mtu=512", "topology.hosts.h1.cnp.priority=5"];
    const { scenario } = parseScenarioText(text, "a.yaml", { set });
    expect(scenario.hosts.map((host) => [host.name, host.path_mtu, host.cnp.priority])).toEqual([
      ["h1", 512, 5],
      ["h2", 1024, 6],
      ["r", 1024, 6],
    ]);
  });

  it.each([
    ["switch.ecn.kmni=1", "scenario incast.yaml (--set): switch.ecn.kmni: unknown field\n  hint: did you mean kmin?"],
    ["traffic.5.from=h1", "--set traffic.5.from=h1: traffic is a list of 1; 5 is not an index of it"],
    ["duration.x=1", "--set duration.x=1: duration has no fields"],
    ["duration", "--set duration: no value"],
    ["__proto__.x=1", "--set __proto__.x=1: not a field"],
  ])("refuses %s", (set, message) => expect(refusal(set)).toContain(message));

  it("leaves it to the caller to print something", () => {
    const warn = vi.spyOn(process, "emitWarning");
    onTestFinished(() => warn.mockRestore());
    load("name=!tag odd");
    expect(() => parseScenarioText(`${BASE}\n? [a, b]\n: 1\n`, "incast.yaml")).toThrow("[ a, b ]: unknown field");
    expect(warn).not.toHaveBeenCalled();
  });
});

describe("a wrong scenario", () => {
  it.each([
    [
      ["switch.ecn.kmin=300KB"],
      "switch.ecn.kmin: 300 KB is greater than kmax 200 KB\n  hint: kmin must be between 0 and kmax",
    ],
    [["switch.ecn.pmax=150%"], "switch.ecn.pmax: 150% is out of range\n  hint: must be 0 to 1"],
    [["host.burst=-1"], "host.burst: -1 is out of range\n  hint: must be 0 B to 1 GB; a plain number means bytes"],
    [
      ["topology.link={rate: 40Gbsp}"],
      "topology.link.rate: 40Gbsp: unknown rate unit; use bit/s, kbps, Mbps, Gbps, Tbps",
    ],
    [["topology.links.3=h3 -- sw"], "topology.links.3: unknown host or switch h3\n  hint: did you mean h1?"],
    [
      ["topology.links.3=sw -- h1"],
      "topology.links.3: sw -- h1 is there twice\n  hint: there can be one link between two devices",
    ],
    [
      ["topology.hosts=[h1, h2, h2, r]"],
      "topology.hosts: host h2 is there twice\n  hint: every device needs a name of its own",
    ],
    [
      ["topology.hosts=[h1, h2, r, lone]"],
      'topology.links: host lone has no link\n  hint: add "lone -- SWITCH" to topology.links',
    ],
    [["switch.dscp_map={64: 1}"], "switch.dscp_map.64: a DSCP is a number from 0 to 63"],
    [["switch.dscp_map=cisco"], "switch.dscp_map: cisco is not one of nvidia, sonic-azure"],
    [
      ["topology.switches=[sw, s2]", "topology.links.3=h1 -- s2"],
      "topology.links: host h1 has 2 links\n  hint: a host has one link; use a switch to join more",
    ],
    [["traffic.0.to=q"], "traffic.0.to: unknown host q"],
    [["traffic.0.to=h1"], "traffic.0.from.0: h1 sends to itself\n  hint: sender and receiver must differ"],
    [["switch.scheduler.weights.3=101"], "switch.scheduler.weights.3: 101 is too large\n  hint: must be at most 100"],
    [["traffic.0.priority=8"], "traffic.0.priority: 8 is too large\n  hint: must be at most 7"],
    [["switch.buffer={headroom: 0}"], "switch.buffer.headroom: there is none, but priorities 3 are lossless"],
    [
      ["switch.buffer={total: 500KB}"],
      "switch.buffer.total: 500 KB is too small for the headroom of switch sw: 8 priorities x 3 ports x 22.4 KB = 537.6 KB\n" +
        "  hint: must be greater than 537.6 KB, or reserve for fewer priorities",
    ],
    [
      ["traffic.0.start=20ms", "traffic.0.stop=10ms"],
      "traffic.0.stop: 10 ms is not after start 20 ms\n  hint: stop must be greater than start",
    ],
    [
      ["warmup=100ms"],
      "warmup: 100 ms leaves nothing of the duration 100 ms\n  hint: warmup must be less than duration",
    ],
    [["host={path_mtu: 1000}"], "host.path_mtu: 1000 is not one of 256, 512, 1024, 2048, 4096"],
    [
      ["host={path_mtu: 2048}"],
      "host.path_mtu: 2048 needs an MTU of 2112, but the link h1 -- sw has 1500\n  hint: use path_mtu: 1024, or topology.link.mtu: 2112",
    ],
    [["scale=0.5"], "scale: 0.5 is too small\n  hint: must be at least 1"],
    [["scale=fast"], "scale: fast is not a number from 1 to 1000000, or auto"],
    [["scale={toString: 1}"], "scale: a mapping is not a number from 1 to 1000000, or auto"],
    [["traffic.0.pattern={toString: 1}"], "traffic.0.pattern: a mapping is not one of"],
    [
      ["congestion.parameters.rpg_threshold=32"],
      "congestion.parameters.rpg_threshold: 32 is out of range\n  hint: must be 1 to 31",
    ],
    [
      ["congestion.parameters.rpg_time_reset=0.1"],
      "congestion.parameters.rpg_time_reset: 0.1 is out of range\n  hint: must be 1 us to 10 s; a plain number is in us",
    ],
    [
      ["congestion.profile=mxl5"],
      "congestion.profile: mxl5 is not one of paper-sigcomm15, mlx5, mellanox-overview, ns3-rdma, hpcc-ns3, otg, 802.1qau, netfpga, shu, timely-sigcomm15, timely-snippet\n  hint: did you mean mlx5?",
    ],
    [["congestion.parameters={rpg_ai_rate: 5, rp_ai_rate: 6}"], "congestion.parameters.rp_ai_rate: is given twice"],
    [["topology.hosts={h1: {}, h2: {}, r: {}, 1x: {}}"], "topology.hosts.1x: 1x: a name starts with a letter"],
    [["topology.links.0.rate=unlimited", "topology.links.0.from=h1"], "topology.links.0 has no fields"],
    [
      ["topology.links.0={from: h1, to: sw, rate: unlimited}"],
      "topology.links.0.rate: host h1 needs a link with a rate: a NIC paces on it",
    ],
    [["probes.queues=[sw:h9:3]"], "probes.queues.0: unknown port of switch sw: h9"],
    [
      ["probes.interval=1us", "duration=10s"],
      "probes.interval: 1 us gives 10000000 samples\n  hint: must be at least 10 us for this duration",
    ],
    [["seed=abc"], "seed: expected a number, not abc"],
    [["topology.link=7"], "topology.link: expected a mapping, not 7"],
  ])("%j", (set, message) => expect(refusal(...set)).toContain(message));

  it("says where in the file", () => {
    const at = (text: string) => {
      try {
        parseScenarioText(text, "x.yaml");
      } catch (error) {
        return (error as Error).message;
      }
      return "accepted";
    };
    expect(at(BASE.replace("kmin: 5KB", "kmin: 5 bananas"))).toBe(
      "scenario x.yaml:11:10: switch.ecn.kmin: 5 bananas: unknown size unit; use B, KB, MB, GB, KiB, MiB, GiB, bit, kbit, Mbit, Gbit",
    );
    expect(at(BASE.replace("- r -- sw", "- r -- sq"))).toContain(
      "scenario x.yaml:9:7: topology.links.2: unknown host or switch sq",
    );
    expect(at(BASE.replace("traffic:", "trafic:"))).toContain("scenario x.yaml:12:1: trafic: unknown field");
  });

  it("reports all problems of a scenario at once", () => {
    const message = refusal("switch.ecn.kmin=300KB", "warmup=2s", "traffic.0.to=q");
    expect(message).toMatch(/^scenario incast.yaml: 3 problems\n/);
    expect(message).toContain(
      "  --set warmup: 2 s leaves nothing of the duration 100 ms\n    hint: warmup must be less than duration",
    );
  });
});

describe("topology", () => {
  const ring = {
    hosts: ["a", "b"],
    switches: ["x", "y", "z"],
    links: ["a -- x", "x -- y", "y -- z", "z -- x", "b -- z"],
  };
  const kEverySwitch = "via lists every switch from the one of the source to the one of the destination";
  const problems = (input: object) => problemsOf(() => parseScenario(input));

  it("refuses learning on a loop", () => {
    expect(problems({ topology: ring })).toEqual([]);
    expect(problems({ topology: ring, switch: { forwarding: "learning" } })).toEqual([
      expect.stringMatching(
        /^switch.forwarding: learning on x, but [xyz -]+ is a loop: flooded frames would go round for ever; use forwarding: static, or remove the loop$/,
      ),
    ]);
  });

  it("refuses a disconnected network", () => {
    const topology = { hosts: ["a", "b"], switches: ["x", "y"], links: ["a -- x", "b -- y"] };
    expect(problems({ topology })).toEqual([
      "topology.links: b, y cannot be reached from a; add links until every host and switch is connected",
    ]);
  });

  it.each([
    [{ from: "a", to: "b", via: ["x", "y", "z"] }, []],
    [
      { from: "a", to: "b", via: ["x", "y"] },
      [`topology.routes.0.via.1: a -> x -> y -> b is not a path: no link y -- b; ${kEverySwitch}`],
    ],
    [
      { from: "a", to: "b", via: ["y", "z"] },
      [`topology.routes.0.via.0: a -> y -> z -> b is not a path: no link a -- y; ${kEverySwitch}`],
    ],
    [{ from: "a", to: "b", via: ["x", "w"] }, ["topology.routes.0.via.1: unknown switch w; known: x, y, z"]],
    [{ from: "a", to: "q", via: ["x"] }, ["topology.routes.0.to: unknown host q; known: a, b"]],
    [
      { from: "a", to: "b", via: ["x", "y", "x", "z"] },
      ["topology.routes.0.via.2: x is on the way twice; a route visits a switch once"],
    ],
  ])("route %j", (route, expected) => expect(problems({ topology: { ...ring, routes: [route] } })).toEqual(expected));
});

describe("warnings", () => {
  it.each([
    [
      ["switch.ecn.kmin=100KB"],
      "switch sw: kmin 100 KB is not below beta (B - P n t_flight) / (P n (beta + 1)) = 424.533 KB",
      false,
    ],
    [["switch.ecn={kmin: 400, kmax: 1600}"], "switch sw: kmax 1.6 KB is less than two packets of MTU 1500", true],
    [
      ["switch.buffer={total: 1.125MB}", "switch.ecn.kmin=25KB"],
      "switch sw: kmin 25 KB is not below beta (B - P n t_flight) / (P n (beta + 1)) = 21.755 KB: PFC may act before ECN marks anything",
      true,
    ],
    [
      ["traffic.0.dscp=26", "switch.dscp_map=sonic-azure"],
      "switch sw: dscp_map gives DSCP 26 (data of priority 3) priority 1, not 3",
      true,
    ],
    [
      ["host={cnp: {priority: 3, dscp: 26}}"],
      "host r: CNPs have the priority 3 of the data, so congestion and pauses delay them too",
      true,
    ],
    [
      ["topology.link={delay: 10us}"],
      "switch sw: headroom 22.4 KB is less than the 104.65 KB that can be under way on the link to h1",
      true,
    ],
    [["traffic.0.priority=4"], "switch sw: priority 4 of the traffic is not lossless (pfc.priorities: 3)", true],
    [
      ["switch.buffer={mode: static, threshold: 900KB}"],
      "switch sw: static threshold 900 KB is more than (B - P n t_flight) / (P n) = 477.6 KB",
      true,
    ],
    [
      ["congestion.parameters.dce_tcp_rtt=40us"],
      "congestion: dce_tcp_rtt 40 us is not greater than min_time_between_cnps 50 us",
      true,
    ],
  ])("%j", (set, text, expected) => {
    expect(load(...set).warnings.some((warning) => warning.startsWith(text))).toBe(expected);
  });

  it("warns of an unshaped port between switches", () => {
    const topology = {
      hosts: ["a", "b"],
      switches: ["x", "y"],
      links: ["a -- x", "b -- y", { from: "x", to: "y", rate: "unlimited" }],
    };
    expect(parseScenario({ topology }).warnings).toEqual([
      "switch x: the port to y has no rate, so hardly a queue forms there: ECN and PFC will not act",
      "switch y: the port to x has no rate, so hardly a queue forms there: ECN and PFC will not act",
    ]);
  });
});

describe("hostile files", () => {
  const message = (text: string) => {
    try {
      parseScenarioText(text, "x.yaml");
    } catch (error) {
      expect(error).toBeInstanceOf(WeirError);
      return (error as Error).message;
    }
    return "accepted";
  };

  it("refuses duplicate keys, alias bombs, deep nesting, size, several documents and nothing", () => {
    expect(message(`${BASE}\nduration: 1s\n`)).toBe("scenario x.yaml:15:1: this field is there twice");
    const bomb = Array.from(
      { length: 12 },
      (_, i) =>
        `a${i}: &a${i} [${Array(9)
          .fill(i === 0 ? "x" : `*a${i - 1}`)
          .join(",")}]`,
    ).join("\n");
    expect(message(bomb)).toContain("Excessive alias count");
    expect(message("#".repeat(2_000_000))).toBe("scenario x.yaml: is too large; the limit is 1048576 bytes");
    expect(message("a: 1\n---\nb: 2\n")).toBe("scenario x.yaml:2:1: a second document begins here; a file holds one");
    expect(message("")).toBe("scenario x.yaml:1:1: expected a mapping, not nothing");
  });

  it("does not let a file reach prototypes", () => {
    expect(message(`${BASE}\n__proto__: { polluted: 1 }\n`)).toContain("__proto__: unknown field");
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it("names an unreadable file", () => {
    expect(() => loadScenario("/nonexistent/x.yaml")).toThrow("scenario /nonexistent/x.yaml: no such file");
  });
});

describe("examples", () => {
  /** Warnings about settings that are meant to be so. */
  const meant: Record<string, string[]> = {
    "liss-dcb.yaml": [
      "switch sw: priority 0 of the traffic is not lossless (pfc.priorities: 3)",
      "traffic bursts: priority 0 is not a CNPV, so QCN does not slow it",
    ],
  };

  it.each(examples("scenario"))("%s loads without warnings", (file) => {
    const { scenario, warnings } = loadScenario(file);
    expect(warnings).toEqual(meant[basename(file)] ?? []);
    expect(`${scenario.name}.yaml`).toBe(basename(file));
  });
});
