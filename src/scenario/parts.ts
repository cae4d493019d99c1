/** Parts of a scenario, each for a machine of its own: the devices of each, and the share of the scenario that runs here. */

import { createHash } from "node:crypto";
import type { z } from "zod";
import { WeirError } from "../base/error.js";
import type { Findings } from "../base/findings.js";
import { nearest } from "../base/nearest.js";
import type { partSchema } from "./schema.js";
import type { Graph } from "./topology.js";
import type { Flow, Link, Part, Scenario } from "./types.js";

/** Most parts: the hellos of as many fit the least MTU of a link. */
export const kMostParts = 16;

type PartInput = z.output<typeof partSchema>;

interface Network {
  switches: readonly { name: string }[];
  hosts: readonly { name: string }[];
  links: readonly Link[];
  graph: Pick<Graph, "neighbour">;
}

export const linkName = ({ from, to }: Pick<Link, "from" | "to">) => `${from} -- ${to}`;

/** Parts in the order of the file; errors in them go to `found`. */
export function resolveParts(input: Readonly<Record<string, PartInput>>, network: Network, found: Findings): Part[] {
  const names = Object.keys(input);
  if (names.length === 0) return [];
  if (names.length === 1) found.problem(["parts"], "there is one part only", "name two or more, or leave parts out");
  if (names.length > kMostParts) found.problem(["parts"], `${names.length} are too many`, `at most ${kMostParts}`);
  const partOf = placesOf(input, network, found);
  const { switches, hosts, links } = network;
  const devices = [...switches, ...hosts].map(({ name }) => name);
  return names.map((name) => ({
    name,
    nodes: devices.filter((device) => partOf.get(device) === name),
    interfaces: interfacesOf(name, input[name]?.interfaces ?? {}, links, partOf, found),
  }));
}

/** The part of each device. */
function placesOf(input: Readonly<Record<string, PartInput>>, network: Network, found: Findings): Map<string, string> {
  const { switches, hosts, graph } = network;
  const known = [...switches, ...hosts].map(({ name }) => name);
  const partOf = new Map<string, string>();
  for (const [part, { nodes }] of Object.entries(input)) {
    nodes.forEach((node, i) => {
      const path = ["parts", part, "nodes", i];
      const other = partOf.get(node);
      if (!known.includes(node)) found.unknown(path, "host or switch", node, known);
      else if (other !== undefined) {
        found.problem(path, `${node} is in ${other} already`, "every host and switch is in one part");
      } else partOf.set(node, part);
    });
  }
  for (const { name } of switches) {
    if (!partOf.has(name)) found.problem(["parts"], `switch ${name} is in no part`, "add it to the nodes of one");
  }
  for (const { name } of hosts) {
    const part = partOf.get(graph.neighbour(name) ?? "");
    if (part !== undefined && !partOf.has(name)) partOf.set(name, part);
  }
  return partOf;
}

function interfacesOf(
  part: string,
  written: Readonly<Record<string, string>>,
  links: readonly Link[],
  partOf: ReadonlyMap<string, string>,
  found: Findings,
): Part["interfaces"] {
  const path = ["parts", part, "interfaces"];
  const crosses = ({ from, to }: Link) =>
    partOf.get(from) !== partOf.get(to) && [from, to].some((end) => partOf.get(end) === part);
  const crossing = links.flatMap((link, i) => (crosses(link) ? [i] : []));
  const known = crossing.map((i) => linkName(links[i] as Link));
  const own: Part["interfaces"] = [];
  for (const [text, name] of Object.entries(written)) {
    const ends = text.trim().split(/\s+--\s+/);
    const link = crossing.find((i) => {
      const { from, to } = links[i] as Link;
      return [`${from} ${to}`, `${to} ${from}`].includes(ends.join(" "));
    });
    const other = own.find((one) => one.interface === name || one.link === link);
    if (link === undefined) found.unknown([...path, text], `link from ${part} to another part:`, text, known);
    else if (other !== undefined) {
      const message = `${name} is the end of ${linkName(links[other.link] as Link)} already`;
      found.problem([...path, text], message, "each link has an interface of its own");
    } else own.push({ link, interface: name });
  }
  for (const [place, i] of crossing.entries()) {
    if (own.some(({ link }) => link === i)) continue;
    const message = `has no interface for ${known[place]}, which leads to another part`;
    found.problem(path, message, `add "${known[place]}": NAME, an interface of that machine such as a VXLAN`);
  }
  return own.sort((a, b) => a.link - b.link);
}

/** The scenario as one machine runs it. @throws WeirError when the scenario has no such part. */
export function choosePart(scenario: Scenario, name: string): Scenario {
  const names = scenario.parts.map((part) => part.name);
  if (names.includes(name)) return { ...scenario, part: name };
  if (names.length === 0) {
    throw new WeirError(`--part ${name}: the scenario has no parts`, {
      hint: "name them under parts: see docs/guides/lab-parts.md",
    });
  }
  const meant = nearest(name, names);
  const hint = meant === undefined ? `it has ${names.join(", ")}` : `did you mean ${meant}?`;
  throw new WeirError(`--part ${name}: the scenario has no such part`, { hint });
}

/** Digest of the scenario that all parts run: the same at each of them. */
export function digestOf({ part: _, ...scenario }: Scenario): string {
  return createHash("sha256").update(JSON.stringify(scenario)).digest("hex").slice(0, 16);
}

/** The end, here, of a link to another part. */
export interface Crossing {
  /** Position among the scenario's links. */
  link: number;
  /** Devices of the link, here and there. */
  near: string;
  far: string;
  farPart: string;
  interface: string;
}

/** Share of a scenario that runs here, by positions in the scenario: all of it, or a part. */
export class Share {
  readonly hosts: readonly number[];
  readonly switches: readonly number[];
  /** Links with both ends here. */
  readonly links: readonly number[];
  readonly crossings: readonly Crossing[];
  private readonly nodes: ReadonlySet<string>;

  constructor(private readonly scenario: Pick<Scenario, "hosts" | "switches" | "links" | "parts" | "part">) {
    const { hosts, switches, links, parts } = scenario;
    const part = parts.find(({ name }) => name === scenario.part);
    this.nodes = new Set(part?.nodes ?? [...switches, ...hosts].map(({ name }) => name));
    const places = (list: readonly { name: string }[]) => list.flatMap(({ name }, i) => (this.has(name) ? [i] : []));
    this.hosts = places(hosts);
    this.switches = places(switches);
    this.links = links.flatMap(({ from, to }, i) => (this.has(from) && this.has(to) ? [i] : []));
    this.crossings = (part?.interfaces ?? []).map(({ link, interface: name }) => {
      const { from, to } = links[link] as Link;
      const [near, far] = this.has(from) ? [from, to] : [to, from];
      const farPart = parts.find(({ nodes }) => nodes.includes(far))?.name ?? "";
      return { link, near, far, farPart, interface: name };
    });
  }

  has(node: string): boolean {
    return this.nodes.has(node);
  }

  /** Positions of a host and a switch among those here; -1: it is elsewhere. */
  hostAt(name: string): number {
    return this.hosts.findIndex((i) => this.scenario.hosts[i]?.name === name);
  }

  switchAt(name: string): number {
    return this.switches.findIndex((i) => this.scenario.switches[i]?.name === name);
  }

  /** Whether either of its ends is here. */
  sees({ from, to }: Pick<Flow, "from" | "to">): boolean {
    return this.has(from) || this.has(to);
  }
}
