import { describe, expect, it } from "vitest";
import { loadSwitchDaemon } from "../../src/device/file/load.js";
import { checkPlan } from "../../src/models/buffers/index.js";
import { headroomFor } from "../../src/scenario/headroom.js";
import { settingsOf } from "../../src/scenario/port_profiles.js";
import { parseScenarioText } from "../../src/scenario/scenario.js";
import { reservedBytes } from "../../src/scenario/thresholds.js";

/** Two leaves with 400 Gb/s to hosts, 800 Gb/s to two spines. */
const fabric = (headroom: string, more = "") =>
  parseScenarioText(`
duration: 1ms
topology:
  kind: leaf-spine
  leaves: 2
  spines: 2
  hosts: 3
  link: { rate: 400Gbps, delay: 1us }
  uplink: { rate: 800Gbps, delay: 2us }
traffic: [{ pattern: permutation }]
switch:
  buffer: { headroom: ${headroom}, total: 64MB }
${more}
`);

const needed = (rate: number, delay: number, mtu = 1500) =>
  headroomFor({ rate, delay, mtu, interfaceDelay: 0, trigger: true }).bytes;

describe("headroom: auto", () => {
  it("is at each port what its link needs, and what that reserves counts", () => {
    const { scenario, warnings } = fabric("auto");
    expect(warnings).toEqual([]);
    const [leaf, , spine] = scenario.switches;
    if (leaf === undefined || spine === undefined) throw new Error("no switches");
    const [down, up] = [needed(400e9, 1000), needed(800e9, 2000)];
    expect(settingsOf(leaf, "h1-1").buffer.headroom).toBe(down);
    expect(settingsOf(leaf, "spine1").buffer.headroom).toBe(up);
    expect(reservedBytes(leaf.buffer, 5)).toBe(8 * (3 * down + 2 * up));
    // If all links are alike no port has anything of its own.
    expect(spine.buffer).toMatchObject({ headroom: up, besides: 0, automatic: true });
    expect(spine.profiled.size).toBe(0);
    expect(checkPlan(scenario)).toMatchObject({ lossless: true });
  });

  it("leaves what profiles say, and may be what they say", () => {
    const profiles = "  port_profiles: { host: { ports: [h1-1], buffer: { headroom: 200KB }, ecn: { kmin: 9KB } } }";
    const [leaf] = fabric("auto", profiles).scenario.switches;
    if (leaf === undefined) throw new Error("no switch");
    expect(settingsOf(leaf, "h1-1")).toMatchObject({ buffer: { headroom: 200_000 }, ecn: { kmin: 9000 } });
    expect(settingsOf(leaf, "h1-2")).toMatchObject({ buffer: { headroom: needed(400e9, 1000) }, ecn: { kmin: 5000 } });
    const [other] = fabric("20KB", "  port_profiles: { up: { rate: 800Gbps, buffer: { headroom: auto } } }").scenario
      .switches;
    if (other === undefined) throw new Error("no switch");
    expect(settingsOf(other, "spine1").buffer.headroom).toBe(needed(800e9, 2000));
    expect(settingsOf(other, "h1-1").buffer.headroom).toBe(20_000);
  });

  it("may be of one switch alone", () => {
    const { scenario } = parseScenarioText(`
topology:
  { kind: dumbbell, senders: 2, link: { rate: 100Gbps }, switch_overrides: { left: { buffer: { headroom: auto } } } }
`);
    const [left, right] = scenario.switches;
    expect(left?.buffer).toMatchObject({ headroom: needed(100e9, 1000), automatic: true });
    expect(right?.buffer).toMatchObject({ headroom: 22_400, automatic: false });
  });

  it.each([
    [
      "kind: star, hosts: 3, link: { rate: 400Gbps, delay: 1ms }",
      "auto",
      /buffer\.total: 64 MB is too small .* 8 prior/,
    ],
    ["kind: dumbbell, senders: 1, bottleneck: { rate: unlimited }", "auto", /auto, but the link to right has no rate/],
    ["kind: star, hosts: 3", "atuo", /switch\.buffer\.headroom: atuo: not a size/],
  ])("is refused where it cannot be: %s, %s", (topology, headroom, message) => {
    const text = `{ topology: { ${topology} }, switch: { buffer: { headroom: ${headroom}, total: 64MB } } }`;
    expect(() => parseScenarioText(text)).toThrow(message);
  });

  it("is refused of daemons, which do not know how long cables are", () => {
    const daemon = (fields: string) => () =>
      loadSwitchDaemon("sw.yaml", {
        text: `ports: [{ interface: x, rate: 1Gbps }, { interface: y, rate: 1Gbps }]\n${fields}`,
      });
    const message = "auto, but a switch.yaml does not say how long cables are";
    expect(daemon("buffer: { headroom: auto }")).toThrow(`buffer.headroom: ${message}`);
    expect(daemon("port_profiles: { a: { ports: [x], buffer: { headroom: auto } } }")).toThrow(
      `port_profiles.a.buffer.headroom: ${message}`,
    );
    expect(daemon("port_profiles: { a: { ports: [x], buffer: { cable: 100m } } }")).not.toThrow();
  });
});

describe("too little headroom", () => {
  it("is told once for links of a kind, whatever the number of switches, with the remedy", () => {
    const { warnings } = fabric("22.4KB");
    expect(warnings).toEqual([
      "switch leaf1: headroom 22.4 KB is less than the 104.65 KB that can be under way on the link to h1-1 (400 Gb/s, 1 us), and 5 " +
        "ports alike: packets may be lost in spite of PFC; `switch.buffer.headroom: auto` is as much as each link needs",
      "switch leaf1: headroom 22.4 KB is less than the 404.65 KB that can be under way on the link to spine1 (800 Gb/s, 2 us), and 7 " +
        "ports alike: packets may be lost in spite of PFC; `switch.buffer.headroom: auto` is as much as each link needs",
    ]);
  });

  it("of a daemon has the cable as its remedy", () => {
    const { warnings } = loadSwitchDaemon("sw.yaml", {
      text: "ports: [{ interface: x, rate: 40Gbps, delay: 10us }, { interface: y, rate: 1Gbps }]",
    });
    expect(warnings.join()).toMatch(
      /on the link to x \(40 Gb\/s, 10 us\): .*`port_profiles` find headroom by the `cable`/,
    );
  });
});
