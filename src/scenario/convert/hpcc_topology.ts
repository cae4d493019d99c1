/**
 * Topologies of HPCC's simulator for ns-3 and its descendants (conweave-ns3, ns-3-alibabacloud, SimAI):
 *
 *   nodes switches links                                             or, in SimAI: nodes GPUS_PER_SERVER NVSWITCHES switches links GPU_TYPE
 *   ids of the switches                                              (SimAI: NVSwitches before them)
 *   src dst rate delay error_rate                                    for each link
 *
 * As in ns-3, lines after the links that are counted are comments. NVSwitches and their links are left out: they are no Ethernet. A host of
 * several links is a machine with a NIC for each.
 */
import { parseRate, parseTime } from "../../base/units.js";
import { kMostHosts, kMostPorts, kMostSwitches } from "../topology_schema.js";
import { ColumnFile, type Row } from "./columns.js";
import { counted, hostName, type Network, type NetworkLink, nicName, switchName } from "./network.js";

const kHeader = ["nodes", "switches", "links"];
const kSimaiHeader = ["nodes", "gpus_per_server", "nvswitches", "switches", "links", "gpu_type"];
const kLink = ["src", "dst", "rate", "delay", "error_rate"];
const kMostNodes = kMostHosts + kMostSwitches;
const kMostLinks = 10_000_000;
const kRates = { least: 1_000, most: 10e12, range: "1 kb/s to 10 Tb/s, such as 100Gbps" };
const kDelays = { least: 0, most: 10e9, range: "0 to 10 s in whole nanoseconds, such as 1us" };

/** Kind of a node. */
type Kind = "host" | "switch" | "nvswitch";

/** @throws WeirError for a file that has another form. */
export function readHpccTopology(file: string, text?: string): Network {
  return new TopologyReader(new ColumnFile(file, text)).read();
}

/** ns-3 reads numbers without a unit as bit/s, and as seconds. */
const rateOf = (text: string) => parseRate(/^\d+$/.test(text) ? Number(text) : text);
const delayOf = (text: string) => parseTime(/^[\d.eE+-]+$/.test(text) ? `${text}s` : text);

type PlacedLink = NetworkLink & { row: Row };

class TopologyReader {
  private kinds: readonly Kind[] = [];
  private readonly machines = new Map<number, number[]>();
  private readonly nicNames = new Map<number, string>();

  constructor(private readonly columns: ColumnFile) {}

  read(): Network {
    const { nodes, nvswitches, switches, links: count } = this.header();
    const kinds = Array<Kind>(nodes).fill("host");
    this.ids([...Array<Kind>(nvswitches).fill("nvswitch"), ...Array<Kind>(switches).fill("switch")], kinds);
    this.kinds = kinds;
    const all = this.links(count);
    const rest = this.columns.next();
    const ethernet = all.filter(({ from, to }) => kinds[from] !== "nvswitch" && kinds[to] !== "nvswitch");
    const links = this.withNics(ethernet);
    this.checkEnds(links);
    this.checkReach(links);
    const { machines } = this;
    const ofKind = (kind: Kind) => kinds.flatMap((of, node) => (of === kind ? (machines.get(node) ?? [node]) : []));
    const lossy = links.filter(({ loss }) => loss > 0).length;
    return {
      hosts: ofKind("host"),
      switches: ofKind("switch"),
      machines,
      links: links.map(({ row: _, ...link }) => link),
      notes: [
        ...(nvswitches === 0 ? [] : [leftOut(nvswitches, all.length - links.length)]),
        ...(machines.size === 0 ? [] : [this.ofSeveralLinks()]),
        ...(lossy === 0
          ? []
          : [
              `the error rate of ${counted(lossy, "link")} is impairment.loss: of all frames, both ways, those of PFC among them`,
            ]),
        ...(rest === undefined || !isLink(rest)
          ? []
          : [`line ${rest.line} and what follows is not read: ${count} links are counted in the first line`]),
      ],
    };
  }

  private header() {
    const { columns } = this;
    const row = columns.next();
    if (row === undefined) throw columns.error(undefined, "is empty", `begins with ${kHeader.join(" ")}`);
    const fields = [kHeader, kSimaiHeader].find(({ length }) => length === row.words.length);
    if (fields === undefined) {
      const hint = `${kHeader.join(" ")}; or, of SimAI, ${kSimaiHeader.join(" ")}`;
      throw columns.error(row, `${row.words.length} columns in the first line`, hint);
    }
    const value = (field: string, least: number, most: number) =>
      fields.includes(field) ? columns.integer(row, fields.indexOf(field), field, least, most) : 0;
    const nodes = value("nodes", 1, kMostNodes);
    const nvswitches = value("nvswitches", 0, nodes - 1);
    const switches = value("switches", 0, Math.min(nodes - nvswitches - 1, kMostSwitches));
    const hosts = nodes - switches - nvswitches;
    if (hosts > kMostHosts) throw columns.error(row, `${hosts} hosts are too many`, `at most ${kMostHosts}`);
    return { nodes, nvswitches, switches, links: value("links", 1, kMostLinks) };
  }

  /** Reads ids of switches, of which there may be several lines, and marks the nodes with the kinds in `wanted`, in order. */
  private ids(wanted: readonly Kind[], kinds: Kind[]): void {
    const { columns } = this;
    for (let read = 0; read < wanted.length; ) {
      const row = columns.next();
      if (row === undefined) {
        throw columns.error(undefined, `ends after the ids of ${read} of the ${wanted.length} switches`);
      }
      if (row.words.length > wanted.length - read) {
        const message = `${read + row.words.length} ids of switches, of which the first line counts ${wanted.length}`;
        throw columns.error(row, message, "the ids of all switches, then a line for each link");
      }
      for (const column of row.words.keys()) {
        const id = columns.integer(row, column, "id of a switch", 0, kinds.length - 1);
        if (kinds[id] !== "host") throw columns.error(row, `id of a switch: ${id} is there twice`);
        kinds[id] = wanted[read++] ?? "switch";
      }
    }
  }

  private links(count: number): PlacedLink[] {
    const { columns, kinds } = this;
    const links: PlacedLink[] = [];
    const known = new Map<string, Row>();
    while (links.length < count) {
      const what = `link ${links.length + 1} of the ${count} that the first line counts`;
      const row = columns.record(kLink, what);
      if (!isLink(row)) throw columns.error(row, `${what}: src is no number of a node`, kLink.join(" "));
      const [from, to] = [0, 1].map((end) => columns.integer(row, end, kLink[end] ?? "", 0, kinds.length - 1));
      const ends = { from: from ?? 0, to: to ?? 0 };
      if (from === to) throw columns.error(row, `${this.name(ends.to)} is linked to itself`, "a link joins two nodes");
      const key = [Math.min(ends.from, ends.to), Math.max(ends.from, ends.to)].join();
      const other = known.get(key);
      if (other !== undefined) {
        const message = `${this.name(ends.from)} -- ${this.name(ends.to)} is there twice (line ${other.line})`;
        throw columns.error(row, message, "there can be one link between two nodes: give it the rate of both together");
      }
      known.set(key, row);
      links.push({
        ...ends,
        rate: columns.quantity(row, 2, "rate", rateOf, kRates),
        delay: columns.quantity(row, 3, "delay", delayOf, kDelays),
        loss: columns.number(row, 4, "error_rate", 0, 1),
        row,
      });
    }
    return links;
  }

  private name(node: number): string {
    const nic = this.nicNames.get(node);
    if (nic !== undefined) return nic;
    if (this.kinds[node] === "nvswitch") return `NVSwitch ${node}`;
    return this.kinds[node] === "switch" ? switchName(node) : hostName(node);
  }

  /** Makes machines of hosts with several links. @returns the links, at their NICs. */
  private withNics(links: readonly PlacedLink[]): PlacedLink[] {
    const { columns, kinds, machines } = this;
    const own = new Map<number, PlacedLink[]>();
    for (const link of links) {
      for (const end of [link.from, link.to]) if (kinds[end] === "host") collect(own, end, link);
    }
    let next = kinds.length;
    const at = new Map<string, number>();
    for (const [host, its] of [...own].sort(([a], [b]) => a - b)) {
      if (its.length === 1) continue;
      for (const [i, link] of its.entries()) {
        const peer = link.from === host ? link.to : link.from;
        if (kinds[peer] !== "switch") {
          const message = `host ${this.name(host)} has ${its.length} links, of which one is to host ${this.name(peer)}`;
          throw columns.error(link.row, message, "each of several links of a host is to a switch");
        }
        collect(machines, host, next);
        this.nicNames.set(next, nicName(host, i));
        at.set(`${host} ${link.row.line}`, next++);
      }
    }
    const nicAt = (node: number, { row }: PlacedLink) => at.get(`${node} ${row.line}`) ?? node;
    return links.map((link) => ({ ...link, from: nicAt(link.from, link), to: nicAt(link.to, link) }));
  }

  private ofSeveralLinks(): string {
    const [[host, nics] = [0, []]] = this.machines;
    return (
      `${counted(this.machines.size, "host")} with several links: each is a machine with a NIC for each of them, such as ` +
      `${hostName(host)} with ${nics.map((nic) => this.name(nic)).join(" and ")}`
    );
  }

  /** Checks that each node has a link, and that no switch has too many ports. */
  private checkEnds(links: readonly PlacedLink[]): void {
    const { columns, kinds, machines } = this;
    const own = new Map<number, PlacedLink[]>();
    for (const link of links) for (const end of [link.from, link.to]) collect(own, end, link);
    kinds.forEach((kind, node) => {
      const ports = own.get(node)?.length ?? 0;
      if (kind === "nvswitch" || machines.has(node)) return;
      if (ports === 0) {
        const but = kinds.includes("nvswitch") ? " but to NVSwitches, which are no Ethernet" : "";
        throw columns.error(undefined, `${this.name(node)} has no link${but}`);
      }
      if (ports > kMostPorts) {
        throw columns.error(
          own.get(node)?.[kMostPorts]?.row,
          `${this.name(node)} has more ports`,
          `at most ${kMostPorts}`,
        );
      }
    });
  }

  private checkReach(links: readonly NetworkLink[]): void {
    const { kinds, machines } = this;
    const neighbours = new Map<number, number[]>();
    for (const { from, to } of links) {
      collect(neighbours, from, to);
      collect(neighbours, to, from);
    }
    const nodes = kinds.flatMap((kind, node) => (kind === "nvswitch" ? [] : (machines.get(node) ?? [node])));
    const first = kinds.indexOf("host");
    const start = machines.get(first)?.[0] ?? first;
    const reached = new Set([start]);
    // Nodes that are added during the loop are visited by it, too.
    for (const node of reached) for (const peer of neighbours.get(node) ?? []) reached.add(peer);
    const lost = nodes.filter((node) => !reached.has(node));
    const [one] = lost;
    if (one === undefined) return;
    const more = lost.length === 1 ? "" : `, and ${lost.length - 1} more,`;
    throw this.columns.error(
      undefined,
      `${this.name(one)}${more} cannot be reached from ${this.name(start)}`,
      "every node needs a way to every other",
    );
  }
}

const leftOut = (nvswitches: number, links: number) =>
  `${counted(nvswitches, "NVSwitch", "NVSwitches")} and ${counted(links, "link")} to them are left out: that is no Ethernet, and GPUs of a ` +
  "server send each other by their NICs here";

/** Whether a line begins as one of a link does; behind the links that are counted there may be comments. */
const isLink = ({ words }: Row) => words.length === kLink.length && /^\d+$/.test(words[0] ?? "");

function collect<T>(lists: Map<number, T[]>, key: number, member: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [member]);
  else list.push(member);
}
