/** Messages in a lab's result: completion times, goodput of flows with an end, transport counters, and the host's part. */
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { MessageTimes } from "../../../src/clocks/lab/message_times.js";
import type { RunEvidence } from "../../../src/clocks/lab/outcome.js";
import { composeResult } from "../../../src/clocks/lab/outcome.js";
import { kRecordWords, RecordKind } from "../../../src/native/types.js";
import type { CompletedMessage } from "../../../src/result/completions.js";
import type { Scenario } from "../../../src/scenario/types.js";
import {
  calmOutcome,
  completionsOf,
  constant,
  counterTable,
  evidence,
  kCarried,
  recorderOf,
  smallScenario,
} from "./evidence.js";

const kReliable = { transport: { type: "rc" }, congestion: { algorithm: "none" } };

const resultOf = (
  scenario: Scenario,
  messages: readonly CompletedMessage[],
  changes: Partial<RunEvidence> = {},
  names: readonly string[] = [],
) => {
  const completions = completionsOf(scenario);
  const messageTimes = new MessageTimes();
  for (const message of messages) {
    completions.complete(message);
    messageTimes.take(message.end - message.start, completions.hops(message.flow));
  }
  return composeResult(evidence({ scenario, completions, messageTimes, ...changes }), names);
};

describe("a lab's messages", () => {
  it("have completion times, by size, beside those of an empty network", () => {
    const scenario = smallScenario({
      ...kReliable,
      traffic: [
        { id: "x", from: ["a", "b"], to: "c", bytes: "1MB" },
        { pattern: "pairs", count: 1, hosts: ["a", "b"], sizes: 5000, start: "1ms" },
      ],
    });
    const result = resultOf(scenario, [
      // 1 MB of 4 MB messages: one.
      { flow: 0, message: 0, bytes: 1e6, start: 0, end: 4e6 },
      { flow: 2, message: 0, bytes: 5000, start: 1e6, end: 1.01e6 },
      { flow: 2, message: 1, bytes: 5000, start: 1.01e6, end: 1.04e6 },
    ]);
    expect(result.fct).toMatchObject({
      count: 3,
      // x/b, and the pair, which has more to send.
      incomplete: 2,
      fct_us: { max: 4000 },
      bins: [
        { above_bytes: 0, up_to_bytes: 10e3, count: 2, fct_us: { mean: 20, max: 30 } },
        { above_bytes: 100e3, count: 1 },
      ],
    });
    // 5,426 bytes of five packets on one link, the first of them on the other; 2 us for each; an acknowledgement of 86 bytes back.
    const ideal = (5426 + 1122 + 2 * 86) * 0.8 + 4 * 2000;
    expect(result.fct?.bins[0]?.slowdown.max).toBeCloseTo(30_000 / ideal, 2);
    expect(result.groups).toMatchObject({ x: { flows: 2 }, pairs: { flows: 1 } });
    const validate = new Ajv2020({ strict: false }).compile(
      JSON.parse(readFileSync("schema/result.schema.json", "utf8")),
    );
    expect(validate(JSON.parse(JSON.stringify(result)))).toBe(true);
  });

  it("make the goodput of a flow with an end that of its lifetime, and of the total what came after the warm-up", () => {
    const scenario = smallScenario({ ...kReliable, traffic: [{ from: "a", to: "c", bytes: "30MB", start: "10ms" }] });
    const id = scenario.flows[0]?.id ?? "";
    const recorder = recorderOf(scenario);
    // Received so far, at 0, 10, ... 100 ms.
    const samples = [0, 0, 5e6, 20e6, ...Array(7).fill(30e6)];
    const words = new Float64Array(samples.length * kRecordWords);
    for (const [i, bytes] of samples.entries()) {
      words.set([i * 100e6, RecordKind.receive, 2, 0, bytes, bytes], i * kRecordWords);
    }
    recorder.take(words, samples.length);
    const nics = counterTable([
      ["rx_bytes", { device: "c", flow: id, qpn: "0x11" }, 30e6],
      ["rx_wire_bytes", { device: "c", flow: id, qpn: "0x11" }, 33e6],
      ["rx_bytes", { device: "a", flow: id, qpn: "0x11" }, 7],
    ]);
    const result = resultOf(scenario, [{ flow: 0, message: 7, bytes: 30e6, start: 10e6, end: 35e6 }], {
      recorder,
      nics,
    });
    // 30 MB in 25 ms; 25 MB in the 80 ms behind the warm-up.
    expect(result.flows[0]).toMatchObject({ goodput_bps: 9.6e9, wire_bps: 10.56e9 });
    expect(result.totals.goodput_bps).toBeCloseTo(2.5e9, 0);
    // A flow that is not complete counts to the end of traffic.
    expect(resultOf(scenario, [], { recorder, nics }).flows[0]?.goodput_bps).toBeCloseTo((30e6 * 8) / 0.09, 0);
  });

  it("come with what the transport has counted, and of streams without", () => {
    const nics = counterTable([
      ["retransmitted", { device: "a" }, 3],
      ["retransmitted", { device: "b" }, 4],
      ["duplicate_request", { device: "c" }, 0],
      ["tx_packets", { device: "a" }, 9],
      ["rx_packets", { device: "c" }, 9],
      ["lost", { device: "c", flow: "x/a", qpn: "0x11" }, 2],
      ["tx_packets", { device: "a", flow: "x/a", qpn: "0x11" }, 9],
    ]);
    const names = ["retransmitted", "duplicate_request"];
    const result = resultOf(smallScenario(kReliable), [], { nics }, names);
    expect(result.transport).toEqual({ retransmitted: 7 });
    // Gaps that the receiver saw, not all that was sent less all that was taken.
    expect(result.flows[0]?.lost).toBe(2);
    expect(resultOf(smallScenario(), [], { nics }, names).transport).toBeUndefined();
  });

  it("are none of an invalid run, where one was not told", () => {
    const nics = counterTable([...kCarried, ["untold_messages", { device: "a" }, 5]]);
    expect(resultOf(smallScenario(kReliable), [], { nics }).fidelity.reasons).toEqual([
      "5 messages were complete, and are missing in the completion times",
    ]);
  });

  it("say how much of their time is the host's, and that the run is not valid where it is too much", () => {
    const scenario = smallScenario({ ...kReliable, traffic: [{ from: "a", to: "c", bytes: 1000, operation: "send" }] });
    const judged = (gap: number, end: number) =>
      resultOf(scenario, [{ flow: 0, message: 0, bytes: 1000, start: 0, end }], {
        outcomes: [calmOutcome({ loop_gap: constant(gap, 1000) }), calmOutcome({ loop_gap: constant(2 * gap, 1000) })],
      }).fidelity;
    // A message waits 10 us of the switch's 20 us, and 20 us of the NIC's 40, both twice; at scale 10.
    expect(judged(20_000, 30_000)).toMatchObject({ valid: true, completion_delay_us: 6 });
    expect(judged(20_000, 20_000).reasons).toEqual([
      "this host adds about 6 us to the time of each message, 30% of the median: try a larger scale",
    ]);
    expect(resultOf(scenario, []).fidelity.completion_delay_us).toBeUndefined();
  });

  it("say so of flows without an end, too", () => {
    const scenario = smallScenario({ ...kReliable, traffic: [{ from: "a", to: "c", message: 1000 }] });
    const result = resultOf(scenario, [{ flow: 0, message: 0, bytes: 1000, start: 0, end: 20_000 }], {
      outcomes: [calmOutcome(), calmOutcome()],
    });
    expect(result.fct).toBeUndefined();
    expect(result.fidelity.reasons).toHaveLength(1);
  });

  it("are kept in part where there are very many", () => {
    const times = new MessageTimes();
    expect(times.summary()).toBeUndefined();
    for (let i = 0; i < 1_000_000; i++) times.take(i % 1000, 2 + (i % 2));
    expect(times.summary()?.hops).toBe(2.5);
    expect(Math.abs((times.summary()?.median ?? 0) - 500)).toBeLessThan(20);
  });

  it("go round in a loop of acknowledgements, which gaps are measured by without congestion control, too", () => {
    const slow = { outcomes: [calmOutcome({ loop_gap: constant(900_000, 1000) })] };
    expect(resultOf(smallScenario(kReliable), [], slow).fidelity.valid).toBe(false);
    expect(resultOf(smallScenario({ congestion: { algorithm: "none" } }), [], slow).fidelity.valid).toBe(true);
  });
});
