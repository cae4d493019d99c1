/** DCTCP in scenarios and files of daemons: its parameters, its needs, and refusals. */
import { describe, expect, it } from "vitest";
import { checkForLab } from "../../src/clocks/lab/check.js";
import { parseScenarioText } from "../../src/scenario/scenario.js";
import { refusalOf } from "../fixtures/refusal.js";

const BASE = `
topology: { kind: star, hosts: 3, link: { rate: 10Gbps } }
switch: { ecn: { kmin: 65KB, kmax: 65KB, pmax: 1 } }
congestion: { algorithm: dctcp }
transport: { type: rc }
traffic: [{ id: x, from: [h1, h2], to: h3 }]
`;
const load = (...set: string[]) => parseScenarioText(BASE, "dctcp.yaml", { set });
const refusal = (...set: string[]) => refusalOf(() => load(...set));

describe("congestion.algorithm dctcp", () => {
  it("has the parameters of Linux", () => {
    const { scenario, warnings } = load();
    expect(warnings).toEqual([]);
    expect(scenario.congestion).toEqual({
      algorithm: "dctcp",
      parameters: { dctcp_shift_g: 4, alpha_on_init: 1, initcwnd: 10, min_cwnd: 2 },
    });
    const own = ["dctcp_shift_g=5", "dctcp_alpha_on_init=512", "initcwnd=3", "min_cwnd=1"];
    expect(load(...own.map((one) => `congestion.parameters.${one}`)).scenario.congestion.parameters).toEqual({
      dctcp_shift_g: 5,
      alpha_on_init: 0.5,
      initcwnd: 3,
      min_cwnd: 1,
    });
  });

  it.each([
    [
      "congestion.parameters.dctcp_shift_g=11",
      "congestion.parameters.dctcp_shift_g: 11 is out of range",
      "must be 0 to 10",
    ],
    ["congestion.parameters.min_cwnd=0", "congestion.parameters.min_cwnd: 0 is out of range", "must be 1 to 65536"],
    [
      "congestion.parameters.rpg_ai_rate=5Mbps",
      "congestion.parameters.rpg_ai_rate: is a parameter of DCQCN",
      "use those of DCTCP, or algorithm: dcqcn",
    ],
    [
      "congestion.parameters.rpgGd=7",
      "congestion.parameters.rpgGd: is a parameter of QCN",
      "use those of DCTCP, or algorithm: qcn",
    ],
    [
      "congestion.profile=mlx5",
      "congestion.profile: mlx5 is a profile of DCQCN",
      "leave it out: DCTCP has no profiles, or algorithm: dcqcn",
    ],
    [
      "congestion.variant=qcn-t",
      "congestion.variant: qcn-t is a variant of QCN",
      "leave it out, or use algorithm: qcn",
    ],
    [
      "transport.type=stream",
      "congestion.algorithm: dctcp needs acknowledgements, which transport.type stream does not have",
      "use transport.type: rc, or algorithm: dcqcn",
    ],
  ])("%s is refused", (set, message, hint) => {
    const text = refusal(set);
    expect(text).toContain(message);
    expect(text).toContain(hint);
  });

  it("keeps its parameters to itself", () => {
    const text = refusal("congestion.algorithm=dcqcn", "congestion.parameters.initcwnd=4");
    expect(text).toContain("congestion.parameters.initcwnd: is a parameter of DCTCP");
    expect(text).toContain("use those of DCQCN, or algorithm: dctcp");
  });

  it("warns where nothing marks", () => {
    expect(load("switch.ecn.enabled=false").warnings).toEqual([
      "congestion.algorithm is dctcp, but no switch marks (switch.ecn.enabled: true): only losses slow senders",
    ]);
  });

  it("is for labs, too", () => {
    expect(() => checkForLab(load().scenario)).not.toThrow();
  });
});
