/** QCN and changing rates in labs: what native devices are given at a scale, when changes are made, and what results say. */
import { describe, expect, it } from "vitest";
import { RateChanges } from "../../../src/clocks/lab/changes.js";
import { checkForLab } from "../../../src/clocks/lab/check.js";
import { composeLab } from "../../../src/clocks/lab/compose.js";
import { MessageTimes } from "../../../src/clocks/lab/message_times.js";
import { composeResult } from "../../../src/clocks/lab/outcome.js";
import { receiveSlots } from "../../../src/device/behaviour.js";
import { kRecordWords, RecordKind, type WorkerConfig } from "../../../src/native/types.js";
import { flowMac, hostMac } from "../../../src/scenario/addresses.js";
import type { Scenario } from "../../../src/scenario/scenario.js";
import { star } from "../../fixtures/networks.js";
import { calmOutcome, completionsOf, constant, counterTable, recorderOf, smallScenario } from "./evidence.js";

const kQcn = {
  switch: { ecn: { enabled: false }, qcn: { enabled: true, cpQSp: "33KB", cpWeight: 1 } },
  congestion: { algorithm: "qcn" },
};

function compose(scenario: Scenario, scale: number, time = 0): [WorkerConfig, WorkerConfig] {
  return composeLab(scenario, {
    scale,
    time,
    end: (link, node) => ({ interface: `${node}-${link}`, namespaceFd: 100 + link }),
    cpus: { switches: 1, nics: 0 },
  }) as [WorkerConfig, WorkerConfig];
}

describe("composeLab with QCN", () => {
  it("divides rates and multiplies times, the token bucket's too, and leaves bytes", () => {
    const [switches, nics] = compose(smallScenario({ ...kQcn, host: { qcn: { limiter: "token-bucket" } } }), 10);
    expect(nics.nics[1]).toMatchObject({
      congestion_control: "qcn",
      qcn: {
        variant: "qcn",
        rpgTimeReset: 150e6,
        rpgByteReset: 150_000,
        rpgThreshold: 5,
        hyperThreshold: 5,
        rpgAiRate: 500_000,
        rpgHaiRate: 5e6,
        rpgMaxRate: 0,
        rpgMinRate: 500_000,
        gd: 1 / 128,
        rpgMinDecFac: 0.5,
      },
      cn_priorities: 8,
      flows: "qp",
      reaction_points: 100,
      cn_tag: true,
      limiter: "token-bucket",
      token_bucket: { tick: 160_000 },
      seed: 1,
      component: 1,
    });
    expect(nics.nics[0]).not.toHaveProperty("dcqcn");
    expect(switches.switches[0]).toMatchObject({
      cn_priorities: 8,
      cnm_priority: 6,
      cp_min_header_octets: 0,
      qcn: { queue_set_point: 33_000, weight: 1, sample_base: 150_000 },
    });
    expect(switches.switches[0]?.ports[0]).toMatchObject({
      cn_defence: Array.from({ length: 8 }, (_, priority) => (priority === 3 ? "interior-ready" : "disabled")),
      cn_alternate_priority: [0, 0, 0, 0, 0, 0, 0, 0],
    });
  });

  it("says nothing of it without QCN", () => {
    const [switches, nics] = compose(smallScenario(), 10);
    expect(nics.nics[0]).not.toHaveProperty("qcn");
    expect(switches.switches[0]).not.toHaveProperty("cn_priorities");
    expect(switches.switches[0]?.ports[0]).not.toHaveProperty("cn_defence");
  });

  it("gives flows source addresses of their own, and routes what comes back", () => {
    const traffic = [
      { id: "x", from: ["a", "b"], to: "c", source_mac: "own", qps: 2 },
      { id: "y", from: "c", to: "a" },
    ];
    const [switches, nics] = compose(smallScenario({ ...kQcn, traffic }), 10);
    const { source_mac, application } = nics.network?.flows ?? {};
    expect([...(source_mac ?? [])]).toEqual([...[0, 1, 2, 3].map((flow) => flowMac(flow)), 0]);
    expect([...(application ?? [])]).toEqual([0, 0, 0, 0, 1]);
    const routes = new Map(switches.switches[0]?.routes.map((route) => [route.destination_mac, route.ports]));
    expect(routes.get(flowMac(0))).toEqual(routes.get(hostMac(0)));
    expect(routes.get(flowMac(2))).toEqual(routes.get(hostMac(1)));
    expect(routes.size).toBe(3 + 4);
  });

  it("takes service rates from the time that is asked for", () => {
    const changes = [
      { switch: "sw", port: "c", rate: "9Gbps" },
      { at: "40ms", switch: "sw", port: "c", rate: "2Gbps" },
    ];
    const scenario = smallScenario({ changes });
    const rates = (time: number) =>
      compose(scenario, 10, time)[0].switches[0]?.ports.map((port) => port.priority_rates);
    expect(rates(0)).toEqual([undefined, undefined, [0, 0, 0, 900e6, 0, 0, 0, 0]]);
    expect(rates(40e6)?.[2]?.[3]).toBe(200e6);
  });
});

describe("long links", () => {
  it("have slots for all that is under way, which is as much at every scale", () => {
    const link = { rate: "1Gbps", delay: "64ms" };
    const scenario = smallScenario({
      topology: star(["a", "b", "c"], link),
      duration: "1s",
    });
    for (const scale of [1, 10]) {
      const [switches, nics] = compose(scenario, scale);
      const port = switches.switches[0]?.ports[0];
      // 8 MB in frames of path MTU 1024.
      expect(port?.receive_slots).toBeGreaterThan(8e6 / 1082);
      expect(nics.nics[0]?.port.receive_slots).toBeGreaterThan(8e6 / 1082);
      expect(switches.packets).toBeGreaterThan(3 * (port?.receive_slots ?? 0));
    }
    expect(() => checkForLab(scenario)).not.toThrow();
    expect(receiveSlots(10e9, 0, { delay: 100e6, frame: 300 })).toBe(65_536);
  });

  it("are refused where no port could hold it", () => {
    const scenario = smallScenario({
      topology: star(["a", "c"], { rate: "40Gbps", delay: "64ms" }),
      traffic: [{ from: "a", to: "c" }],
    });
    expect(() => checkForLab(scenario)).toThrow("295749 frames are under way on the link a -- sw (40 Gb/s, 64 ms)");
  });
});

describe("RateChanges", () => {
  it("makes each change when its time has come, and notes how late", async () => {
    let now = 1000;
    const made: string[] = [];
    const worker = { reconfigure: ({ name }: WorkerConfig) => void made.push(name) };
    const planned = [10, 20, 30].map((at) => ({ at, config: { name: `at ${at}` } as WorkerConfig }));
    const changes = new RateChanges(worker, planned, { begin: 1000, scale: 10, now: () => now });
    changes.apply();
    expect(made).toEqual([]);
    now = 1107;
    changes.apply();
    expect(made).toEqual(["at 10"]);
    now = 1301;
    changes.apply();
    changes.apply();
    expect(made).toEqual(["at 10", "at 20", "at 30"]);
    expect(changes.applied).toEqual([
      { at: 10, late: 7 },
      { at: 20, late: 101 },
      { at: 30, late: 1 },
    ]);
  });

  it("makes those still to come on top of parameters that have changed meanwhile", () => {
    let now = 0;
    const made: string[] = [];
    const worker = { reconfigure: ({ name }: WorkerConfig) => void made.push(name) };
    const planned = [10, 20, 30].map((at) => ({ at, config: { name: `old ${at}` } as WorkerConfig }));
    const changes = new RateChanges(worker, planned, { begin: 0, scale: 1, now: () => now });
    now = 10;
    changes.apply();
    changes.replan((at) => ({ name: `new ${at}` }) as WorkerConfig);
    now = 30;
    changes.apply();
    expect(made).toEqual(["old 10", "new 20", "new 30"]);
    expect(changes.applied.map(({ at }) => at)).toEqual([10, 20, 30]);
  });

  it("sleeps no longer than until the next one", async () => {
    const begin = performance.now();
    const clock = { begin: 0, scale: 1, now: () => (performance.now() - begin) * 1e6 };
    const changes = new RateChanges({ reconfigure: () => undefined }, [{ at: 5e6, config: {} as WorkerConfig }], clock);
    await changes.wait(10_000);
    expect(performance.now() - begin).toBeLessThan(5000);
  });
});

describe("the result of a lab with QCN", () => {
  const scenario = smallScenario(kQcn);
  const at = { switch: "sw", port: "c", priority: "3" };
  const switches = counterTable([
    ["cn_cp_transmitted_frames", at, 9000],
    ["cn_cp_transmitted_cnms", at, 50],
    ["cn_cp_discarded_frames", at, 2],
    ["wred_ecn_marked_packets", at, 0],
  ]);
  const nics = counterTable([
    ["rp_cnm_handled", { device: "a" }, 30],
    ["rp_cnm_unknown_flow", { device: "a" }, 1],
    ["rp_cnm_truncated", { device: "a" }, 0],
    ["rp_port_pri_created_rps", { device: "a", priority: "3" }, 4],
    ["rp_port_pri_centiseconds", { device: "a", priority: "3" }, 8],
    ["cnp_handled", { device: "a", flow: "x/a", qpn: "0x11" }, 30],
    ["rx_packets", { device: "a" }, 50],
  ]);
  const recorder = recorderOf(scenario);
  const result = composeResult({
    scenario,
    scale: 10,
    recorder,
    completions: completionsOf(scenario),
    messageTimes: new MessageTimes(),
    switches,
    nics,
    outcomes: [{ ...calmOutcome(), queues: [{ ...constant(33_000), switch: "sw", port: "c", priority: 3 }] }],
    changes: [{ at: 40e6, late: 250_000 }],
    parameterChanges: [],
    faults: [],
    unread: 0,
  });

  it("counts CNMs by flow, congestion point and NIC, and per second", () => {
    expect(result).toMatchObject({ profile: "802.1qau", congestion_control: "qcn", totals: { feedback_per_s: 500 } });
    expect(result.flows[0]).toMatchObject({ id: "x/a", cnp_handled: 0, cnm_handled: 30 });
    expect(result.switches.sw).toMatchObject({
      cnm_sent: 50,
      congestion_points: { c: { "3": { frames: 9000, cnms: 50, discarded: 2 } } },
    });
    expect(result.switches.sw?.congestion_points).toEqual({ c: { "3": expect.anything() } });
    expect(result.nics.a).toMatchObject({
      rp_cnm_handled: 30,
      rp_cnm_refused: { unknown_flow: 1 },
      rp_created: { "3": 4 },
      rp_limited_s: { "3": 0.008 },
    });
    expect(result.frames).toMatchObject({ sent: 50, received: 50, missing: 0 });
  });

  it("tells how late changes were, and does not count a run in which they were too late", () => {
    expect(result.fidelity).toMatchObject({ valid: true, changes: [{ at_s: 0.04, late_us: 250 }] });
    const late = composeResult({
      ...{ scenario, scale: 10, recorder, switches, nics, outcomes: [calmOutcome()] },
      completions: completionsOf(scenario),
      messageTimes: new MessageTimes(),
      changes: [{ at: 40e6, late: 6e6 }],
      parameterChanges: [],
      faults: [],
      unread: 0,
    });
    expect(late.fidelity.reasons).toContain(
      "rates or routes were changed 6.00 ms late, more than the allowed lateness of 5.00 ms",
    );
  });

  it("has no alpha in its series, but CNMs by queue", () => {
    const words = new Float64Array(3 * kRecordWords);
    for (const i of [0, 1]) {
      words.set([i * 100e6, RecordKind.queue, 0, 2 * 8 + 3, 1000, 2000, 0, 5 * i], i * kRecordWords);
    }
    words.set([0, RecordKind.transmit, 0, 0, 1e9, 1e9, 0, 0], 2 * kRecordWords);
    recorder.take(words, 3);
    const series = recorder.series(20e6);
    expect(series.flows["x/a"]?.alpha).toBeNull();
    expect(series.cnms).toEqual({ "sw:c:3": [0, 5, 0] });
  });
});
