/** Two parts of a scenario, as they would be after a run. */
import { composeResult, type RunEvidence } from "../../../../src/clocks/lab/outcome.js";
import type { PartOfRun } from "../../../../src/result/merge_parts.js";
import type { Series } from "../../../../src/result/result.js";
import { choosePart } from "../../../../src/scenario/parts.js";
import type { Scenario } from "../../../../src/scenario/types.js";
import { type Counter, counterTable, evidence, smallScenario } from "../evidence.js";

const kTopology = {
  link: { rate: "10Gbps", delay: "2us" },
  hosts: ["a", "c"],
  switches: ["left", "right"],
  links: ["a -- left", "c -- right", "left -- right"],
};
const interfaces = { "left -- right": "vx0" };
const kParts = { one: { nodes: ["left"], interfaces }, two: { nodes: ["right"], interfaces } };
export const whole = (rest: object = {}) =>
  smallScenario({ topology: kTopology, traffic: [{ id: "x", from: "a", to: "c" }], parts: kParts, ...rest });

export const nic = (name: string, device: string, value: number): Counter => [name, { device }, value];
const pair = (name: string, device: string, value: number): Counter => [
  name,
  { device, qpn: "0x11", flow: "x" },
  value,
];
export const port = (name: string, at: string, peer: string, value: number): Counter => [
  name,
  { switch: at, port: peer },
  value,
];

/** 100 frames from a to c, of which `came` come to the other part, and 4 CNPs back; 3 PFC frames over the link. */
export function parts(scenario: Scenario, { came = 100, marked = 7, run = 5 } = {}): [PartOfRun, PartOfRun] {
  const of = (name: string, changes: Partial<RunEvidence>, series: Partial<Series["flows"][string]>): PartOfRun => {
    const result = composeResult(evidence({ scenario: choosePart(scenario, name), run, ...changes }));
    const { part, frames } = result;
    if (part === undefined || frames === undefined) throw new Error("not of a part");
    const all: Series = { interval_s: 0.01, time_s: [0, 0.01], flows: { x: series }, queues: {} };
    return { folder: name, result: { ...result, part, frames }, series: all, completions: [] };
  };
  const one = of(
    "one",
    {
      nics: counterTable([
        nic("tx_packets", "a", 100),
        pair("tx_packets", "a", 100),
        nic("rx_packets", "a", 4),
        pair("cnp_handled", "a", 4),
      ]),
      switches: counterTable([
        port("tx_packets", "left", "right", 100),
        port("rx_packets", "left", "right", 4),
        port("rx_pfc_frames", "left", "right", 3),
        port("wred_ecn_marked_packets", "left", "right", marked),
      ]),
    },
    { rate_bps: [9, 9], goodput_bps: [0, 0] },
  );
  const two = of(
    "two",
    {
      nics: counterTable([
        ...[nic("rx_packets", "c", came), nic("tx_packets", "c", 4)],
        ...[pair("rx_packets", "c", came), pair("ecn_marked", "c", 7)],
      ]),
      switches: counterTable([
        port("rx_packets", "right", "left", came),
        port("tx_packets", "right", "left", 4),
        port("tx_pfc_frames", "right", "left", 3),
      ]),
    },
    { rate_bps: [0, 0], goodput_bps: [5, 6] },
  );
  return [one, two];
}
