/** A scenario's network by number: devices (switches first, then hosts), their ports, and the way from host to host. */
import { Graph, type NextHopGroups } from "./topology.js";
import type { Link, Scenario, SwitchConfig } from "./types.js";

export interface FabricPort {
  /** Position in the scenario's links. */
  link: number;
  /** End of the link: 0 is `from`, 1 is `to`. */
  side: 0 | 1;
  /** Device and port at the other end. */
  peer: number;
  peerPort: number;
}

export interface FabricEnd {
  device: number;
  port: number;
}

/** One direction of a link. */
export interface Hop {
  link: Link;
  /** Row of the direction in the native core's table of links. */
  direction: number;
}

/** Forwarding of one switch; pins name hosts by number. */
export interface SwitchTable extends NextHopGroups {
  pins: { from: number; to: number; port: number }[];
}

export class Fabric {
  /** Ports of every device, in the order of their numbers. */
  readonly ports: readonly FabricPort[][];
  /** Both ends of every link, `from` first. */
  readonly ends: readonly (readonly [FabricEnd, FabricEnd])[];
  private made: readonly SwitchTable[] | undefined;
  private readonly numbers: ReadonlyMap<string, number>;

  constructor(private readonly scenario: Scenario) {
    const names = [...scenario.switches, ...scenario.hosts].map((device) => device.name);
    this.numbers = new Map(names.map((name, i) => [name, i]));
    const ports: FabricPort[][] = names.map(() => []);
    this.ends = scenario.links.map((link, i) => {
      const [from, to] = [this.device(link.from), this.device(link.to)];
      const [own, far] = [ports[from] as FabricPort[], ports[to] as FabricPort[]];
      const [fromPort, toPort] = [own.length, far.length];
      own.push({ link: i, side: 0, peer: to, peerPort: toPort });
      far.push({ link: i, side: 1, peer: from, peerPort: fromPort });
      return [
        { device: from, port: fromPort },
        { device: to, port: toPort },
      ] as const;
    });
    this.ports = ports;
  }

  /** Tables of every switch; made when they are first asked for. */
  get tables(): readonly SwitchTable[] {
    this.made ??= this.tablesWithout(new Set());
    return this.made;
  }

  /**
   * The same without the links `down`, and without pinned paths that cross one of them: other paths are found among the remaining links.
   */
  tablesWithout(down: ReadonlySet<Link>): readonly SwitchTable[] {
    const tables = new Graph(this.scenario, down)
      .nextHopGroups()
      .map((groups): SwitchTable => ({ ...groups, pins: [] }));
    for (const { from, to, via } of this.scenario.routes) {
      const hops = [from, ...via].map((name, i) => ({ name, port: this.portTo(name, via[i] ?? to) }));
      if (hops.some(({ name, port }) => down.has(this.linkAt(name, port)))) continue;
      for (const { name, port } of hops.slice(1)) {
        tables[this.device(name)]?.pins.push({ from: this.host(from), to: this.host(to), port });
      }
    }
    return tables;
  }

  private linkAt(device: string, port: number): Link {
    return this.scenario.links[this.ports[this.device(device)]?.[port]?.link ?? -1] as Link;
  }

  /** The number of a device. */
  device(name: string): number {
    const number = this.numbers.get(name);
    if (number === undefined) throw new Error(`no device is called ${name}`);
    return number;
  }

  host(name: string): number {
    return this.device(name) - this.scenario.switches.length;
  }

  nameOf(device: number): string {
    const { switches, hosts } = this.scenario;
    return (switches[device] ?? hosts[device - switches.length])?.name ?? "";
  }

  /** The port of `device` that faces `peer`; the first of several. */
  portTo(device: string, peer: string): number {
    const number = this.device(peer);
    return (this.ports[this.device(device)] ?? []).findIndex((port) => port.peer === number);
  }

  /** Names of the devices at the ports of `device`, which name the ports. */
  peers(device: number): string[] {
    return (this.ports[device] ?? []).map(({ peer }) => this.nameOf(peer));
  }

  /** Ports by which frames to host number `to` leave a switch on shortest paths, ascending; empty when the host is not reached. */
  portsTowards(to: number, device: number): readonly number[] {
    const table = this.tables[device];
    return table?.groups[table.groupOfHost[to] ?? -1] ?? [];
  }

  /** A host's link, and the switch there. */
  attachment(host: number): { link: Link; neighbour: SwitchConfig } {
    const { switches, links, hosts } = this.scenario;
    const port = this.ports[switches.length + host]?.[0];
    const [link, neighbour] = [links[port?.link ?? -1], switches[port?.peer ?? -1]];
    if (link !== undefined && neighbour !== undefined) return { link, neighbour };
    throw new Error(`host ${hosts[host]?.name} is not linked to a switch`);
  }

  /**
   * The links that frames from one host to another cross: the pinned path, or a shortest one. Of several shortest paths, this is
   * the one by the ports with the lowest numbers. Empty where there is none.
   */
  path(from: number, to: number): Hop[] {
    const first = this.scenario.switches.length;
    const hops: Hop[] = [];
    for (let at = first + from; at !== first + to; ) {
      const port = this.ports[at]?.[this.nextPort(at, from, to)];
      const link = this.scenario.links[port?.link ?? -1];
      if (port === undefined || link === undefined || hops.length > this.tables.length + 1) return [];
      hops.push({ link, direction: 2 * port.link + port.side });
      at = port.peer;
    }
    return hops;
  }

  /**
   * Whether each port of each switch belongs to a tree that spans the network: by breadth, from the first switch on. Switches behind
   * which there is no host do not belong to it.
   */
  get tree(): boolean[][] {
    const count = this.scenario.switches.length;
    const tree = this.ports.slice(0, count).map((own) => own.map(({ peer }) => peer >= count));
    const reached = new Set<number>();
    for (let root = 0; root < count; root++) {
      if (reached.has(root)) continue;
      reached.add(root);
      const order: { from: number; port: FabricPort & { number: number } }[] = [];
      const queue = [root];
      for (const at of queue) {
        for (const [number, port] of (this.ports[at] ?? []).entries()) {
          if (port.peer >= count || reached.has(port.peer)) continue;
          reached.add(port.peer);
          queue.push(port.peer);
          order.push({ from: at, port: { ...port, number } });
        }
      }
      // The order is from the far end: a switch that has no port of the tree by its turn leads to no host.
      for (const { from, port } of order.reverse()) {
        const far = tree[port.peer] as boolean[];
        if (!far.includes(true)) continue;
        far[port.peerPort] = true;
        (tree[from] as boolean[])[port.number] = true;
      }
    }
    return tree;
  }

  private nextPort(device: number, from: number, to: number): number {
    const table = this.tables[device];
    if (table === undefined) return 0;
    const pin = table.pins.find((one) => one.from === from && one.to === to);
    return pin?.port ?? this.portsTowards(to, device)[0] ?? -1;
  }
}
