import { describe, expect, it } from "vitest";
import { choosePart, digestOf, Share } from "../../src/scenario/parts.js";
import { parseScenario } from "../../src/scenario/scenario.js";
import { problemsOf } from "../fixtures/refusal.js";

const topology = {
  hosts: ["s1", "s2", "r"],
  switches: ["left", "right"],
  links: ["s1 -- left", "s2 -- left", "r -- right", "left -- right"],
};
const interfaces = { "right -- left": "vx0" };
const kTwo = {
  one: { nodes: ["left"], interfaces: { "left -- right": "vx0" } },
  two: { nodes: ["right"], interfaces },
};
const file = (parts: object) => ({ topology, traffic: [{ from: ["s1", "s2"], to: "r" }], parts });

const problems = (parts: object) => problemsOf(() => parseScenario(file(parts)));

describe("parts", () => {
  it("have the hosts of their switches, and an interface for each link to another part", () => {
    const { parts } = parseScenario(file(kTwo)).scenario;
    expect(parts).toEqual([
      { name: "one", nodes: ["left", "s1", "s2"], interfaces: [{ link: 3, interface: "vx0" }] },
      { name: "two", nodes: ["right", "r"], interfaces: [{ link: 3, interface: "vx0" }] },
    ]);
    expect(parseScenario(file({})).scenario.parts).toEqual([]);
  });

  it("may have a host without its switch: the host's link leads to another part", () => {
    const host = { nodes: ["s1"], interfaces: { "s1 -- left": "eth1" } };
    const rest = { nodes: ["left", "right"], interfaces: { "s1 -- left": "eth2" } };
    const whole = parseScenario(file({ host, rest })).scenario;
    const share = new Share(choosePart(whole, "host"));
    expect([share.hosts, share.switches, share.links]).toEqual([[0], [], []]);
    expect(share.crossings).toEqual([{ link: 0, near: "s1", far: "left", farPart: "rest", interface: "eth1" }]);
    expect(new Share(choosePart(whole, "rest")).crossings).toMatchObject([
      { near: "left", far: "s1", farPart: "host" },
    ]);
  });

  it("are all of the scenario where none is chosen", () => {
    const { scenario } = parseScenario(file(kTwo));
    const share = new Share(scenario);
    expect([share.hosts, share.switches, share.links, share.crossings]).toEqual([[0, 1, 2], [0, 1], [0, 1, 2, 3], []]);
    const one = new Share(choosePart(scenario, "one"));
    expect([one.hosts, one.switches, one.links]).toEqual([[0, 1], [0], [0, 1]]);
    expect([one.hostAt("s2"), one.hostAt("r"), one.switchAt("right")]).toEqual([1, -1, -1]);
    expect(scenario.flows.map((flow) => new Share(choosePart(scenario, "two")).sees(flow))).toEqual([true, true]);
    expect(new Share(choosePart(scenario, "two")).hostAt("r")).toBe(0);
  });

  it("are of one scenario, whichever is chosen, and of no other", () => {
    const { scenario } = parseScenario(file(kTwo));
    expect(digestOf(choosePart(scenario, "one"))).toBe(digestOf(choosePart(scenario, "two")));
    expect(digestOf({ ...scenario, scale: 7 })).not.toBe(digestOf(scenario));
    // It is the same once it is read again.
    expect(digestOf(JSON.parse(JSON.stringify(scenario)))).toBe(digestOf(scenario));
  });

  it.each([
    [{ one: kTwo.one }, "parts: there is one part only", "name two or more"],
    [{ ...kTwo, two: { nodes: ["rigth"], interfaces } }, "parts.two.nodes.0: unknown host or switch rigth", "right?"],
    [{ ...kTwo, two: { nodes: ["right", "s1", "left"], interfaces } }, "left is in one already", "in one part"],
    [{ one: kTwo.one, two: { nodes: ["r"], interfaces: {} } }, "switch right is in no part", "add it"],
    [{ ...kTwo, two: { nodes: ["right"] } }, "parts.two.interfaces: has no interface for left -- right", "NAME"],
    [
      { ...kTwo, two: { nodes: ["right"], interfaces: { ...interfaces, "r -- right": "vx1" } } },
      "unknown link from two to another part: r -- right",
      "left -- right",
    ],
    [{ ...kTwo, two: { nodes: [], interfaces } }, "parts.two.nodes", ""],
    [
      { ...kTwo, two: { nodes: ["right"], interfaces: { "right -- left": "a name" } } },
      "is not the name of an interface",
      "",
    ],
  ])("%o: %s", (parts, message, hint) => {
    const found = problems(parts).join("\n");
    expect(found).toContain(message);
    expect(found).toContain(hint);
  });

  it("are asked for by name", () => {
    const { scenario } = parseScenario(file(kTwo));
    expect(choosePart(scenario, "two").part).toBe("two");
    expect(() => choosePart(scenario, "tow")).toThrow(expect.objectContaining({ hint: "did you mean two?" }));
    expect(() => choosePart(parseScenario(file({})).scenario, "one")).toThrow("has no parts");
  });
});
