/** Results of all three clocks follow the published schema: they have no field more, and none of another shape. */
import { describe, expect, it } from "vitest";
import { composeResult } from "../../../src/clocks/lab/outcome.js";
import { runModel } from "../../../src/clocks/model.js";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import { hostFacts } from "../../../src/result/made.js";
import type { Scenario } from "../../../src/scenario/types.js";
import { calmOutcome, constant, counterTable, evidence, smallScenario } from "../../clocks/lab/evidence.js";
import { fatTree, incast } from "../../clocks/sim/scenarios.js";
import { faultsOf } from "../../fixtures/closed_schema.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";

const signal = new AbortController().signal;
const rc = { transport: { type: "rc" } };

async function simulated(scenario: Scenario, until?: number): Promise<unknown> {
  const { result, series } = await runSimulation(scenario, { signal, until });
  return { ...result, series };
}

describe("the result of a simulation", () => {
  skipWhere(nativeObstacle());

  it.each([
    ["DCQCN", () => incast()],
    ["no congestion control", () => incast({ congestion: { algorithm: "none" } })],
    ["QCN", () => incast({ congestion: { algorithm: "qcn" } })],
    ["DCTCP over reliable connections", () => incast({ congestion: { algorithm: "dctcp" }, ...rc })],
    ["transfers on a fat tree", () => fatTree()],
    ["a slow receiver", () => incast({ host: { receive_buffer: { size: "200KB", rate: "2Gbps" } } })],
    ["hosts that differ", () => incast({ topology: kMixed })],
    ["losses", () => incast({ topology: { ...kMixed, link: { rate: "10Gbps", impairment: { loss: "5%" } } }, ...rc })],
  ])("with %s", async (_, scenario) => {
    expect(faultsOf(await simulated(scenario()))).toEqual([]);
  });

  it("that was cut short", async () => {
    expect(faultsOf(await simulated(incast(), 500_000))).toEqual([]);
  });
});

const kMixed = {
  link: { rate: "10Gbps", delay: "2us" },
  hosts: { a: { path_mtu: 512 }, b: {}, c: {} },
  switches: ["sw"],
  links: ["a -- sw", "b -- sw", "sw -- c"],
};

it("the result of the equations", async () => {
  const { result, series } = await runModel(incast({ duration: "5ms", warmup: "1ms" }), { signal });
  expect(result).toHaveProperty("model");
  expect(faultsOf({ ...result, series })).toEqual([]);
});

describe("the result of a lab", () => {
  const of = (scenario = smallScenario()) => {
    const own = evidence({
      scenario,
      switches: counterTable([
        ["drop_headroom_full", { switch: "sw" }, 2],
        ["pfc_tx_packets", { switch: "sw", port: "a", priority: "3" }, 4],
        ["pfc_tx_transitions", { switch: "sw", port: "a", priority: "3" }, 2],
        ["cn_cp_transmitted_frames", { switch: "sw", port: "c", priority: "3" }, 2],
      ]),
      nics: counterTable([["tx_prio_pause", { device: "a", priority: "3" }, 1]]),
      outcomes: [
        calmOutcome({
          tuning: ["not pinned"],
          queues: [{ switch: "sw", port: "c", priority: 3, ...constant(1000) }],
        }),
      ],
      captures: { dropped: 3, errors: ["/tmp/x.pcap: No space left on device"] },
      changes: [{ at: 1e6, late: 0 }],
      parameterChanges: [{ at: 1e6, set: ["switch.ecn.kmin=1KB"] }],
      ended: { at: 60e6, why: "ended by SIGINT" },
    });
    return { ...composeResult(own), series: own.recorder.series(scenario.duration) };
  };

  it("under DCQCN", () => {
    const result = of();
    expect(result.environment).toEqual({ ...hostFacts(), backend: "af_packet" });
    expect(result.fidelity.capture_errors).toEqual(["/tmp/x.pcap: No space left on device"]);
    expect(faultsOf(result)).toEqual([]);
  });

  it("under QCN", () => {
    expect(faultsOf(of(smallScenario({ congestion: { algorithm: "qcn" } })))).toEqual([]);
  });
});

it("a field that the schema does not know is seen, wherever it is", async () => {
  const { result } = await runModel(incast({ duration: "2ms" }), { signal });
  expect(faultsOf({ ...result, more: 1 })).toEqual(["must NOT have additional properties more"]);
  const [flow] = result.flows;
  expect(faultsOf({ ...result, flows: [{ ...flow, more: 1 }] })).toHaveLength(1);
});
