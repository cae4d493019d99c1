import { expect, it } from "vitest";
import type { WeirError } from "../../src/base/error.js";
import { DeviceFaults, type FaultPort } from "../../src/device/faults.js";
import type { FaultState, NativeFault } from "../../src/native/types.js";
import { kOpcodes } from "../../src/scenario/fault_schema.js";

/** A worker that knows what it was told. */
function worker() {
  const made: { device: number; port: number; fault: NativeFault }[] = [];
  const states: FaultState[] = [];
  return {
    made,
    states,
    attach: () => {},
    detach: () => {},
    addFault({ device, port }: { device: number; port: number }, fault: NativeFault) {
      made.push({ device, port, fault });
      states.push({ number: made.length, matched: 0, hits: 0, over: false });
      return made.length;
    },
    endFault(number: number) {
      const state = states[number - 1];
      if (state === undefined || state.over) return false;
      state.over = true;
      return true;
    },
    faults: () => states,
  };
}

function device(names: readonly string[], scale = 1, kind: "nic" | "switch" = "switch") {
  const own = worker();
  const ports = names.map(
    (name, port): FaultPort => ({
      ...{ name, description: name, speed: 0 },
      place: { worker: own, device: 2, port, rate: 0, meant: false },
    }),
  );
  return { own, faults: new DeviceFaults("sw0", kind, scale, () => ports) };
}

it("hands a fault to the port's worker, times as they are on the wall", () => {
  const { own, faults } = device(["eth1", "eth2"], 40);
  const asked = { port: "eth2", kind: "delay", delay: "1ms", for: "2s", opcode: ["ack", 0x0c], share: "1%", qp: 17 };
  expect(faults.make({ request: "fault", device: "sw0", ...asked })).toMatchObject({
    ...{ number: 1, port: "eth2", kind: "delay", state: "active" },
    fault: { delay: 1e6, for: 2e9, share: 0.01, qp: 17 },
  });
  expect(own.made).toEqual([
    {
      ...{ device: 2, port: 1 },
      fault: { kind: "delay", delay: 40e6, lasts: 80e9, opcodes: [0x11, 0x0c], share: 0.01, destination_qp: 17 },
    },
  ]);
});

it("fills in what a kind needs, and refuses an error of a switch, which has no queue pairs", () => {
  const { own, faults } = device(["eth1"], 1, "nic");
  for (const kind of ["error", "trim", "pause"]) faults.make({ kind });
  faults.make({ kind: "error", status: "loc-prot" });
  faults.make({ kind: "trim", size: "256B", dscp: 9 });
  faults.make({ kind: "pause", priorities: [0, 4] });
  expect(own.made.map(({ fault }) => fault)).toEqual([
    { kind: "error", status: 5 },
    { kind: "trim", dscp: 40 },
    { kind: "pause", priorities: 8, rate: 0 },
    { kind: "error", status: 4 },
    { kind: "trim", size: 256, dscp: 9 },
    { kind: "pause", priorities: 17, rate: 0 },
  ]);
  expect(() => device(["eth1"]).faults.make({ kind: "error" })).toThrow("sw0 is a switch");
  expect(() => device(["eth1"]).faults.make({ kind: "drop", direction: "out" })).toThrow("out is of NICs alone");
  device(["eth1"], 1, "nic").faults.make({ kind: "drop", direction: "out" });
});

it("has a link flap by what it is down and up", () => {
  const { own, faults } = device(["eth1"]);
  faults.make({ kind: "down", down: "100ms", up: "900ms" });
  expect(own.made[0]?.fault).toEqual({ kind: "down", up: 900e6, period: 1e9 });
});

it("tells what goes on, and ends one or all", () => {
  const { own, faults } = device(["eth1"]);
  faults.make({ kind: "drop", from: "10.0.0.1", to: "fd00::1", source_port: 7, every: 3, count: 1, seed: 2 });
  faults.make({ kind: "corrupt" });
  faults.make({ kind: "mark" });
  expect(own.made[0]?.fault).toMatchObject({
    source: { version: 4, bytes: Buffer.from([10, 0, 0, 1]) },
    ...{ udp_source_port: 7, every: 3, count: 1, seed: 2 },
  });
  Object.assign(own.states[0] as FaultState, { matched: 3, hits: 1, over: true });
  expect(faults.list().map(({ number, state, hits }) => [number, state, hits])).toEqual([
    [1, "over", 1],
    [2, "active", 0],
    [3, "active", 0],
  ]);
  expect(faults.end({ number: 2 }).map(({ number, state }) => [number, state])).toEqual([[2, "over"]]);
  expect(faults.end({}).map(({ number }) => number)).toEqual([3]);
  expect(() => faults.end({ number: 2 })).toThrow("sw0 has no fault 2 that goes on");
  own.states.splice(0);
  expect(faults.list()).toEqual([]);
});

it("knows a port that faces a host in either spelling of its name", () => {
  const { own, faults } = device(["spine1", "h1-2"]);
  expect(faults.make({ port: "h1_2", kind: "drop" })).toMatchObject({ port: "h1-2" });
  expect(own.made).toMatchObject([{ port: 1 }]);
});

it("makes those of the device's file, and others when the file has others", () => {
  const { own, faults } = device(["eth1"]);
  const ofFile = (...kinds: ("drop" | "corrupt")[]) => faults.replace(kinds.map((kind) => ({ kind })));
  const active = () =>
    faults.list().flatMap(({ number, kind, state }) => (state === "active" ? [`${number} ${kind}`] : []));
  ofFile("drop", "corrupt");
  faults.make({ kind: "mark" });
  expect(active()).toEqual(["1 drop", "2 corrupt", "3 mark"]);
  ofFile("drop", "corrupt");
  expect(own.made).toHaveLength(3);
  ofFile("corrupt");
  expect(active()).toEqual(["3 mark", "4 corrupt"]);
  ofFile();
  expect(active()).toEqual(["3 mark"]);
});

it.each<[object, string, string?]>([
  [{}, "fault: kind: undefined is not one of drop, delay"],
  [{ kind: "drip" }, "fault: kind: drip is not one of"],
  [{ kind: "drop", delya: "1ms" }, "fault: delya: "],
  [{ kind: "drop", share: "200%" }, "fault: share: 200% is out of range", "must be 0 to 1"],
  [{ kind: "drop", opcode: ["wrte"] }, "fault: opcode.0: an opcode is send, write"],
  [{ kind: "drop", from: "nowhere" }, "fault: from: nowhere"],
  [{ kind: "drop", port: "eth9" }, 'sw0 has no port called "eth9"', "its ports: eth1, eth2"],
  [{ kind: "drop" }, "fault: port: which port?", "its ports: eth1, eth2"],
  [{ kind: "delay", port: "eth1" }, "fault: delay: is missing"],
  [{ kind: "drop", port: "eth1", delay: "1ms" }, "fault: delay: not with kind drop"],
  [{ kind: "drop", port: "eth1", up: "1ms" }, "fault: up: not with kind drop"],
  [{ kind: "down", port: "eth1", down: "1ms" }, "fault: up: is missing"],
  [{ kind: "down", port: "eth1", qp: 1 }, "fault: qp: not with kind down"],
  [{ kind: "down", port: "eth1", share: "1%" }, "fault: share: not with kind down"],
])("refuses %j", (asked, message, hint) => {
  const { own, faults } = device(["eth1", "eth2"]);
  let error: WeirError | undefined;
  try {
    faults.make(asked);
  } catch (thrown) {
    error = thrown as WeirError;
  }
  expect(error?.message).toContain(message);
  if (hint !== undefined) expect(error?.hint).toContain(hint);
  expect(own.made).toEqual([]);
});

it("knows each opcode of reliable connections by one word", () => {
  const all = Object.values(kOpcodes).flat();
  expect(new Set(all).size).toBe(all.length);
  // IBTA volume 1, table 38: 0x00 to 0x14, and SEND with invalidate.
  for (let opcode = 0; opcode <= 0x17; ++opcode) expect(all.includes(opcode)).toBe(opcode !== 0x15);
});
