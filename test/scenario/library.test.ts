/** A congestion control of a shared library in scenarios: refusals before anything is loaded. */
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { parseScenarioText } from "../../src/scenario/scenario.js";
import { refusalOf } from "../fixtures/refusal.js";

const BASE = `
topology: { kind: star, hosts: 3, link: { rate: 10Gbps } }
congestion: { algorithm: library, library: { file: mine.so, parameters: { step: 5 } } }
traffic: [{ id: x, from: [h1, h2], to: h3 }]
`;
const load = (...set: string[]) => parseScenarioText(BASE, "labs/mine.yaml", { set, directory: "labs" });
const refusal = (...set: string[]) => refusalOf(() => load(...set));

describe("congestion.algorithm library", () => {
  it("names a file beside the scenario, and values for its parameters", () => {
    const { scenario, warnings } = load("congestion.library.min_time_between_cnps=20us");
    expect(warnings).toEqual([]);
    expect(scenario.congestion).toEqual({
      algorithm: "library",
      parameters: { file: resolve("labs/mine.so"), names: ["step"], values: [5], min_time_between_cnps: 20_000 },
    });
    expect(load("congestion.library.file=/opt/it.so").scenario.congestion.parameters).toMatchObject({
      file: "/opt/it.so",
    });
  });

  it.each([
    ["congestion={algorithm: library}", "congestion.library.file: is missing"],
    ["congestion.library.file=", "congestion.library.file"],
    ["congestion.library.parameters.step=fast", "congestion.library.parameters.step"],
    ["congestion.library.min_time_between_cnps=1min", "congestion.library.min_time_between_cnps"],
    ["congestion.algorithm=dcqcn", "congestion.library: is not of DCQCN"],
    ["congestion.parameters.rpg_ai_rate=5Mbps", "congestion.parameters.rpg_ai_rate: is a parameter of DCQCN"],
    ["congestion.profile=mlx5", "congestion.profile: mlx5 is"],
  ])("is refused with %s", (set, message) => {
    expect(refusal(set)).toContain(message);
  });
});
