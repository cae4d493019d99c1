/** 802.3x in place of PFC, packet trimming, and a NIC's limit of CNPs: their defaults, errors and warnings. */
import { describe, expect, it } from "vitest";
import { nicBehaviour, switchBehaviour } from "../../src/device/behaviour.js";
import { nicFromData } from "../../src/device/file/load.js";
import { checkPlan } from "../../src/models/buffers/check.js";
import { kUnits } from "../../src/native/units.js";
import { inWallUnits } from "../../src/native/wall.js";
import { parseScenarioText } from "../../src/scenario/scenario.js";
import type { HostConfig, SwitchConfig } from "../../src/scenario/types.js";
import { starText } from "../fixtures/networks.js";
import { refusalOf } from "../fixtures/refusal.js";

const BASE = `
duration: 100ms
topology: ${starText(["h1", "h2", "r"], { rate: "10Gbps" })}
traffic:
  - { from: [h1, h2], to: r, priority: 0 }
`;
const load = (...set: string[]) => parseScenarioText(BASE, "flow.yaml", { set });
const switchOf = (...set: string[]) => load(...set).scenario.switches[0] as SwitchConfig;
const hostOf = (...set: string[]) => load(...set).scenario.hosts[0] as HostConfig;
const refusal = (...set: string[]) => refusalOf(() => load(...set));
const native = (...set: string[]) => switchBehaviour(switchOf(...set), 0);
const kPause = ["switch.pfc.enabled=false", "switch.pfc.link_pause=true"];
const kTrim = "switch.trimming.enabled=true";

describe("802.3x in place of PFC", () => {
  it("makes all priorities lossless, by PAUSE frames, at switches and NICs", () => {
    expect(native(...kPause)).toMatchObject({ pfc_priorities: 0xff, link_pause: true });
    const setting = { rate: 10e9, seed: 1, component: 0 };
    const { scenario } = load(...kPause);
    const nic = nicBehaviour(hostOf(...kPause), switchOf(...kPause), scenario.congestion, setting);
    expect(nic).toMatchObject({ pfc_priorities: 0xff, link_pause: true });
    expect(native()).not.toHaveProperty("link_pause");
    expect(native("switch.pfc.enabled=false")).toMatchObject({ pfc_priorities: 0 });
  });

  it("is not beside PFC, and needs headroom for all priorities", () => {
    expect(refusal("switch.pfc.link_pause=true")).toMatch(/PFC is on.*\n?.*pfc\.enabled: false/s);
    expect(refusal(...kPause, "switch.buffer.priorities=4")).toMatch(/buffer\.priorities.*must be at least 8/s);
    expect(refusal(...kPause, "switch.buffer.headroom=0")).toMatch(/pfc\.link_pause: false/);
  });

  it("is in files of NICs, and lossless for the planner", () => {
    const data = { interface: "eth1", address: "10.0.0.1", pfc: { enabled: false, link_pause: true } };
    expect(nicFromData(data, "nic").config.classes.pfc).toMatchObject({ by: "pause", enabled: true });
    expect(() => nicFromData({ ...data, pfc: { link_pause: true } }, "nic")).toThrow(/PFC is on/);
    expect(checkPlan(load(...kPause).scenario).lossless).toBe(true);
    expect(checkPlan(load("switch.pfc.enabled=false").scenario).lossless).toBe(false);
  });
});

describe("packet trimming", () => {
  it("is off; on, it is of priority 0, to 128 bytes, with a DSCP whose priority is the queue's, that hosts know", () => {
    expect(native()).not.toHaveProperty("trimming");
    expect(hostOf().trimmed_dscp).toBeUndefined();
    expect(native(kTrim)).toMatchObject({ trimming: { priorities: 1, size: 128, dscp: 40, queue: 5 } });
    expect(hostOf(kTrim).trimmed_dscp).toBe(40);
    expect(hostOf(kTrim, "host.trimmed_dscp=12").trimmed_dscp).toBe(12);
    expect(native(kTrim).trimming).not.toHaveProperty("buffer");
    expect(native(kTrim, "switch.trimming.buffer=60KB")).toMatchObject({ trimming: { buffer: 60_000 } });
    expect(native(kTrim, "switch.dscp_map={20: 2}", "switch.trimming.dscp=20")).toMatchObject({
      trimming: { dscp: 20, queue: 2 },
    });
  });

  it.each([
    ["a lossless priority", ["switch.trimming.priorities=[0,3]"], /priorities.*3 is lossless/s],
    ["no priority", ["switch.trimming.priorities=[]"], /nothing is trimmed/],
    ["a queue of its own frames", ["switch.trimming.queue=0"], /priority 0.*is one of those that are trimmed/s],
    ["a lossless queue", ["switch.trimming.queue=3"], /priority 3.*is lossless/s],
    ["too small", ["switch.trimming.size=64B"], /128 B/],
    ["a queue too short for a few", ["switch.trimming.buffer=100B"], /1 KB/],
    ["no DSCP", ["switch.trimming.dscp=64"], /64 is too large.*at most 63/s],
  ])("refuses %s", (_, set, message) => {
    expect(refusal(kTrim, ...set)).toMatch(message);
  });

  it("is acted on by transport.trim_naks, with selective repeat, where something is trimmed", () => {
    const [rc, naks] = ["transport={type: rc, recovery: selective-repeat}", "transport.trim_naks=true"];
    expect(load(kTrim, rc, naks).warnings).toEqual([]);
    expect(load(kTrim, rc, naks).scenario.transport.trim_naks).toBe(true);
    expect(load(rc, naks).warnings[0]).toMatch(/what switches have trimmed, and none does/);
    expect(load(kTrim, "transport.recovery=selective-repeat", naks).warnings).toEqual([
      expect.stringMatching(/with transport.type stream nothing is sent again/),
    ]);
    expect(refusal(kTrim, "transport.type=rc", naks)).toMatch(
      /trim_naks.*go-back-n sends everything again.*trim_naks: false/s,
    );
  });

  it("is acted on by a NIC that is told which packets are trimmed ones", () => {
    const transport = { type: "rc", recovery: "selective-repeat", trim_naks: true };
    const data = { interface: "eth1", address: "10.0.0.1", transport };
    expect(nicFromData({ ...data, trimmed_dscp: 40 }, "nic").config.transport.trim_naks).toBe(true);
    expect(() => nicFromData(data, "nic")).toThrow(/trim_naks: nothing says which packets have been trimmed/);
  });

  it("warns of traffic that has the DSCP of trimmed packets, and where the next switch takes them for others", () => {
    expect(load(kTrim).warnings).toEqual([]);
    expect(load(kTrim, "traffic.0.dscp=40", "switch.dscp_map={40: 0}", "switch.trimming.queue=5").warnings).toEqual([
      expect.stringMatching(/dscp_map gives DSCP 40 of trimmed frames priority 0, not trimming\.queue 5/),
      expect.stringMatching(/CNPs/),
      expect.stringMatching(/DSCP 40 of the traffic is that of trimmed packets/),
    ]);
    expect(load(kTrim, "switch.trust=pcp").warnings).toEqual(
      expect.arrayContaining([expect.stringMatching(/trusts pcp, so it takes frames that another switch has trimmed/)]),
    );
  });
});

describe("a NIC's limit of CNPs", () => {
  it("is off, and is stretched by the scale as any time", () => {
    const setting = { rate: 1e9, seed: 1, component: 0 };
    const at = (scale: number, ...set: string[]) =>
      inWallUnits(
        nicBehaviour(hostOf(...set), switchOf(), load().scenario.congestion, setting),
        kUnits.NativeNic,
        scale,
      );
    expect(at(1)).not.toHaveProperty("cnp_nic_interval");
    expect(at(20, "host.cnp.nic_interval=5us")).toMatchObject({ cnp_nic_interval: 100_000 });
    expect(refusal("host.cnp.nic_interval=2s")).toMatch(/nic_interval/);
  });
});
