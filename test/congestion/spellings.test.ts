import { describe, expect, it } from "vitest";
import { parseScenarioText } from "../../src/scenario/scenario.js";
import { refusalOf } from "../fixtures/refusal.js";
import { kScenario } from "../study/fixture.js";

const load = (...set: string[]) => parseScenarioText(kScenario, "incast", { set }).scenario.congestion;

const refusal = (...set: string[]) => refusalOf(() => load(...set));

describe("the paper's g", () => {
  it.each([
    ["1/256", 1 / 256],
    ["0.0625", 1 / 16],
    ["6.25%", 1 / 16],
    ["1", 1],
  ])("%s is what dce_tcp_g states as 1024 (1 - g)", (written, g) => {
    expect(load(`congestion.parameters.g=${written}`).parameters).toMatchObject({ g });
    expect(load(`congestion.parameters.dce_tcp_g=${1024 * (1 - g)}`).parameters).toMatchObject({ g });
  });

  it.each(["0", "3/2", "-1/4", "true", "1/0"])("is not %s", (written) => {
    expect(refusal(`congestion.parameters.g=${written}`)).toContain("must be more than 0, at most 1, such as 1/256");
  });

  it("is given once, and is of DCQCN", () => {
    expect(refusal("congestion.parameters={g: 1/256, dce_tcp_g: 1020}")).toContain("is given twice");
    expect(refusal("congestion.algorithm=timely", "congestion.parameters={g: 1/256}")).toContain(
      "congestion.parameters.dce_tcp_g: is a parameter of DCQCN",
    );
  });
});

describe("a parameter that nobody knows", () => {
  it.each([
    ["rpg_ai_rat", "dcqcn", "did you mean rpg_ai_rate?"],
    ["ai_rate", "dcqcn", "did you mean rpg_ai_rate?"],
    ["beta", "timely", "did you mean timely_beta?"],
  ])("%s of %s", (name, algorithm, hint) => {
    expect(refusal(`congestion.algorithm=${algorithm}`, `congestion.parameters={${name}: 1}`)).toContain(hint);
  });

  it("has a hint of those of its algorithm alone", () => {
    const ofDcqcn = refusal("congestion.parameters={zzzz: 1}");
    expect(ofDcqcn).toMatch(/known fields: rpg_time_reset, .*, g$/);
    expect(ofDcqcn).not.toContain("timely_");
    expect(ofDcqcn).not.toContain("rp_time_reset");
    const ofTimely = refusal("congestion.algorithm=timely", "congestion.parameters={zzzz: 1}");
    expect(ofTimely).toMatch(/known fields: timely_/);
    expect(ofTimely).not.toContain("rpg_");
  });
});
