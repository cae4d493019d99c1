/** Results of two parts, made up, and what becomes of them together. */
import { describe, expect, it } from "vitest";
import { composeResult } from "../../../../src/clocks/lab/outcome.js";
import { mergeParts } from "../../../../src/result/merge_parts.js";
import { choosePart } from "../../../../src/scenario/parts.js";
import { type Counter, counterTable, evidence } from "../evidence.js";
import { nic, parts, port, whole } from "./made.js";

describe("a part's result", () => {
  it("has what left for the other part and came from it in its account, and no more of a flow than its end knows", () => {
    const [one, two] = parts(whole());
    expect(one.result.frames).toMatchObject({ sent: 100, received: 7, to_parts: 100, from_parts: 7, missing: 0 });
    expect(two.result.frames).toMatchObject({ sent: 7, received: 100, to_parts: 7, from_parts: 100, missing: 0 });
    expect(one.result.flows).toMatchObject([{ packets: 100, lost: 0, cnp_handled: 4, end: "sender" }]);
    expect(two.result.flows).toMatchObject([{ packets: 0, received: 100, lost: 0, end: "receiver" }]);
    expect(Object.keys(one.result.switches)).toEqual(["left"]);
    expect(Object.keys(two.result.nics)).toEqual(["c"]);
    expect(one.result.groups).toBeUndefined();
    expect(one.result.part.links).toMatchObject([
      { link: "left -- right", part: "two", interface: "vx0", sent: 100, received: 7 },
    ]);
  });
});

describe("a link between parts with PAUSE frames", () => {
  it("has had those cross that were sent", () => {
    const scenario = choosePart(whole(), "two");
    const switches = counterTable([port("tx_pause_frames", "right", "left", 3)]);
    const { frames, part } = composeResult(evidence({ scenario, switches, nics: counterTable([]) }));
    expect(part?.links[0]?.sent).toBe(3);
    expect(frames).toMatchObject({ sent: 3, to_parts: 3, missing: 0 });
  });
});

describe("a link with faults between parts", () => {
  it("has had what its impairment takes, or doubles, come over once", () => {
    const scenario = choosePart(whole(), "two");
    const fault = (name: string, value: number): Counter => [name, { device: "right", port: "left" }, value];
    const switches = counterTable([
      ...[port("rx_packets", "right", "left", 97), port("tx_packets", "right", "c", 97)],
      ...[fault("lost", 5), fault("overflow", 1), fault("duplicated", 3)],
    ]);
    const { frames, part } = composeResult(
      evidence({ scenario, switches, nics: counterTable([nic("rx_packets", "c", 97)]) }),
    );
    expect(part?.links[0]?.received).toBe(100);
    expect(frames).toMatchObject({ from_parts: 100, duplicated: 3, impaired: 6, received: 97, missing: 0 });
  });
});

describe("mergeParts", () => {
  it("puts the ends of flows together, and conserves what crossed", () => {
    const scenario = whole();
    const { result, series } = mergeParts(scenario, [...parts(scenario)].reverse());
    expect(result.frames).toEqual({ sent: 107, received: 107, dropped: 0, duplicated: 0, impaired: 0, missing: 0 });
    expect(result.flows).toMatchObject([{ packets: 100, received: 100, lost: 0, ecn_marked: 7, cnp_handled: 4 }]);
    expect(result.flows[0]?.end).toBeUndefined();
    expect(result.merged).toEqual({
      parts: ["one", "two"].map((name) => ({ name, valid: true, reasons: [] })),
      links: [
        { link: "left -- right", from: "one", to: "two", sent: 100, received: 100, lost: 0 },
        { link: "left -- right", from: "two", to: "one", sent: 7, received: 7, lost: 0 },
      ],
      marked_on_the_way: 0,
    });
    expect(result.fidelity).toMatchObject({ valid: true, reasons: [] });
    expect(series.flows.x).toEqual({ rate_bps: [9, 9], goodput_bps: [5, 6] });
  });

  it("judges nothing where no part has sent a frame", () => {
    const scenario = whole();
    const idle = ["one", "two"].map((name) => {
      const part = choosePart(whole(), name);
      const none = counterTable([]);
      const result = composeResult(evidence({ scenario: part, switches: none, nics: none }));
      // A single idle part is no fault.
      expect(result.fidelity.reasons).toEqual([]);
      return result;
    });
    const given = parts(scenario).map((part, i) => ({ ...part, result: idle[i] as typeof part.result }));
    expect(mergeParts(scenario, given).result.fidelity).toMatchObject({
      valid: false,
      reasons: ["nothing to judge: no frame was sent"],
    });
  });

  it("counts what was lost between parts, and marks that no switch made", () => {
    const scenario = whole();
    const { result } = mergeParts(scenario, parts(scenario, { came: 90, marked: 2 }));
    expect(result.frames?.missing).toBe(10);
    expect(result.flows[0]?.lost).toBe(10);
    expect(result.merged).toMatchObject({ marked_on_the_way: 5, links: [{ lost: 10 }, { lost: 0 }] });
    expect(result.fidelity.valid).toBe(false);
    expect(result.fidelity.reasons).toEqual([
      "100 frames went from part one to two on left -- right, and 90 came: the network between them loses frames, or has some of another lab",
      "10 frames are not accounted for",
      expect.stringMatching(/^at least 5 packets were marked \(ECN\) on the way between parts/),
    ]);
  });

  it("is as valid as its parts, and says which was not", () => {
    const scenario = whole();
    const [one, two] = parts(scenario);
    const fidelity = { ...two.result.fidelity, valid: false, reasons: ["it was late"] };
    const { result } = mergeParts(scenario, [one, { ...two, result: { ...two.result, fidelity } }]);
    expect(result.fidelity).toMatchObject({ valid: false, reasons: ["part two: it was late"] });
    expect(result.merged?.parts).toMatchObject([
      { valid: true },
      { name: "two", valid: false, reasons: ["it was late"] },
    ]);
  });

  it("takes completion times from the part that knows them, and goodput over a flow's own lifetime", () => {
    const scenario = whole({ transport: { type: "rc" }, traffic: [{ id: "x", from: "a", to: "c", bytes: "1MB" }] });
    const [one, two] = parts(scenario);
    const completions = [{ flow: 0, message: 0, bytes: 1e6, start_ns: 0, end_ns: 2e6 }];
    const { result, flowTable } = mergeParts(scenario, [{ ...one, completions }, two]);
    expect(result.fct).toMatchObject({ count: 1, incomplete: 0 });
    expect(result.flows[0]?.goodput_bps).toBe(4e9);
    expect(flowTable).toMatchObject([{ id: "x", bytes: 1e6, end_ns: 2e6 }]);
    expect(mergeParts(scenario, parts(scenario)).result.fct).toMatchObject({ count: 0, incomplete: 1 });
  });

  it("refuses what does not belong together", () => {
    const scenario = whole();
    const [one, two] = parts(scenario);
    expect(() => mergeParts(scenario, [one])).toThrow("part two is missing");
    expect(() => mergeParts(scenario, [one, one])).toThrow("one and one are both of part one");
    expect(() => mergeParts(scenario, [one, parts(scenario, { run: 6 })[1]])).toThrow("are of different runs");
    expect(() => mergeParts(scenario, [one, parts(whole({ seed: 9 }))[1]])).toThrow("are of different scenarios");
    expect(() => mergeParts(scenario, [two, one])).not.toThrow();
  });
});
