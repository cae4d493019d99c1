/** Routers of a scenario's switches that route. */
import { describe, expect, it } from "vitest";
import { fabricRouter, gatewayOf } from "../../src/device/fabric_router.js";
import { Fabric } from "../../src/scenario/fabric.js";
import { parseScenarioText } from "../../src/scenario/scenario.js";

const scenario = (text: string) => parseScenarioText(text).scenario;

/** Two leaves with three hosts each, and two spines. */
const kLeafSpine = `
topology: { kind: leaf-spine, leaves: 2, spines: 2, hosts: 3, link: { rate: 10Gbps, delay: 1us }, uplink: { rate: 40Gbps } }
switch: { forwarding: routed }
traffic: [{ pattern: incast, degree: 2, to: h1-1 }]
`;

describe("a switch of a scenario that routes", () => {
  const made = scenario(kLeafSpine);
  const fabric = new Fabric(made);
  const router = (name: string, versions: (4 | 6)[] = [4]) => {
    const index = fabric.device(name);
    return fabricRouter(
      made,
      fabric,
      index,
      fabric.tables[index] ?? { groups: [], groupOfHost: new Uint16Array() },
      versions,
    );
  };
  const shown = (name: string) =>
    router(name).routes.map(
      ({ prefix, ways }) =>
        `${prefix.address.bytes.join(".")}/${prefix.length} ${ways.map(({ interface: i, gateway }) => `${i}:${gateway.bytes.join(".")}`).join(" ")}`,
    );

  it("has a route for each host of its own, and for those behind the same ports as few as will do", () => {
    expect(shown("leaf1")).toEqual([
      "10.87.0.1/32 0:10.87.0.1",
      "10.87.0.2/32 1:10.87.0.2",
      "10.87.0.3/32 2:10.87.0.3",
      "10.87.0.4/31 3:10.86.0.3 4:10.86.0.4",
      "10.87.0.6/32 3:10.86.0.3 4:10.86.0.4",
    ]);
    expect(shown("spine1")).toEqual([
      "10.87.0.1/32 0:10.86.0.1",
      "10.87.0.2/31 0:10.86.0.1",
      "10.87.0.4/31 1:10.86.0.2",
      "10.87.0.6/32 1:10.86.0.2",
    ]);
  });

  it("knows all its neighbours, of both IP versions where hosts speak both", () => {
    const { interfaces, neighbours, routes } = router("spine2", [4, 6]);
    expect(interfaces).toHaveLength(2);
    expect(interfaces[0]?.addresses.map(({ length }) => length)).toEqual([32, 128]);
    expect(neighbours.map(({ address, mac }) => [address.version, mac])).toEqual([
      [4, 0x0257_5200_0001],
      [4, 0x0257_5200_0002],
      [6, 0x0257_5200_0001],
      [6, 0x0257_5200_0002],
    ]);
    expect(routes.filter(({ prefix }) => prefix.address.version === 6).map(({ prefix }) => prefix.length)).toEqual([
      128, 127, 127, 128,
    ]);
  });

  it("is the gateway of its hosts, unless it bridges", () => {
    expect(gatewayOf(fabric, 4)).toBe(fabric.device("leaf2"));
    expect(gatewayOf(new Fabric(scenario(kLeafSpine.replace("routed", "static"))), 4)).toBeUndefined();
  });

  it.each([
    [
      "switch.qcn.notification: leaf1 routes: sources beyond its neighbours do not get CNMs that go by Ethernet addresses",
      ["congestion.algorithm=qcn", "switch.qcn.enabled=true"],
    ],
    [
      "switch.forwarding: leaf1 routes, and spine1 does not",
      ["topology.switch_overrides={spine1: {forwarding: static}}"],
    ],
    [
      "topology.routes: routes of the topology are paths between Ethernet addresses",
      ["topology.routes=[{from: h1-1, to: h2-1, via: [leaf1, spine1, leaf2]}]"],
    ],
  ])("is refused: %s", (message, set) => {
    expect(() => parseScenarioText(kLeafSpine, "x.yaml", { set: [...set] })).toThrow(message);
  });
});
