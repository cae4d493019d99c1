/** HPCC in scenarios: its parameters, its needs, and refusals. */
import { describe, expect, it } from "vitest";
import { checkForLab } from "../../src/clocks/lab/check.js";
import { networkSwitch } from "../../src/device/network.js";
import { Fabric } from "../../src/scenario/fabric.js";
import { variationsOf } from "./variations.js";

const BASE = `
topology: { kind: star, hosts: 3, link: { rate: 10Gbps } }
switch: { ecn: { enabled: false } }
congestion: { algorithm: hpcc }
transport: { type: rc }
traffic: [{ id: x, from: [h1, h2], to: h3 }]
`;
const { load, refusal, native } = variationsOf(BASE);

describe("congestion.algorithm hpcc", () => {
  it("has the paper's parameters, and no others", () => {
    const { scenario, warnings } = load();
    expect(warnings).toEqual([]);
    expect(scenario.congestion.parameters).toEqual({
      hpcc_eta: expect.closeTo(0.95, 12),
      hpcc_max_stage: 5,
      hpcc_w_ai: 80,
      hpcc_base_rtt: 13e3,
    });
  });

  it("runs on a longer round-trip time where a lab is slower, and on the same bytes", () => {
    expect(native(1)).toMatchObject({
      hpcc: { hpcc_eta: expect.closeTo(0.95, 12), hpcc_max_stage: 5, hpcc_w_ai: 80, hpcc_base_rtt: 13e3 },
    });
    expect(native(400)).toMatchObject({
      hpcc: { hpcc_eta: expect.closeTo(0.95, 12), hpcc_max_stage: 5, hpcc_w_ai: 80, hpcc_base_rtt: 5.2e6 },
    });
  });

  it("has switches write telemetry, which they do for no other algorithm", () => {
    const switchOf = (...set: string[]) => {
      const { scenario } = load(...set);
      return networkSwitch(scenario, new Fabric(scenario), 0);
    };
    expect(switchOf()).toMatchObject({ telemetry: true });
    for (const algorithm of ["swift", "none"]) {
      expect(switchOf(`congestion.algorithm=${algorithm}`)).not.toHaveProperty("telemetry");
    }
  });

  it.each([
    [["congestion.parameters.hpcc_eta=0%"], "hpcc_eta: no link would be used", "must be above 0%"],
    [["congestion.parameters.hpcc_w_ai=0B"], "hpcc_w_ai: 0B is out of range", "must be 1 B to"],
    [["congestion.parameters.hpcc_base_rtt=1ns"], "hpcc_base_rtt: 1ns is out of range", "must be 1 us to 10 s"],
    [["congestion.parameters.swift_ai=1"], "swift_ai: is a parameter of Swift", "use those of HPCC"],
    [
      ["transport.type=stream"],
      "congestion.algorithm: hpcc needs acknowledgements, which transport.type stream does not have",
      "use transport.type: rc, or algorithm: dcqcn",
    ],
    [
      ["host.path_mtu=1024", "topology.link.mtu=1100"],
      "path_mtu: 1024 needs an MTU of 1152, but the link h1 -- sw has 1100",
      "use path_mtu: 512, or topology.link.mtu: 1152",
    ],
  ])("%s is refused", (set, message, hint) => {
    const text = refusal(...set);
    expect(text).toContain(message);
    expect(text).toContain(hint);
  });

  it("warns where windows are too small for the link, and where one flow alone has a queue", () => {
    const warnings = (...set: string[]) => load(...set).warnings;
    expect(warnings("topology.link.rate=1Gbps")).toEqual([
      "congestion: hpcc_base_rtt 13 us is not more than the 21.152 us that a packet of 1 KB and its acknowledgement take over two links: windows are too small for the link",
    ]);
    expect(warnings("congestion.parameters.hpcc_w_ai=1KB")).toEqual([
      "congestion: hpcc_w_ai 1 KB is more than (1 - hpcc_eta) of what hpcc_base_rtt 13 us holds (16.25 KB): one flow alone has a queue",
    ]);
  });

  it("is for labs, too", () => {
    expect(() => checkForLab(load().scenario)).not.toThrow();
  });
});
