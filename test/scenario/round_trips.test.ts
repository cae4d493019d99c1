/** TIMELY and Swift in scenarios and files of daemons: their parameters, their needs, and refusals. */
import { describe, expect, it } from "vitest";
import { checkForLab } from "../../src/clocks/lab/check.js";
import { variationsOf } from "./variations.js";

const BASE = `
topology: { kind: star, hosts: 3, link: { rate: 10Gbps } }
congestion: { algorithm: timely }
transport: { type: rc }
traffic: [{ id: x, from: [h1, h2], to: h3 }]
`;
const { load, refusal, native } = variationsOf(BASE);

describe("congestion.algorithm timely", () => {
  it("has the paper's parameters, and those of its patched form", () => {
    const { scenario, warnings } = load("switch.ecn.enabled=false");
    expect(warnings).toEqual([]);
    expect(scenario.congestion).toMatchObject({ profile: "timely-sigcomm15", variant: "timely" });
    const { parameters } = scenario.congestion;
    expect(parameters).toMatchObject({ patched: false, timely_beta: 0.8, timely_delta: 10e6, timely_t_low: 50e3 });
    const patched = (...set: string[]) =>
      load("congestion.variant=timely-patched", ...set).scenario.congestion.parameters;
    expect(patched()).toMatchObject({ patched: true, timely_beta: 0.008, timely_segment: 16_384 });
    expect(patched("congestion.parameters.timely_beta=1%")).toMatchObject({ timely_beta: 0.01 });
    expect(load("topology.link.rate=100Gbps").scenario.congestion.parameters).toMatchObject({ timely_delta: 100e6 });
  });

  it("runs on longer times and lower rates where a lab is slower", () => {
    expect(native(1)).toMatchObject({
      timely: {
        timely_t_low: 50e3,
        timely_t_high: 500e3,
        timely_min_rtt: 20e3,
        timely_delta: 10e6,
        timely_segment: 16_384,
      },
    });
    expect(native(400)).toMatchObject({
      timely: {
        timely_t_low: 20e6,
        timely_t_high: 200e6,
        timely_min_rtt: 8e6,
        timely_delta: 25e3,
        timely_min_rate: 25e3,
        timely_segment: 16_384,
        timely_alpha: 0.875,
      },
    });
    const swift = native(400, "congestion.algorithm=swift");
    expect(swift).toMatchObject({
      swift: { swift_base_target: 8e6, swift_hop_scaling: 1_221_200, swift_fs_range: 40e6, swift_ai: 1, swift_hops: 1 },
    });
  });

  it.each([
    [
      ["congestion.parameters.timely_t_low=600us"],
      "congestion.parameters.timely_t_low: 600 us is more than timely_t_high 500 us",
      "timely_t_low must be at most timely_t_high",
    ],
    [["congestion.parameters.timely_alpha=0%"], "timely_alpha: no RTT would change the gradient", "must be above 0%"],
    [["congestion.parameters.timely_hai_step=0"], "timely_hai_step: 0 is out of range", "must be 1 to 1000"],
    [
      ["congestion.parameters.timely_min_rate=20Gbps"],
      "is greater than the line rate 10 Gb/s",
      "at most the line rate",
    ],
    [
      ["congestion.parameters.swift_ai=1"],
      "swift_ai: is a parameter of Swift",
      "use those of TIMELY, or algorithm: swift",
    ],
    [
      ["congestion.algorithm=swift", "congestion.variant=timely-patched"],
      "congestion.variant: timely-patched is a variant of TIMELY",
      "leave it out, or use algorithm: timely",
    ],
    [
      ["congestion.algorithm=swift", "congestion.parameters.swift_fs_min_cwnd=100"],
      "swift_fs_min_cwnd: 100 is not below swift_fs_max_cwnd 100",
      "swift_fs_min_cwnd must be below swift_fs_max_cwnd",
    ],
    [
      ["congestion.algorithm=swift", "congestion.parameters.swift_min_cwnd=2000"],
      "swift_min_cwnd: 2000 is more than swift_max_cwnd 1000",
      "swift_min_cwnd must be at most swift_max_cwnd",
    ],
    [
      ["transport.type=stream"],
      "congestion.algorithm: timely needs acknowledgements, which transport.type stream does not have",
      "use transport.type: rc, or algorithm: dcqcn",
    ],
  ])("%s is refused", (set, message, hint) => {
    const text = refusal(...set);
    expect(text).toContain(message);
    expect(text).toContain(hint);
  });

  it("warns of thresholds that the network alone exceeds", () => {
    expect(load("congestion.parameters.timely_min_rtt=60us").warnings).toEqual([
      "congestion: timely_t_low 50 us is not more than timely_min_rtt 60 us: rates fall though no queue stands",
    ]);
  });

  it("warns of links on which a packet takes longer than a threshold", () => {
    const slow = (...set: string[]) =>
      load("topology.link.rate=100Mbps", ...set).warnings.filter((text) => /^congestion/.test(text));
    const rest = "that a packet of 1 KB takes over two links of 100 Mb/s: flows slow down though no queue stands";
    expect(slow()).toEqual([`congestion: timely_t_low 50 us is not more than the 176.96 us ${rest}`]);
    expect(slow("congestion.algorithm=swift")).toEqual([
      `congestion: swift_base_target 20 us is not more than the 176.96 us ${rest}`,
    ]);
    expect(slow("congestion.parameters.timely_t_low=200us")).toEqual([]);
  });

  it.each(["timely", "swift"])("%s is for labs, too", (algorithm) => {
    expect(() => checkForLab(load(`congestion.algorithm=${algorithm}`).scenario)).not.toThrow();
  });
});
