/** Networks of anonymous namespaces and veth pairs: one namespace per node, one pair per link. */

import { WeirError } from "../base/error.js";
import { macText } from "../base/mac.js";
import { type Namespace, NetworkNamespace } from "./namespace.js";
import { ToolError } from "./tools.js";

export interface LabNode {
  name: string;
  /** A host's interfaces are weir0, weir1 ...; a switch's are named after the nodes at their other ends. */
  role: "host" | "switch";
  /** Addresses with prefix lengths, with which the kernel's stack lives there. Left out: the stack keeps quiet. */
  addresses?: readonly string[];
  /** Routers on its link, one of each IP version at most; traffic that is not for a prefix of its own goes to them. */
  gateways?: readonly string[];
}

export interface LabLink {
  from: string;
  to: string;
  /** Largest IP packet, bytes, 68..65535. */
  mtu: number;
  /** Ethernet addresses of the two ends as 48-bit numbers; the kernel's choice if left out. */
  fromMac?: number | undefined;
  toMac?: number | undefined;
}

export interface LabEnd {
  interface: string;
  /** Descriptor of the namespace; -1: this process's own. */
  namespaceFd: number;
  /** True if the interface is not the lab's alone: others may send there, too. */
  shared?: boolean;
}

/** Frames that may wait in a veth's queue, for the few senders (exec'd programs) that use it. */
const kTransmitQueue = 1000;
/** Processes that run at a time: enough for two cores, few enough for a small machine. */
const kConcurrency = 8;
/** IFNAMSIZ without its terminating zero. */
const kMaxInterfaceName = 15;

export class LabNetwork {
  private constructor(
    private readonly namespaces: ReadonlyMap<string, Namespace>,
    private readonly interfaces: readonly ReadonlyMap<string, string>[],
  ) {}

  /**
   * Builds everything, or fails and leaves nothing. Links join two different nodes.
   * @param make Makes the namespace of a node.
   */
  static async create(
    nodes: readonly LabNode[],
    links: readonly LabLink[],
    make: (node: LabNode) => Promise<Namespace> = () => NetworkNamespace.create(),
  ): Promise<LabNetwork> {
    const namespaces = new Map<string, Namespace>();
    const interfaces = nameInterfaces(nodes, links);
    const network = new LabNetwork(namespaces, interfaces);
    try {
      await forEachConcurrently(nodes, async (node) => {
        namespaces.set(node.name, await make(node));
      });
      await network.connect(nodes, links);
      return network;
    } catch (error) {
      network.close();
      throw error;
    }
  }

  namespace(node: string): Namespace {
    const namespace = this.namespaces.get(node);
    if (namespace === undefined) throw new Error(`no node ${node} in this lab`);
    return namespace;
  }

  /** Returns the end of link number `link` at `node`. */
  end(link: number, node: string): LabEnd {
    const name = this.interfaces[link]?.get(node);
    if (name === undefined) throw new Error(`link ${link} has no end at ${node}`);
    return { interface: name, namespaceFd: this.namespace(node).fd };
  }

  /** Closes the namespaces, with which the interfaces go. Idempotent. */
  close(): void {
    for (const namespace of this.namespaces.values()) namespace.close();
  }

  /** Makes all pairs by one process; then, as a veth cannot come up before its peer is there, runs one process per node. */
  private async connect(nodes: readonly LabNode[], links: readonly LabLink[]): Promise<void> {
    const [somewhere] = this.namespaces.values();
    const inhabited = new Set(nodes.filter(({ addresses }) => addresses !== undefined).map(({ name }) => name));
    if (somewhere === undefined || links.length === 0) return;
    const pairs = links.map((link, i) => {
      const from = this.describe(i, link.from, link.mtu, link.fromMac, inhabited.has(link.from));
      const to = this.describe(i, link.to, link.mtu, link.toMac, inhabited.has(link.to));
      // Indices of a pair differ: the kernel may take a second to see the carrier of a device whose peer has the same one.
      return `link add index ${2 * i + 2} ${from} type veth peer index ${2 * i + 3} ${to}\n`;
    });
    await runIp(somewhere, pairs);
    await forEachConcurrently(nodes, async ({ name: node, addresses, gateways }) => {
      const own = this.interfaces.flatMap((ends) => ends.get(node) ?? []);
      const up = own.map((name) => `link set dev ${name}${addresses ? "" : " addrgenmode none"} up\n`);
      if (own.length > 0) await runIp(this.namespace(node), [...up, ...stackOf(own[0], addresses, gateways)]);
    });
  }

  private describe(link: number, node: string, mtu: number, mac: number | undefined, inhabited: boolean): string {
    const name = this.interfaces[link]?.get(node);
    const address = mac === undefined ? "" : ` address ${macText(mac)}`;
    const path = this.namespace(node).path;
    const stack = inhabited ? "" : " arp off multicast off";
    return `name ${name} netns ${path} mtu ${mtu} txqueuelen ${kTransmitQueue}${address}${stack}`;
  }
}

/** Makes addresses without duplicate detection: nobody else has them, and nothing need wait. */
function stackOf(name = "", addresses?: readonly string[], gateways: readonly string[] = []): string[] {
  if (addresses === undefined) return [];
  const routes = gateways.map((gateway) => `route add default via ${gateway} dev ${name} onlink\n`);
  const own = addresses.map(
    (address) => `address add ${address} dev ${name}${address.includes(":") ? " nodad" : ""}\n`,
  );
  return ["link set dev lo up\n", ...own, ...routes];
}

async function runIp(namespace: Namespace, lines: readonly string[]): Promise<void> {
  try {
    await namespace.run("ip", ["-batch", "-"], lines.join(""));
  } catch (error) {
    // nsenter, which is there, says so in its own words.
    if (error instanceof ToolError && error.stderr.includes("failed to execute ip")) {
      throw new WeirError("ip not found", {
        cause: error,
        hint: "it is in the package iproute2: apt install iproute2",
      });
    }
    throw error;
  }
}

/** The interface names of each link, by node. */
function nameInterfaces(nodes: readonly LabNode[], links: readonly LabLink[]): Map<string, string>[] {
  const roles = new Map(nodes.map((node) => [node.name, node.role]));
  const used = new Map(nodes.map((node) => [node.name, new Set(["lo", "all", "default"])]));
  const name = (node: string, peer: string): string => {
    const taken = used.get(node);
    if (taken === undefined) throw new Error(`link to ${node}, which is no node of this lab`);
    const chosen = roles.get(node) === "host" ? numbered(taken, "weir") : unique(taken, peer);
    taken.add(chosen);
    return chosen;
  };
  return links.map((link) => {
    if (link.from === link.to) throw new Error(`link from ${link.from} to itself`);
    return new Map([
      [link.from, name(link.from, link.to)],
      [link.to, name(link.to, link.from)],
    ]);
  });
}

/** The wanted name in the kernel's alphabet and length, with a number at its end if it is taken. */
function unique(taken: ReadonlySet<string>, wanted: string): string {
  const plain = wanted
    .replace(/[^A-Za-z0-9_-]/g, "_")
    .replace(/^-/, "_")
    .slice(0, kMaxInterfaceName);
  return plain !== "" && !taken.has(plain) ? plain : numbered(taken, plain.slice(0, kMaxInterfaceName - 3));
}

function numbered(taken: ReadonlySet<string>, prefix: string): string {
  for (let i = 0; ; i++) {
    if (!taken.has(`${prefix}${i}`)) return `${prefix}${i}`;
  }
}

/** Runs `action` on every item, a few at a time. Waits for all that started, then fails with the first failure. */
async function forEachConcurrently<T>(items: readonly T[], action: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values();
  const failures: unknown[] = [];
  const worker = async () => {
    for (const item of queue) {
      try {
        await action(item);
      } catch (error) {
        failures.push(error);
      }
      if (failures.length > 0) return;
    }
  };
  await Promise.all(Array.from({ length: kConcurrency }, worker));
  if (failures.length > 0) throw failures[0];
}
