import { describe, expect, it } from "vitest";
import type { ParameterInput } from "../../../src/congestion/parameter.js";
import { parseScenarioText } from "../../../src/scenario/scenario.js";
import { isEmpty, objectiveOf, parseObjective } from "../../../src/study/tune/objective.js";
import { candidates, parseSpace } from "../../../src/study/tune/space.js";
import { simulatedResult } from "../../result/report/sample.js";
import { kScenario } from "../fixture.js";

function space(text: string | undefined, algorithm = "dcqcn", written: Record<string, ParameterInput> = {}) {
  const set = [`congestion=${JSON.stringify({ algorithm, parameters: written })}`, "transport.type=rc"];
  const { scenario } = parseScenarioText(kScenario, "incast", { set });
  return parseSpace(text, scenario.congestion, written);
}

describe("what tuning may change", () => {
  it("is about what the scenario has, within what is allowed", () => {
    const [ai, , , g] = space(undefined);
    expect(ai).toMatchObject({ name: "rpg_ai_rate", low: 5e6, high: 320e6, log: true, standard: "40Mb/s" });
    expect(g).toMatchObject({ name: "dce_tcp_g", low: 892, high: 1024, log: false, standard: 1020 });
  });

  it("has ranges of the user's, and the spelling of the scenario", () => {
    const [ai, g] = space("rpg_ai_rate=10Mbps..20Mbps,dce_tcp_g", "dcqcn", { rp_ai_rate: "80Mbps" });
    const field = "congestion.parameters.rp_ai_rate";
    expect(ai).toMatchObject({ field, low: 10e6, high: 20e6, standard: "80Mb/s" });
    expect(g?.field).toBe("congestion.parameters.dce_tcp_g");
  });

  it("goes on with the paper's symbol where the scenario has that", () => {
    const [g] = space("dce_tcp_g", "dcqcn", { g: "1/16" });
    expect(g).toMatchObject({ field: "congestion.parameters.g", low: 832, high: 1024, standard: 1 / 16 });
    expect(g?.write(1020)).toBe(1 / 256);
  });

  it.each(["dcqcn", "timely", "swift", "dctcp"])("has a usual space of %s", (algorithm) => {
    expect(space(undefined, algorithm).length).toBeGreaterThan(1);
  });

  it.each([
    ["rpg_speed", '"rpg_speed" is no parameter of DCQCN'],
    ["swift_ai", '"swift_ai" is no parameter of DCQCN'],
    ["clamp_tgt_rate", "clamp_tgt_rate is true or false"],
    ["rate_reduce_monitor_period", "rate_reduce_monitor_period: has no usual range about 0"],
    ["rpg_ai_rate=20Mbps..10Mbps", "rpg_ai_rate: 20Mbps..10Mbps is no range"],
    ["dce_tcp_g=1..4096", "dce_tcp_g: 4096 is no end of a range"],
    ["dce_tcp_g,dce_tcp_g", "dce_tcp_g is named twice"],
  ])("refuses %j", (text, message) => {
    expect(() => space(text)).toThrow(message);
  });

  it("is drawn from by the seed, the scenario's own values first", () => {
    const dimensions = space("rpg_ai_rate,dce_tcp_g");
    const drawn = candidates(dimensions, 20, 3, ([, g]) => g !== 1024);
    expect(drawn).toEqual(candidates(dimensions, 20, 3, ([, g]) => g !== 1024));
    expect(drawn).not.toEqual(candidates(dimensions, 20, 4, () => true));
    expect(drawn[0]).toEqual(["40Mb/s", 1020]);
    for (const [ai, g] of drawn) {
      expect(ai).toMatch(/^[\d.]+Mb\/s$/);
      expect(g).toBeGreaterThanOrEqual(892);
    }
    expect(() => candidates(dimensions, 2, 1, () => false)).toThrow("of 200 draws from the ranges 0 were valid");
  });
});

describe("an objective", () => {
  const result = simulatedResult();
  it.each([
    ["fct.slowdown.p99", 4.5],
    ["max totals.goodput_bps", result.totals.goodput_bps],
    ["min switches.*.queues.*.*.p99", 131_000],
    ["max switches.*.queues.*.*.p99", 0],
  ])("%s is %d", (text, value) => {
    expect(objectiveOf(result, parseObjective(text))).toBe(value);
  });

  it("is 0 of a queue that held nothing, and empty where no transfer was complete", () => {
    expect(objectiveOf(result, parseObjective("switches.sw.queues.h2.3.p99"))).toBe(0);
    expect(() => objectiveOf(result, parseObjective("switches.sx.queues.h2.3.p99"))).toThrow("no number at");
    const { fct } = result;
    const none = { fct: fct && { ...fct, count: 0 } };
    expect(isEmpty(none, parseObjective("fct.slowdown.p99"))).toBe(true);
    expect(isEmpty(none, parseObjective("totals.jain"))).toBe(false);
    expect(isEmpty(result, parseObjective("fct.slowdown.p99"))).toBe(false);
  });

  it("is refused where it is none, or no number", () => {
    expect(() => parseObjective("least totals.jain")).toThrow('"least totals.jain" is no objective');
    expect(() => parseObjective("fct..p99")).toThrow('"fct..p99" is no field');
    expect(() => objectiveOf(result, parseObjective("scenario"))).toThrow("no number at scenario");
    expect(() => objectiveOf(result, parseObjective("fct.bins.*.p99"))).toThrow("no number at fct.bins.*.p99");
  });
});
