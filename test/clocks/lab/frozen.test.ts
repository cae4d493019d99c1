/** Tells frames of a lab that stand still for a pause from those that do so for the host. */
import { describe, expect, it } from "vitest";
import { pausedFrames } from "../../../src/clocks/lab/frozen.js";
import { composeResult } from "../../../src/clocks/lab/outcome.js";
import type { SwitchState } from "../../../src/native/types.js";
import { type Counter, counterTable, evidence } from "./evidence.js";

const zeros = Array(8).fill(0) as number[];

/** A switch whose ports hold so many bytes at priority 3, and are paused at these priorities. */
function worker(...ports: { bytes: number; paused: number }[]) {
  const states = ports.map(({ bytes, paused }) => ({ queue_bytes: zeros.with(3, bytes), paused }));
  return { switchState: () => ({ ports: states }) as SwitchState };
}

const count = (admitted: number, sent: number) =>
  counterTable([
    ["pg_packets", { switch: "sw", port: "a", priority: "3" }, admitted],
    ["queue_packets", { switch: "sw", port: "b", priority: "3" }, sent],
  ]);

describe("frames that stand still", () => {
  it("are those that queues have taken and not sent, where each of the queues is paused", () => {
    const paused = worker({ bytes: 9000, paused: 0b1000 }, { bytes: 0, paused: 0 });
    expect(pausedFrames(paused, 1, count(30, 21))).toBe(9);
    expect(pausedFrames(worker({ bytes: 0, paused: 0 }), 1, count(30, 30))).toBe(0);
  });

  it("are not for a pause, where one queue could send, or is paused at another priority", () => {
    expect(pausedFrames(worker({ bytes: 9000, paused: 8 }, { bytes: 1000, paused: 0 }), 1, count(30, 21))).toBe(0);
    expect(pausedFrames(worker({ bytes: 9000, paused: 0b0100 }), 1, count(30, 21))).toBe(0);
  });
});

describe("a lab that has frozen", () => {
  const nic = (name: string, device: string, value: number): Counter => [name, { device }, value];
  const nics = counterTable([nic("tx_packets", "a", 100), nic("rx_packets", "c", 60)]);

  it("is valid if all that is missing stands in queues under pauses, and says how much that is", () => {
    const { frames, fidelity } = composeResult(evidence({ nics, frozen: 40 }));
    expect(frames).toMatchObject({ sent: 100, received: 60, missing: 0, in_network: 40 });
    expect(fidelity).toMatchObject({ valid: true, reasons: [] });
  });

  it("is not if more is missing than stands there, or if nothing does", () => {
    const { frames, fidelity } = composeResult(evidence({ nics, frozen: 39 }));
    expect(frames).toMatchObject({ missing: 1, in_network: 39 });
    expect(fidelity.reasons).toEqual(["1 frames are not accounted for"]);
    expect(composeResult(evidence({ nics })).fidelity.reasons).toEqual(["40 frames are not accounted for"]);
  });

  it("has pauses on its way, which do not end there, and no more of them than links", () => {
    const tables = (pauses: number) => ({
      nics: counterTable([nic("tx_packets", "a", 100), nic("rx_packets", "c", 60), nic("rx_pfc_frames", "a", 7)]),
      switches: counterTable([["tx_pfc_frames", { switch: "sw", port: "a" }, 7 + pauses]]),
    });
    expect(composeResult(evidence({ ...tables(2), frozen: 40 })).frames).toMatchObject({ missing: 0, in_network: 42 });
    expect(composeResult(evidence({ ...tables(2) })).frames).toMatchObject({ missing: 42 });
    const most = 2 * evidence({}).scenario.links.length;
    const { frames } = composeResult(evidence({ ...tables(most + 1), frozen: 40 }));
    expect(frames).toMatchObject({ missing: 1, in_network: 40 + most });
  });

  it("does not have more in its queues than it has sent", () => {
    expect(composeResult(evidence({ nics, frozen: 50 })).frames).toMatchObject({ missing: 0, in_network: 40 });
  });
});
