// Kinds of topology, and the hosts, switches and links that each one stands for.

import { entries } from "../base/merge.js";
import type { LinkInput, SwitchInput } from "./device_schema.js";
import type { NicHostInput, TopologyInput } from "./topology_schema.js";

/** A topology written out: names and links, with the settings in which they differ from the sections of defaults. */
export interface WrittenTopology {
  hosts: [name: string, overrides: NicHostInput | null][];
  switches: [name: string, overrides: SwitchInput | null][];
  links: LinkInput[];
}

type OfKind<Kind extends string> = Extract<TopologyInput, { kind: Kind }>;
type LinkDefaults = NonNullable<TopologyInput["link"]>;

/** Collects hosts, each with its switch; the order of both is that of the network. */
class Builder {
  readonly hosts: string[] = [];
  readonly switches: string[] = [];
  readonly links: LinkInput[] = [];

  /** @param nics NICs of a machine, which are hosts that follow each other. */
  constructor(private readonly nics = 1) {}

  /** The machine of a host; undefined: it is alone. */
  machineOf(host: number): string | undefined {
    return this.nics === 1 ? undefined : `m${Math.floor(host / this.nics) + 1}`;
  }

  addSwitches(count: number, name: (number: number) => string): string[] {
    const names = Array.from({ length: count }, (_, i) => name(i + 1));
    this.switches.push(...names);
    return names;
  }

  addHosts(at: string, count: number, name: (number: number) => string): void {
    for (let number = 1; number <= count; number++) this.addHost(at, name(number));
  }

  addHost(at: string, name: string): void {
    this.hosts.push(name);
    this.links.push({ from: name, to: at });
  }

  join(from: string, to: string, overrides: LinkDefaults | undefined): void {
    this.links.push({ ...overrides, from, to });
  }
}

/** Links of hosts come first, host by host; a switch's first ports are those to its hosts. */
export function writtenOut(topology: TopologyInput): WrittenTopology {
  switch (topology.kind) {
    case undefined:
    case "graph":
      return {
        hosts: entries<NicHostInput>(topology.hosts),
        switches: entries<SwitchInput>(topology.switches),
        links: topology.links,
      };
    case "star":
      return built(topology, star(topology));
    case "dumbbell":
      return built(topology, dumbbell(topology));
    case "parking-lot":
      return built(topology, parkingLot(topology));
    case "testbed":
      return built(topology, testbed(topology));
    case "leaf-spine":
      return built(topology, leafSpine(topology));
    case "rail":
      return built(topology, rail(topology));
    case "fat-tree":
      return built(topology, fatTree(topology));
  }
}

type Generated = Exclude<TopologyInput, { links: unknown }>;

function built({ host_overrides = {}, switch_overrides = {} }: Generated, builder: Builder): WrittenTopology {
  return {
    hosts: builder.hosts.map((name, i) => {
      const machine = builder.machineOf(i);
      const overrides = host_overrides[name] ?? null;
      return [name, machine === undefined ? overrides : { ...overrides, machine }];
    }),
    switches: builder.switches.map((name) => [name, switch_overrides[name] ?? null]),
    links: builder.links,
  };
}

function star({ hosts, nics }: OfKind<"star">): Builder {
  const network = new Builder(nics);
  network.addSwitches(1, () => "sw");
  network.addHosts("sw", hosts, (n) => `h${n}`);
  return network;
}

function dumbbell({ senders, receivers = senders, bottleneck }: OfKind<"dumbbell">): Builder {
  const network = new Builder();
  const [left = "", right = ""] = network.addSwitches(2, (n) => (n === 1 ? "left" : "right"));
  network.addHosts(left, senders, (n) => `s${n}`);
  network.addHosts(right, receivers, (n) => `r${n}`);
  network.join(left, right, bottleneck);
  return network;
}

function parkingLot({ switches, hosts = 1, uplink }: OfKind<"parking-lot">): Builder {
  const network = new Builder();
  const row = network.addSwitches(switches, (n) => `sw${n}`);
  row.forEach((name, i) => {
    network.addHosts(name, Array.isArray(hosts) ? (hosts[i] ?? 0) : hosts, (n) => `h${i + 1}-${n}`);
  });
  for (const [i, name] of row.slice(1).entries()) network.join(row[i] ?? "", name, uplink);
  return network;
}

/** Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, figure 2. */
function testbed({ hosts = 5 }: OfKind<"testbed">): Builder {
  const network = new Builder();
  const tors = network.addSwitches(4, (n) => `t${n}`);
  const leaves = network.addSwitches(4, (n) => `l${n}`);
  const spines = network.addSwitches(2, (n) => `s${n}`);
  for (const [i, tor] of tors.entries()) network.addHosts(tor, hosts, (n) => `h${i + 1}-${n}`);
  tors.forEach((tor, i) => {
    for (const leaf of i < 2 ? leaves.slice(0, 2) : leaves.slice(2)) network.join(tor, leaf, undefined);
  });
  for (const leaf of leaves) for (const spine of spines) network.join(leaf, spine, undefined);
  return network;
}

function leafSpine({ leaves, spines, hosts, nics, uplink }: OfKind<"leaf-spine">): Builder {
  const network = new Builder(nics);
  const lower = network.addSwitches(leaves, (n) => `leaf${n}`);
  const upper = network.addSwitches(spines, (n) => `spine${n}`);
  for (const [i, leaf] of lower.entries()) network.addHosts(leaf, hosts, (n) => `h${i + 1}-${n}`);
  for (const leaf of lower) for (const spine of upper) network.join(leaf, spine, uplink);
  return network;
}

/** NVIDIA, "DGX SuperPOD Reference Architecture": the compute fabric, of two tiers, or of three with its core group. */
function rail({ machines, nics = 8, units = 1, spines, pods = 1, cores = 0, uplink }: OfKind<"rail">): Builder {
  const network = new Builder(nics);
  const rails = Array.from({ length: units * pods }, (_, unit) =>
    network.addSwitches(nics, (n) => (units * pods === 1 ? `rail${n}` : `rail${unit + 1}-${n}`)),
  );
  const upper = Array.from({ length: pods }, (_, pod) =>
    network.addSwitches(spines, (n) => (pods === 1 ? `spine${n}` : `spine${pod + 1}-${n}`)),
  );
  const top = network.addSwitches(cores, (n) => `core${n}`);
  for (const [unit, lower] of rails.entries()) {
    for (let machine = 1; machine <= machines; machine++) {
      for (const [i, leaf] of lower.entries()) network.addHost(leaf, `h${unit * machines + machine}-${i + 1}`);
    }
  }
  for (const [unit, lower] of rails.entries()) {
    for (const leaf of lower)
      for (const spine of upper[Math.floor(unit / units)] ?? []) network.join(leaf, spine, uplink);
  }
  for (const spine of upper.flat()) for (const core of top) network.join(spine, core, uplink);
  return network;
}

/** Al-Fares et al., "A Scalable, Commodity Data Center Network Architecture", SIGCOMM 2008. */
function fatTree({ k, hosts = k / 2, nics, uplink }: OfKind<"fat-tree">): Builder {
  const network = new Builder(nics);
  const half = k / 2;
  const pods = Array.from({ length: k }, (_, i) => i + 1);
  const edges = pods.map((pod) => network.addSwitches(half, (n) => `e${pod}_${n}`));
  const aggregations = pods.map((pod) => network.addSwitches(half, (n) => `a${pod}_${n}`));
  const cores = network.addSwitches(half * half, (n) => `c${n}`);
  edges.forEach((pod, p) => {
    for (const [e, edge] of pod.entries()) network.addHosts(edge, hosts, (n) => `h${p + 1}-${e + 1}-${n}`);
  });
  edges.forEach((pod, p) => {
    for (const edge of pod) for (const aggregation of aggregations[p] ?? []) network.join(edge, aggregation, uplink);
  });
  for (const pod of aggregations) {
    pod.forEach((aggregation, i) => {
      for (const core of cores.slice(i * half, (i + 1) * half)) network.join(aggregation, core, uplink);
    });
  }
  return network;
}
