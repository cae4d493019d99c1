/** Ports of a switch.yaml: links with a delay, rates that change, and VLANs. */
import { describe, expect, it } from "vitest";
import { loadSwitchDaemon } from "../../../src/device/file/load.js";
import { refusalOf } from "../../fixtures/refusal.js";

const inspect = () => ({ mtu: 1500, mac: 0x02_57_00_00_00_01 });
const switchOf = (text: string) => loadSwitchDaemon("sw0.yaml", { inspect, text });

describe("a switch's port", () => {
  it("has links with a delay, where it knows how much is under way", () => {
    const { config } = switchOf("ports: [{ interface: a, rate: 1Gbps, delay: 64ms }, { interface: b }]");
    expect(config.ports.map(({ delay, backend }) => [delay, backend.receive])).toEqual([
      [64e6, "af_packet"],
      [0, "auto"],
    ]);
    const wrong = (fields: string) => refusalOf(() => switchOf(`ports: [{ interface: a, ${fields} }]`));
    expect(wrong("delay: 1ms")).toContain("ports.0.delay: takes a rate");
    expect(wrong("rate: 10Gbps, delay: 64ms")).toContain(
      "ports.0.delay: 64 ms of 10 Gb/s are more than 32 MB under way",
    );
    expect(wrong("rate: 1Gbps, delay: 1ms, backend: af_xdp")).toContain("ports.0.receive: af_xdp holds few frames");
    expect(wrong("rate: 1Gbps, delay: 2s")).toContain("ports.0.delay: 2s is out of range");
    expect(refusalOf(() => switchOf("ports: [{ interface: a }]\nchanges: [{ port: b, rate: 1Mbps }]"))).toContain(
      "changes.0.port",
    );
  });

  it("puts ports into VLANs, and refuses what no switch could do", () => {
    const { config, warnings } = switchOf(`
ports:
  - { interface: a, vlans: { untagged: 10, tagged: [20, 30] } }
  - { interface: b, vlans: { tagged: [10] } }
router: { interfaces: [{ vlan: 20, address: 10.0.0.1/24 }] }`);
    expect(config.ports.map(({ vlans }) => vlans)).toEqual([
      { untagged: 10, tagged: [20, 30] },
      { untagged: 0, tagged: [10] },
    ]);
    expect(warnings).toEqual([]);
    expect(
      switchOf("ports: [{ interface: a, vlans: { untagged: 1 } }, { interface: b, vlans: {} }, { interface: c }]")
        .warnings,
    ).toEqual(["c: in no VLAN, while other ports are, so all that comes there is dropped; `vlans: {}` says so"]);
    const wrong = refusalOf(() =>
      switchOf(`
ports:
  - { interface: a, vlans: { untagged: 10, tagged: [10, 20, 20] } }
  - { interface: b, vlans: { untagged: 10 } }
router: { interfaces: [{ address: 10.0.0.1/24 }, { vlan: 7, address: 10.0.1.1/24 }, { port: b, address: 10.0.2.1/24 }] }`),
    );
    expect(wrong).toContain("ports.0.vlans.tagged: 20 is there twice");
    expect(wrong).toContain("ports.0.vlans.tagged: 10 is the untagged VLAN, too");
    expect(wrong).toContain("ports.1.vlans: b routes, and does not bridge");
    expect(wrong).toContain("router.interfaces.0.vlan: is missing: bridge is at ports that are in VLANs");
    expect(wrong).toContain("router.interfaces.1.vlan: no port is in VLAN 7");
    expect(refusalOf(() => switchOf("ports: [{ interface: a, vlans: { untagged: 4095 } }]"))).toContain(
      "ports.0.vlans.untagged: 4095 is too large",
    );
    expect(refusalOf(() => switchOf("ports: [{ interface: a, vlans: { tagged: [0] } }]"))).toContain(
      "ports.0.vlans.tagged.0: 0 is too small",
    );
  });
});
