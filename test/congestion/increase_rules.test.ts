/** The rules of rate increase that Mellanox's overview has, as parameters of DCQCN. */
import { describe, expect, it } from "vitest";
import { ScenarioError } from "../../src/base/error.js";
import { dcqcn } from "../../src/congestion/dcqcn.js";
import { algorithmProblems } from "../../src/models/dcqcn/scenario.js";
import { parseScenarioText } from "../../src/scenario/scenario.js";
import { kScenario } from "../study/fixture.js";

const kRules = ["increase_restarts_counters", "stage_by_increases", "increase_raises_rate"] as const;
const load = (...set: string[]) => parseScenarioText(kScenario, "incast", { set }).scenario.congestion;

describe("the rules of Mellanox's overview", () => {
  it("are off in all profiles but its own, which has all of them, in slots", () => {
    for (const [name, { parameters }] of Object.entries(dcqcn.profiles)) {
      expect(kRules.map((rule) => parameters[rule][0])).toEqual(kRules.map(() => name === "mellanox-overview"));
    }
    expect(load("congestion.profile=mellanox-overview").parameters).toMatchObject({
      form: "slotted",
      clamp_tgt_rate: true,
      hyper_increase_scales: false,
    });
  });

  it.each(kRules)("%s is taken by itself, reaches the NIC, and has no name of mlx5", (rule) => {
    const { parameters } = load(
      `congestion.parameters.${rule}=true`,
      "congestion.parameters.hyper_increase_scales=false",
    );
    const native = dcqcn.native(parameters as Parameters<typeof dcqcn.native>[0]);
    expect(kRules.filter((one) => native.dcqcn[one])).toEqual([rule]);
    expect(dcqcn.parameters[rule].otherSpelling).toBeUndefined();
  });

  it("refuse a constant that scales", () => {
    const refusal = () => load("congestion.parameters.increase_raises_rate=true");
    expect(refusal).toThrow(ScenarioError);
    expect(refusal).toThrow(
      /congestion\.parameters\.increase_raises_rate: a constant value that the rate is increased by does not scale/,
    );
  });

  it.each(kRules)("%s is not of the fluid model", (rule) => {
    const congestion = load(`congestion.parameters.${rule}=true`, "congestion.parameters.hyper_increase_scales=false");
    expect(algorithmProblems(congestion).map(({ path }) => path.join("."))).toEqual([`congestion.parameters.${rule}`]);
  });
});
