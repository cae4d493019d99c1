import { describe, expect, it } from "vitest";
import { Fabric } from "../../src/scenario/fabric.js";
import { loadScenario } from "../../src/scenario/scenario.js";
import { findLoop, Graph, switchPorts } from "../../src/scenario/topology.js";

const victim = loadScenario("examples/victim-flow.yaml").scenario;
const incast = loadScenario("examples/incast-4to1.yaml").scenario;

describe("topology", () => {
  it("numbers ports in the order of the links", () => {
    expect(
      switchPorts(incast)
        .get("sw")
        ?.map((port) => [port.index, port.peer]),
    ).toEqual([
      [0, "h1"],
      [1, "h2"],
      [2, "h3"],
      [3, "h4"],
      [4, "r"],
    ]);
  });

  it("has one way, and no loop, for frames to groups: along a tree without switches that lead to nobody", () => {
    const fabric = new Fabric(victim);
    const devices = victim.switches.length;
    const edges = fabric.tree.flatMap((ports, device) =>
      ports.flatMap((is, port) => (is ? [{ device, peer: fabric.ports[device]?.[port]?.peer as number }] : [])),
    );
    // Both ends agree.
    const inner = edges.filter(({ peer }) => peer < devices);
    for (const { device, peer } of inner) expect(edges).toContainEqual({ device: peer, peer: device });
    const reached = new Set([edges[0]?.device as number]);
    for (const at of reached) for (const { device, peer } of edges) if (device === at) reached.add(peer);
    for (const { name } of victim.hosts) expect(reached).toContain(fabric.device(name));
    // A tree has an edge less than it has nodes.
    const switches = [...reached].filter((device) => device < devices);
    expect(inner.length / 2).toBe(switches.length - 1);
    // Two spines, and one of them is on no way that the tree has.
    expect(fabric.tree[fabric.device("s2")]).toEqual(expect.not.arrayContaining([true]));
  });

  it("finds next-hop groups on all shortest paths", () => {
    const fabric = new Fabric(victim);
    const towards = (name: string, to: string) => fabric.portsTowards(fabric.host(to), fabric.device(name));
    const peers = (name: string, to: string) => towards(name, to).map((i) => fabric.peers(fabric.device(name))[i]);
    expect(peers("t4", "r")).toEqual(["r"]);
    expect(peers("t1", "r")).toEqual(["l1", "l2"]);
    expect(peers("l1", "r")).toEqual(["s1", "s2"]);
    expect(peers("s1", "r")).toEqual(["l3", "l4"]);
    expect(peers("t1", "vr")).toEqual(["l1", "l2"]);
    expect(peers("l1", "vr")).toEqual(["t2"]);
    expect(victim.hosts.filter(({ name }) => towards("t1", name).length > 0)).toEqual(victim.hosts);
  });

  it("turns pinned routes into entries of every switch on the way", () => {
    const fabric = new Fabric(victim);
    const host = (number: number) => victim.hosts[number]?.name;
    const pinned = (name: string) => {
      const device = fabric.device(name);
      return fabric.tables[device]?.pins.map((p) => `${host(p.from)}>${host(p.to)} ${fabric.peers(device)[p.port]}`);
    };
    expect(pinned("t1")).toEqual(["h11>r l1", "h12>r l1", "h13>r l2", "h14>r l2", "vs>vr l1"]);
    expect(pinned("t2")).toEqual(["vs>vr vr"]);
    expect(pinned("l2")).toEqual(["h13>r s1", "h14>r s2"]);
  });

  it("knows the switches between two hosts", () => {
    const graph = new Graph(victim);
    expect(graph.switchesBetween("h11", "r")).toEqual(["t1", "l1", "s1", "l3", "t4"]);
    expect([...graph.switchesBetween("h11", "vr")].sort()).toEqual(["l1", "l2", "t1", "t2"]);
    expect([graph.switchesOnPath("h11", "r"), graph.switchesOnPath("h11", "vr")]).toEqual([5, 3]);
  });

  it("finds loops", () => {
    expect(findLoop(incast)).toBeUndefined();
    const loop = findLoop(victim) ?? [];
    expect(loop.length).toBeGreaterThanOrEqual(3);
    loop.forEach((name, i) => {
      const next = loop[(i + 1) % loop.length];
      expect(
        switchPorts(victim)
          .get(name)
          ?.some((port) => port.peer === next),
      ).toBe(true);
    });
  });
});
