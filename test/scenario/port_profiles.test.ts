import { describe, expect, it } from "vitest";
import { composeSwitchWorker } from "../../src/device/compose.js";
import { loadSwitchDaemon } from "../../src/device/file/load.js";
import { checkPlan } from "../../src/models/buffers/index.js";
import { headroomFor } from "../../src/scenario/headroom.js";
import { parseScenarioText } from "../../src/scenario/scenario.js";
import { reservedBytes } from "../../src/scenario/thresholds.js";
import { starText } from "../fixtures/networks.js";

const scenario = (profiles: string, rest = "") =>
  parseScenarioText(`
topology: ${starText(["a", "b", "c"], { rate: "40Gbps", delay: "500ns" }, { c: { rate: "100Gbps" } })}
traffic: [{ from: [a, b], to: c }]
switch:
  port_profiles: ${profiles}
${rest}
`).scenario;

const sw = (profiles: string, rest?: string) => {
  const [found] = scenario(profiles, rest).switches;
  if (found === undefined) throw new Error("no switch");
  return found;
};

describe("profiles of ports", () => {
  it("are of ports by name, or of all of a rate, and have the rest from the switch", () => {
    const { profiled, ecn } = sw(
      "{ slow: { ports: [a], ecn: { kmin: 9KB } }, fast: { rate: 100Gbps, buffer: { beta: 2 } } }",
    );
    expect([...profiled.keys()]).toEqual(["a", "c"]);
    expect(profiled.get("a")).toMatchObject({
      name: "slow",
      ecn: { kmin: 9000, kmax: ecn.kmax, pmax: ecn.pmax },
      buffer: { beta: 8 },
    });
    expect(profiled.get("c")).toMatchObject({
      name: "fast",
      ecn: { kmin: ecn.kmin },
      buffer: { beta: 2, headroom: 22_400 },
    });
  });

  it("a port that is named is not of the profile of its rate", () => {
    const { profiled } = sw("{ all: { rate: 40Gbps, ecn: { kmin: 6KB } }, one: { ports: [b], ecn: { kmin: 7KB } } }");
    expect(profiled.get("a")?.ecn.kmin).toBe(6000);
    expect(profiled.get("b")?.ecn.kmin).toBe(7000);
  });

  it("find headroom by cable, rate and MTU, and reserve it", () => {
    const { buffer, profiled } = sw("{ long: { ports: [c], buffer: { cable: 300m } } }");
    const { bytes } = headroomFor({ rate: 100e9, mtu: 1500, delay: 1500, interfaceDelay: 0, trigger: true });
    expect(profiled.get("c")?.buffer.headroom).toBe(bytes);
    expect(reservedBytes(buffer, 3)).toBe(8 * (2 * 22_400 + bytes));
  });

  it.each([
    ["{ x: { ports: [d], ecn: { kmin: 1KB } } }", "switch.port_profiles.x.ports: unknown port d"],
    ["{ x: { ecn: { kmin: 1KB } } }", "switch.port_profiles.x: it is for no port"],
    ["{ x: { ports: [a] }, y: { ports: [a] } }", "switch.port_profiles.y.ports: a is of profile x, too"],
    ["{ x: { rate: 40Gbps }, y: { rate: 40Gbps } }", "switch.port_profiles.y.rate: 40 Gb/s is that of profile x, too"],
    [
      "{ x: { ports: [a], ecn: { kmin: 300KB } } }",
      "switch.port_profiles.x.ecn.kmin: 300 KB is greater than kmax 200 KB",
    ],
    [
      "{ x: { ports: [a], buffer: { headroom: 1KB, cable: 3m } } }",
      "switch.port_profiles.x.buffer.cable: headroom is given, too",
    ],
    ["{ x: { ports: [a], buffer: { cable: 3s } } }", "switch.port_profiles.x.buffer.cable: 3s: unknown length unit"],
    ["{ x: { ports: [a], buffer: { headroom: 20MB } } }", "switch.buffer.total: 12 MB is too small for the headroom"],
    ["{ x: { ports: [a], colour: red } }", "switch.port_profiles.x.colour: unknown field"],
  ])("refuses %s", (profiles, message) => {
    expect(() => scenario(profiles)).toThrow(message);
  });

  it("weir plan check goes by them", () => {
    const tight = checkPlan(scenario("{ tight: { ports: [a], buffer: { headroom: 3KB } } }"), { response: 0 });
    expect(tight.links.map(({ peer, headroom_bytes, enough }) => [peer, headroom_bytes, enough])).toEqual([
      ["a", 3000, false],
      ["b", 22_400, true],
      ["c", 22_400, true],
    ]);
    const late = checkPlan(scenario("{ late: { ports: [c], ecn: { kmin: 6MB, kmax: 7MB } } }"), { response: 0 });
    expect(late.ecn_before_pfc).toBe(false);
    expect(late.findings.map(({ message }) => message).join()).toContain("a -> c, priority 3: kmin 6 MB is not below");
    // Another port's Kmin is no business of this one's.
    expect(
      checkPlan(scenario("{ late: { ports: [a], ecn: { kmin: 6MB, kmax: 7MB } } }"), { response: 0 }).ecn_before_pfc,
    ).toBe(true);
  });

  it("hand a daemon's ports what they have", () => {
    const { config } = loadSwitchDaemon("sw.yaml", {
      text: `
ports: [{ interface: x, rate: 1Gbps }, { interface: y, rate: 1Gbps }]
port_profiles:
  edge: { ports: [y], ecn: { kmin: 10KB, kmax: 20KB, pmax: 50% }, buffer: { headroom: 30KB, lossy_alpha: 2 }, qcn: { cpQSp: 9KB } }
`,
    });
    const [plain, edge] = composeSwitchWorker(config).switches[0]?.ports ?? [];
    expect(plain).not.toHaveProperty("red");
    expect(edge).toMatchObject({
      red: { kmin: 10_000, kmax: 20_000, pmax: 0.5, averaged: false },
      buffer: { headroom: 30_000, beta: 8, lossy_alpha: 2 },
      qcn: { queue_set_point: 9000, weight: 1, sample_base: 150_000 },
    });
  });
});
