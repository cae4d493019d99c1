/** The page places the nodes of a topology: nobody on top of another, senders left of receivers, hosts in the order of the file. */
import { describe, expect, it } from "vitest";
import type { Session } from "../../src/watch/dashboard/protocol.js";
import { layoutOf, type Place } from "../../web/src/topology/layout.js";
import { syntheticSession } from "../browser/synthetic.js";

function fatTree(): Session["topology"] {
  const nodes: Session["topology"]["nodes"] = [];
  const links: Session["topology"]["links"] = [];
  const link = (from: string, to: string) => links.push({ from, to, rate_bps: 40e9 });
  for (const spine of ["s1", "s2"]) nodes.push({ name: spine, kind: "switch" });
  for (let leaf = 1; leaf <= 4; leaf++) {
    nodes.push({ name: `l${leaf}`, kind: "switch" });
    for (const spine of ["s1", "s2"]) link(`l${leaf}`, spine);
    for (let host = 1; host <= 4; host++) {
      nodes.push({ name: `h${leaf}${host}`, kind: "host" });
      link(`h${leaf}${host}`, `l${leaf}`);
    }
  }
  return { nodes, links };
}

function overlaps(places: readonly Place[]): string[] {
  return places.flatMap((a, i) =>
    places
      .slice(i + 1)
      .filter((b) => Math.abs(a.x - b.x) < (a.width + b.width) / 2 && Math.abs(a.y - b.y) < (a.height + b.height) / 2)
      .map((b) => `${a.name} ${b.name}`),
  );
}

const incast = (senders: number) => syntheticSession(senders);
const allToAll = fatTree()
  .nodes.filter(({ kind }) => kind === "host")
  .map(({ name }, i, hosts) => ({ from: name, to: hosts[(i + 1) % hosts.length]?.name ?? name }));

describe("layout", () => {
  it.each([
    ["incast of 4", incast(4).topology, incast(4).flows],
    ["incast of 12", incast(12).topology, incast(12).flows],
    ["leaves and spines", fatTree(), allToAll],
    ["no flows", fatTree(), []],
  ])("%s: all inside, none over another", (_, topology, flows) => {
    const { places, width, height } = layoutOf(topology, flows);
    expect(places.size).toBe(topology.nodes.length);
    expect(overlaps([...places.values()])).toEqual([]);
    for (const place of places.values()) {
      expect(place.x - place.width / 2).toBeGreaterThanOrEqual(0);
      expect(place.x + place.width / 2).toBeLessThanOrEqual(width);
      expect(place.y - place.height / 2).toBeGreaterThanOrEqual(0);
      expect(place.y + place.height / 2).toBeLessThanOrEqual(height);
    }
  });

  it("has data flow from left to right, and hosts from the top in their order", () => {
    const { places } = layoutOf(incast(4).topology, incast(4).flows);
    const at = (name: string) => places.get(name) as Place;
    expect(at("h1").x).toBeLessThan(at("sw").x);
    expect(at("sw").x).toBeLessThan(at("r").x);
    const ys = ["h1", "h2", "h3", "h4"].map((name) => at(name).y);
    expect(ys).toEqual([...ys].sort((a, b) => a - b));
  });

  it("has spines above leaves above hosts", () => {
    const { places } = layoutOf(fatTree(), allToAll);
    const at = (name: string) => places.get(name) as Place;
    expect(at("s1").y).toBeLessThan(at("l1").y);
    expect(at("l1").y).toBeLessThan(at("h11").y);
  });

  it("has many hosts around their switch, the receiver on the right", () => {
    const { places, width } = layoutOf(incast(64).topology, incast(64).flows);
    const r = places.get("r") as Place;
    expect(r.x).toBeGreaterThan(width * 0.9);
    expect((places.get("sw") as Place).x).toBeCloseTo(width / 2);
  });
});
