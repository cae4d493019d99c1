/** Expectations of a scenario: their syntax, results that meet them, and the report for CI. */
import { expect, it } from "vitest";
import { judgeExpectations } from "../../src/result/expectations.js";
import { junitXml } from "../../src/result/report/junit.js";
import type { Result } from "../../src/result/result.js";
import { parseExpectation } from "../../src/scenario/expectations.js";
import { parseScenario, ScenarioError } from "../../src/scenario/scenario.js";
import { star } from "../fixtures/networks.js";

const result = {
  scenario: `a "lab" & <more>`,
  clock: "wire",
  fidelity: { valid: true, reasons: [] as string[], loop_gap_us: { p99: 250 } },
  totals: { goodput_bps: 36.7e9, jain: 0.97 },
  flows: [
    { id: "a", lost: 0 },
    { id: "b", lost: 3 },
  ],
  switches: { sw: { queues: { r: { "3": { p99: 137_000 } } } } },
} as unknown as Result;

const judge = (...texts: string[]) => judgeExpectations(result, texts.map(parseExpectation));

it("values have the units of their fields", () => {
  expect(parseExpectation("totals.goodput_bps >= 36Gbps").value).toBe(36e9);
  expect(parseExpectation("switches.sw.queues.r.3.p99<200KB")).toMatchObject({
    path: ["switches", "sw", "queues", "r", "3", "p99"],
    operator: "<",
    value: 200_000,
  });
  expect(parseExpectation("fidelity.loop_gap_us.max < 5").value).toBe(5);
  expect(parseExpectation("fct.p99_us <= 2ms").value).toBe(2000);
  expect(parseExpectation("duration_s == 20ms").value).toBe(0.02);
  expect(parseExpectation("totals.jain > 95%").value).toBeCloseTo(0.95);
  expect(parseExpectation("fidelity.valid == true").value).toBe(true);
});

it.each(["", "totals.jain", "totals.jain >", "> 3", "a..b > 3", "totals.goodput_bps > 3 apples"])(
  "%j is none",
  (text) => void expect(() => parseExpectation(text)).toThrow(),
);

it("each operator holds where it should, and not beside it", () => {
  const met = judge(
    ...["totals.jain > 0.96", "totals.jain < 0.98", "totals.jain >= 0.97", "totals.jain <= 0.97"],
    ...["totals.jain == 0.97", "totals.jain != 1", "fidelity.valid == true"],
  );
  expect(met.map((one) => one.met)).toEqual(Array(7).fill(true));
  const unmet = judge(
    ...["totals.jain > 0.97", "totals.jain < 0.97", "totals.jain >= 0.98", "totals.jain <= 0.96"],
    ...["totals.jain == 1", "totals.jain != 0.97", "fidelity.valid == false"],
  );
  expect(unmet.map((one) => one.met)).toEqual(Array(7).fill(false));
});

it("one for each of several tells those that do not meet it, and what is missing meets nothing", () => {
  expect(judge("flows.*.lost == 0")).toEqual([
    { expect: "flows.*.lost == 0", met: false, reason: "flows.1.lost is 3" },
  ]);
  expect(judge("totals.jian > 0", "nothing.*.x > 0", "flows.*.cnp_sent >= 0", "flows.0.id > 0")).toMatchObject([
    { met: false, reason: "totals.jian is not there" },
    { met: false, reason: "nothing.*.x is not there" },
    { met: false, reason: "flows.0.cnp_sent is not there" },
    { met: false, reason: "flows.0.id is no number" },
  ]);
  // No way out of the result.
  expect(judge("totals.constructor.length > 0")).toMatchObject([{ met: false }]);
});

it("what is wrong in a scenario is told with its place", () => {
  const topology = star(["a", "b"]);
  expect(parseScenario({ topology, expect: ["totals.jain > 0.9"] }).scenario.expect).toMatchObject([{ value: 0.9 }]);
  expect(() => parseScenario({ topology, expect: ["totals.jain > 0.9", "nonsense"] })).toThrow(ScenarioError);
  expect(() => parseScenario({ topology, expect: ["nonsense"] })).toThrow(/expect\.0/);
});

it("JUnit's XML has a case for validity and one for each, and nothing of a name becomes markup", () => {
  const xml = junitXml(result, judge("totals.jain > 0.9", "flows.*.lost < 2"), 1.5);
  expect(xml).toContain('<testsuite name="a &quot;lab&quot; &amp; &lt;more&gt;" tests="3" failures="1" errors="0"');
  expect(xml).toContain('time="1.500"');
  expect(xml.match(/<testcase /g)).toHaveLength(3);
  expect(xml).toContain('name="flows.*.lost &lt; 2"><failure message="flows.1.lost is 3"/></testcase>');
  const invalid = { ...result, fidelity: { ...result.fidelity, valid: false, reasons: ["too late"] } } as Result;
  expect(junitXml(invalid, [], 1)).toContain('errors="1"');
  expect(junitXml(invalid, [], 1)).toContain('<error message="too late"/>');
  // Expectations of an invalid run pass no more than they fail.
  const unjudged = junitXml(invalid, judge("totals.jain > 0.9", "flows.*.lost < 2"), 1);
  expect(unjudged).toContain('tests="3" failures="0" errors="1" skipped="2"');
  expect(unjudged.match(/<skipped message="the run is not valid: nothing to judge"\/>/g)).toHaveLength(2);
});

it("figures of nothing meet nothing, whatever they are", () => {
  const none = { count: 0, slowdown: { p99: 0 }, fct_us: { p99: 0 } };
  const empty = {
    ...result,
    flows: [
      { id: "a", packets: 0, lost: 0, ecn_marked: 0, goodput_bps: 0 },
      { id: "b", packets: 9, lost: 0, ecn_marked: 0, goodput_bps: 0 },
      // Its sender is in another part of the lab.
      { id: "c", packets: 0, lost: 0, end: "receiver" },
    ],
    fct: { ...none, incomplete: 0, bins: [none] },
    groups: { incast: { transfers: { count: 0, throughput_bps: { p50: 0 } } } },
  } as unknown as Result;
  const reasons = (of: Result, ...texts: string[]) =>
    judgeExpectations(of, texts.map(parseExpectation)).map(({ reason }) => reason);
  expect(
    reasons(
      empty,
      ...["fct.slowdown.p99 < 4", "fct.bins.*.fct_us.p99 < 1000", "fct.incomplete == 0"],
      ...["groups.*.transfers.throughput_bps.p50 >= 0", "flows.0.lost == 0", "flows.*.lost == 0"],
    ),
  ).toEqual([
    "nothing to judge: no transfer of fct was complete",
    "nothing to judge: no transfer of fct.bins.0 was complete",
    "nothing to judge: no transfer of fct began",
    "nothing to judge: no transfer of groups.incast.transfers was complete",
    "nothing to judge: flows.0 sent no packet",
    "nothing to judge: flows.0 sent no packet",
  ]);
  // A count of 0 packets, or of 0 complete flows, is itself a figure.
  const known = ["flows.0.packets == 0", "flows.*.goodput_bps >= 0", "flows.1.lost == 0", "flows.2.lost == 0"];
  expect(reasons({ ...empty, flows: empty.flows.slice(0, 2) } as Result, ...known.slice(0, 3))).toEqual(
    Array(3).fill(undefined),
  );
  expect(reasons(empty, known[3] as string, "fct.count == 0")).toEqual([undefined, undefined]);
});
