/** A counter says what it means: every one has a meaning, and a drop that nobody has heard of is one wherever drops are told. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { countersIn, nativeCounters } from "../../scripts/generate-metrics.js";
import { LiveStates } from "../../src/clocks/lab/live_state.js";
import { frameAccount } from "../../src/clocks/lab/outcome.js";
import { SimulationTables } from "../../src/clocks/sim/tables.js";
import { Device, type DeviceSource } from "../../src/device/device.js";
import { Frames, type Network } from "../../src/device/frames.js";
import type { ControlRequests } from "../../src/device/protocol.js";
import { CounterTable, kLosses } from "../../src/native/counters.js";
import type { SimulationCounters, SimulationManifest } from "../../src/native/simulation_types.js";
import type { CounterDescription } from "../../src/native/types.js";
import { accountFrames, switchResult } from "../../src/result/device_results.js";
import { MetricsRegistry } from "../../src/watch/metrics/registry.js";
import { kViews } from "../../src/watch/show/views.js";
import { sampleOf } from "../../src/watch/top/sample.js";
import { counterTable, recorderOf, smallScenario } from "../clocks/lab/evidence.js";
import { kSwitch, source } from "../watch/metrics/source.js";
import { port } from "../watch/show/answers.js";
import { device } from "../watch/top/samples.js";

const counters = [
  ...nativeCounters(),
  ...countersIn("native/simulation/counters.h", "WEIR_LINK_COUNTERS").map((one) => ({ ...one, scope: "link" })),
];
/** In their order, by the header. */
const kWords = [
  ...(
    /words_of\(CounterMeaning\) \{([^}]*\})/.exec(readFileSync("native/base/counters.h", "utf8"))?.[1] ?? ""
  ).matchAll(/"(\w+)"/g),
].map(([, word]) => word);

describe("meanings", () => {
  it("are words of the header, and of all words some counter has each", () => {
    expect(kWords).toContain("drop");
    expect([...new Set(counters.map(({ meaning }) => meaning))].sort()).toEqual([...kWords].sort());
  });

  it("are what counters are called, where they are called so", () => {
    const named = (pattern: RegExp) => counters.filter(({ name }) => pattern.test(name)).map(({ meaning }) => meaning);
    expect(new Set(named(/^drop_/))).toEqual(new Set(["drop"]));
    expect(new Set(named(/^rp_cnm_(?!handled)/))).toEqual(new Set(["cnm_refused"]));
    expect(new Set(named(/_watermark_/))).toEqual(new Set(["gauge"]));
  });

  it("are of one unit each, so that they can be added up", () => {
    const units = (meaning: string) =>
      new Set(counters.filter((one) => one.meaning === meaning).map(({ unit }) => unit.replace("frames", "packets")));
    const added = kWords.filter((word) => word !== "none" && word !== "gauge");
    for (const word of added)
      expect([word, ...units(word ?? "")]).toEqual([word, word === "paused" ? "ns" : "packets"]);
  });

  it("are none of queue pairs, whose NIC counts the same", () => {
    const ofPairs = counters.filter(({ scope }) => scope === "queue_pair");
    expect(new Set(ofPairs.map(({ meaning }) => meaning))).toEqual(new Set(["none"]));
  });
});

/** Not in native/, and not called as those are that drop. */
const kMadeUp: CounterDescription = {
  name: "gone_up_in_smoke",
  unit: "packets",
  meaning: "drop",
  help: "Dropped: up in smoke",
  labels: { switch: "sw", port: "a" },
};

/** A worker's counters, of which there is only that one. */
function dropping() {
  const told = { value: 7, at: 1e9 };
  const table = new CounterTable({
    manifest: () => [kMadeUp],
    readCounters: (target) => {
      target[0] = told.value;
      return told.at;
    },
  });
  table.refresh();
  const more = (count: number) => {
    told.value += count;
    told.at += 1e9;
    table.refresh();
  };
  return { table, more };
}

describe("a drop that nobody has heard of", () => {
  const { table } = dropping();
  const none = counterTable([]);
  const running = () => {
    const own = dropping();
    const about = { kind: "switch", name: "sw", scale: 1, counted: () => own.table } as unknown as DeviceSource;
    const host = { version: "", status: () => ({ uptime_s: 0, control: "", metrics: null, dashboard: null }) };
    return { ...own, device: new Device(about, host) };
  };

  it("is in the account of frames, on the wire and in virtual time", () => {
    expect(frameAccount(smallScenario(), table, none)).toMatchObject({ dropped: 7, missing: -7 });
    const tables = new SimulationTables(
      { ...kNoManifest, switch_port: [kMadeUp] },
      { ...kNoCounters, switch_ports: Float64Array.of(3, 4) },
      [1, 1],
      { nics: 0, links: 0 },
    );
    expect(accountFrames(tables.allSwitches(), tables.allNics())).toMatchObject({ dropped: 7, missing: -7 });
    expect(switchResult(tables.switchAt(1), []).drops).toEqual({ gone_up_in_smoke: 4 });
  });

  it("is in a switch's result", () => {
    expect(switchResult(table.at({ switch: "sw" }), []).drops).toEqual({ gone_up_in_smoke: 7 });
  });

  it("is in `weir show`", () => {
    const answers = { counters: running().device.counters(), ports: [port("a")] } as unknown as ControlRequests;
    const [ports, drops] = kViews.counters.grids(answers).map(({ head, rows }) => ({ head, rows }));
    expect(ports?.rows[0]?.[ports.head.indexOf("RX_DRP")]).toBe("7");
    expect(drops?.rows).toEqual([["a", "gone_up_in_smoke", "7"]]);
  });

  it("is in `weir top`", () => {
    const { device: own, more } = running();
    const reading = () => ({
      ...{ device: device("sw", "switch"), scale: 1, counters: own.counters(), ports: [port("a")] },
      ...{ queueBytes: [0], pairs: [] },
    });
    const before = new Map([["sw", reading()]]);
    more(5);
    expect(sampleOf([reading()], before, new Date()).ports[0]?.drops_per_s).toBe(5);
  });

  it("is in /metrics", async () => {
    const { source: told } = source([], { counters: () => [table] });
    expect(await new MetricsRegistry(told, kSwitch).scrape()).toMatch(
      /^weir_switch_port_dropped_packets_total\{.*reason="gone_up_in_smoke".*\} 7$/m,
    );
  });

  it("is in the dashboard's frames, and in the live view", () => {
    const own = dropping();
    const network = {
      ...{ run: 0, scale: 1, tables: [own.table], own: new Set(["sw"]), links: [{ from: "a", to: "sw" }], flows: [] },
      ...{ now: () => 0, look: () => {}, rates: () => ({}), queues: () => ({}), loopGap: () => 0 },
    } as unknown as Network;
    const frames = new Frames(network);
    own.more(5);
    expect(frames.take().events).toEqual([{ kind: "drop", where: "sw:a:gone_up_in_smoke", count: 5 }]);
    const scenario = smallScenario();
    const side = (counters: CounterTable) => ({ counters, worker: { worstGap: () => 0 } });
    const lab = { scenario, scale: 1, recorder: recorderOf(scenario), now: () => 0 };
    const states = new LiveStates({ update: () => {} });
    const shown = { ...lab, switches: side(table), nics: side(none) } as unknown as Parameters<typeof states.state>[0];
    expect(states.state(shown).drops).toBe(7);
  });

  it("is one of the losses", () => {
    expect(table.of(...kLosses).sum()).toBe(7);
  });
});

const kNoManifest: SimulationManifest = {
  ...{ switch_port: [], switch_priority: [], nic: [], nic_priority: [] },
  ...{ transport: [], queue_pair: [], link: [] },
};
const kNoCounters = Object.fromEntries(
  "switch_ports switch_priorities nics nic_priorities transports senders receivers links"
    .split(" ")
    .map((table) => [table, new Float64Array(0)]),
) as unknown as SimulationCounters;
