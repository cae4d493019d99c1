/** NSCC and spraying in scenarios: their parameters, their needs, and refusals. */
import { describe, expect, it } from "vitest";
import { checkForLab } from "../../src/clocks/lab/check.js";
import { composeSimulation } from "../../src/clocks/sim/compose.js";
import { Fabric } from "../../src/scenario/fabric.js";
import { variationsOf } from "./variations.js";

const BASE = `
topology: { kind: star, hosts: 3, link: { rate: 100Gbps } }
switch: { buffer: { headroom: 40KB } }
congestion: { algorithm: nscc }
transport: { type: rc, recovery: selective-repeat, reordering: 250 }
traffic: [{ id: x, from: [h1, h2], to: h3 }]
`;
const { load, refusal, native } = variationsOf(BASE);

describe("congestion.algorithm nscc", () => {
  it("has the simulator's parameters, and no others", () => {
    const { scenario, warnings } = load();
    expect(warnings).toEqual([]);
    expect(scenario.congestion.parameters).toEqual({
      nscc_base_rtt: 12e3,
      nscc_target: 0.75,
      nscc_alpha: 4,
      nscc_fi: 5,
      nscc_eta: 0.15,
      nscc_fi_scale: 0.25,
      nscc_no_delay: 1e3,
      nscc_gamma: expect.closeTo(0.8, 12),
      nscc_max_md: expect.closeTo(0.5, 12),
      nscc_delay_alpha: expect.closeTo(0.0125, 12),
      nscc_adjust_packets: 8,
      nscc_qa_gate: 3,
      nscc_max_window: 1.5,
    });
  });

  it("runs on longer times where a lab is slower, all by the same factor", () => {
    expect(native(1)).toMatchObject({
      nscc: { nscc_base_rtt: 12e3, nscc_no_delay: 1e3, reference_rtt: 12e3, nscc_alpha: 4 },
    });
    expect(native(400, "congestion.parameters.nscc_base_rtt=10us")).toMatchObject({
      nscc: { nscc_base_rtt: 4e6, nscc_no_delay: 400e3, reference_rtt: 4.8e6, nscc_alpha: 4, nscc_fi: 5 },
    });
  });

  it.each([
    [["congestion.parameters.nscc_base_rtt=1ns"], "nscc_base_rtt: 1ns is out of range", "must be 1 us to 10 s"],
    [["congestion.parameters.nscc_target=0"], "nscc_target: 0 is out of range", "must be 0.01 to 100"],
    [["congestion.parameters.nscc_delay_alpha=0%"], "the average delay would never change", "must be above 0%"],
    [["congestion.parameters.swift_ai=1"], "swift_ai: is a parameter of Swift", "use those of NSCC"],
    [
      ["transport.type=stream"],
      "congestion.algorithm: nscc needs acknowledgements, which transport.type stream does not have",
      "use transport.type: rc, or algorithm: dcqcn",
    ],
  ])("%s is refused", (set, message, hint) => {
    const text = refusal(...set);
    expect(text).toContain(message);
    expect(text).toContain(hint);
  });

  it("warns where no switch marks, and where a packet alone takes as long as the base round-trip time", () => {
    expect(load("switch.ecn.enabled=false").warnings).toEqual([
      "congestion.algorithm is nscc, but no switch marks (switch.ecn.enabled: true): only losses slow senders",
    ]);
    expect(load("topology.link.rate=1Gbps").warnings).toEqual([
      expect.stringContaining("nscc_base_rtt 12 us is not more than"),
    ]);
  });

  it("is for labs, too", () => {
    expect(() => checkForLab(load().scenario)).not.toThrow();
  });
});

describe("transport.spraying", () => {
  it("is of all flows, with so many ports", () => {
    const { scenario, warnings } = load("transport.spraying=reps", "transport.entropies=64");
    expect(warnings).toEqual([]);
    const { transport } = composeSimulation(scenario, new Fabric(scenario), []);
    expect(transport).toMatchObject({ spraying: "reps", entropies: 64, recovery: "selective-repeat" });
    expect(composeSimulation(load().scenario, new Fabric(load().scenario), []).transport).toMatchObject({
      spraying: "none",
      entropies: 256,
    });
  });

  it.each([
    [
      ["transport.spraying=reps", "transport.recovery=go-back-n"],
      "transport.spraying: reps reorders packets, and go-back-n sends everything again from the first that is late",
      "use recovery: selective-repeat, or spraying: none",
    ],
    [
      ["transport.spraying=oblivious", "congestion.algorithm=qcn", "switch.qcn.enabled=true"],
      "transport.spraying: qcn may tell flows by their UDP source port, which oblivious changes",
      "use spraying: none, or another congestion.algorithm",
    ],
    [["transport.spraying=all"], "transport.spraying: all is not one of", "none, oblivious, reps"],
    [
      ["transport.spraying=reps", "transport.type=stream", "congestion.algorithm=dcqcn"],
      "transport.spraying: transport.type stream counts what comes late as lost",
      "use transport.type: rc, or spraying: none",
    ],
    [["transport.spraying=reps", "transport.entropies=0"], "transport.entropies", "1"],
    [["transport.spraying=reps", "transport.entropies=20000"], "transport.entropies", "16384"],
  ])("%s is refused", (set, message, hint) => {
    const text = refusal(...set);
    expect(text).toContain(message);
    expect(text).toContain(hint);
  });

  it("warns where packets that are late would count as lost", () => {
    expect(load("transport.spraying=reps", "transport.reordering=3").warnings).toEqual([
      "transport.spraying: reps reorders packets, and one that 3 have overtaken counts as lost: use transport.reordering: 250",
    ]);
  });

  it("is for any congestion control by acknowledgements or CNPs", () => {
    for (const algorithm of ["dcqcn", "dctcp", "swift", "none"]) {
      expect(() => load("transport.spraying=reps", `congestion.algorithm=${algorithm}`)).not.toThrow();
    }
  });
});
