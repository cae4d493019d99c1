/**
 * Places the nodes of a topology. If data flows one way it is drawn that way, from the senders on the left to the receivers on
 * the right; other fabrics as tiers, hosts below. A switch with many hosts, or without known flows, has them around it.
 */
import { layout as dagre, graphlib } from "@dagrejs/dagre";
import type { Session } from "../../../src/watch/dashboard/protocol.js";

type Topology = Session["topology"];
type Flows = readonly { from: string; to: string }[];

export interface Place {
  name: string;
  kind: "host" | "switch";
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Layout {
  places: Map<string, Place>;
  width: number;
  height: number;
  /** True if links are few enough to write the load beside each. */
  roomy: boolean;
}

const kHostHeight = 40;
const kSwitchHeight = 58;
const kAround = 13;
const kRoomyLinks = 26;
/** Part of the hosts that may both send and receive while data still counts as flowing one way. */
const kOneWay = 0.25;

export function layoutOf({ nodes, links }: Topology, flows: Flows): Layout {
  const roomy = links.length <= kRoomyLinks;
  const switches = nodes.filter(({ kind }) => kind === "switch");
  const [hub] = switches;
  const many = nodes.length > kAround || flows.length === 0;
  if (switches.length === 1 && hub && many) return { ...around(nodes, hub.name, flows), roomy };
  return { ...layered({ nodes, links }, flows, roomy), roomy };
}

function sized({ name, kind }: Topology["nodes"][number], compact = false): Place {
  const width = Math.max(kind === "switch" ? 92 : compact ? 40 : 56, 9 * name.length + 22);
  const height = kind === "switch" ? kSwitchHeight : compact ? 26 : kHostHeight;
  return { name, kind, x: 0, y: 0, width, height };
}

function layered({ nodes, links }: Topology, flows: Flows, roomy: boolean): Omit<Layout, "roomy"> {
  const direction = potentials({ nodes, links }, flows);
  const graph = new graphlib.Graph({ multigraph: true });
  graph.setGraph(
    direction.oneWay
      ? { rankdir: "LR", nodesep: 26, ranksep: roomy ? 190 : 110, marginx: 16, marginy: 20 }
      : { rankdir: "TB", nodesep: roomy ? 44 : 16, ranksep: roomy ? 100 : 80, marginx: 20, marginy: 18 },
  );
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(node.name, sized(node, !roomy));
  links.forEach(({ from, to }, i) => {
    const forward = (direction.of.get(from) ?? 0) <= (direction.of.get(to) ?? 0);
    graph.setEdge(forward ? from : to, forward ? to : from, {}, String(i));
  });
  dagre(graph);
  const places = nodes.map(({ name }): [string, Place] => [name, graph.node(name) as unknown as Place]);
  inOrder(new Map(places), links, direction.oneWay ? "y" : "x");
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return { places: new Map(places), width, height };
}

/** Puts hosts at the same switch that stand in one row or column into the order of the file. */
function inOrder(places: Map<string, Place>, links: Topology["links"], along: "x" | "y"): void {
  const across = along === "x" ? "y" : "x";
  const rows = new Map<string, Place[]>();
  for (const place of places.values()) {
    const [link, ...more] = links.filter(({ from, to }) => from === place.name || to === place.name);
    if (place.kind !== "host" || link === undefined || more.length > 0) continue;
    const row = `${link.from === place.name ? link.to : link.from} ${Math.round(place[across])}`;
    rows.set(row, [...(rows.get(row) ?? []), place]);
  }
  for (const row of rows.values()) {
    const positions = row.map((place) => place[along]).sort((a, b) => a - b);
    row.forEach((place, i) => {
      place[along] = positions[i] as number;
    });
  }
}

/** Potentials of nodes; lower ones stand before higher ones. */
function potentials({ nodes, links }: Topology, flows: Flows): { oneWay: boolean; of: Map<string, number> } {
  const senders = new Set(flows.map(({ from }) => from));
  const receivers = new Set(flows.map(({ to }) => to));
  const both = [...senders].filter((name) => receivers.has(name));
  const oneWay = flows.length > 0 && both.length <= kOneWay * (senders.size + receivers.size - both.length);
  const only = (some: Set<string>) => [...some].filter((name) => !both.includes(name));
  if (oneWay) {
    const behind = distances(links, only(senders));
    const ahead = distances(links, only(receivers));
    const of = nodes.map(({ name }): [string, number] => [name, (behind.get(name) ?? 0) - (ahead.get(name) ?? 0)]);
    return { oneWay, of: new Map(of) };
  }
  const tier = distances(
    links,
    nodes.filter(({ kind }) => kind === "host").map(({ name }) => name),
  );
  return { oneWay, of: new Map(nodes.map(({ name }) => [name, -(tier.get(name) ?? 0)])) };
}

/** Number of links between each node and the nearest of `from`. */
function distances(links: Topology["links"], from: readonly string[]): Map<string, number> {
  const found = new Map(from.map((name) => [name, 0]));
  const next = [...from];
  for (let name = next.shift(); name !== undefined; name = next.shift()) {
    for (const { from: a, to: b } of links) {
      const other = a === name ? b : b === name ? a : undefined;
      if (other === undefined || found.has(other)) continue;
      found.set(other, (found.get(name) ?? 0) + 1);
      next.push(other);
    }
  }
  return found;
}

/** Puts hosts on an ellipse: receivers on the right, everybody else in order from there. */
function around(nodes: Topology["nodes"], hub: string, flows: Flows): Omit<Layout, "roomy"> {
  const senders = new Set(flows.map(({ from }) => from));
  const receiving = new Set(flows.filter(({ to }) => !senders.has(to)).map(({ to }) => to));
  const hosts = nodes.filter(({ name }) => name !== hub);
  const right = hosts.filter(({ name }) => receiving.has(name));
  const others = hosts.filter(({ name }) => !receiving.has(name));
  const ring = [...right, ...others];
  const places = new Map<string, Place>();
  const sizes = hosts.map((host) => sized(host, true));
  const widest = Math.max(...sizes.map(({ width }) => width));
  const width = Math.max(760, ring.length * 17) + widest;
  const height = Math.max(300, ring.length * 8.5);
  ring.forEach((host, i) => {
    // The ellipse points to the right halfway through the receivers, or at the first host if there are none.
    const angle = ((i - Math.max(0, right.length - 1) / 2) / ring.length) * 2 * Math.PI;
    places.set(host.name, {
      ...sized(host, true),
      x: width / 2 + ((width - widest) / 2 - 12) * Math.cos(angle),
      y: height / 2 + (height / 2 - 24) * Math.sin(angle),
    });
  });
  const middle = sized({ name: hub, kind: "switch" });
  places.set(hub, { ...middle, x: width / 2, y: height / 2 });
  return { places, width, height };
}
