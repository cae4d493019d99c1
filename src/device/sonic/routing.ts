/** Reads addresses and static routes: the router of a switch.yaml. */
import { isIP } from "node:net";
import { showValue } from "../../base/fields.js";
import { canonicalAddress, isGroup, isStation } from "../../wire/address.js";
import { inPrefix, networkOf, type Prefix, prefixText, readPrefix } from "../../wire/prefix.js";
import type { Entry } from "./config_db.js";
import type { Reader } from "./reader.js";
import type { Membership } from "./vlans.js";

const kTables = ["INTERFACE", "PORTCHANNEL_INTERFACE", "VLAN_INTERFACE", "VLAN_SUB_INTERFACE"];

interface Interface {
  table: string;
  /** Name of the interface in SONiC. */
  name: string;
  port?: string;
  vlan?: number;
  addresses: Prefix[];
}

interface Routing {
  router: object | undefined;
  /** Ports that route, and do not bridge. */
  routed: ReadonlySet<string>;
}

/** @param carrierOf The port that carries a port or port channel; undefined: none that is taken. */
export function readRouter(
  reader: Reader,
  carrierOf: (name: string) => string | undefined,
  members: ReadonlyMap<string, Membership>,
): Routing {
  const places = new Places(reader, carrierOf, members);
  const interfaces: Interface[] = [];
  for (const table of kTables) readInterfaces(reader, table, places, interfaces);
  for (const { table, name, port } of interfaces) {
    if (port === undefined || !members.has(port)) continue;
    reader.notes.add("wrong", { table, key: name }, "has an address, and is in a VLAN, too (VLAN_MEMBER)");
  }
  const routes = readRoutes(reader, interfaces);
  if (interfaces.length === 0) return { router: undefined, routed: new Set() };
  const mac = ownMac(reader);
  const router = {
    ...(mac !== undefined && { mac }),
    interfaces: interfaces.map(({ port, vlan, addresses }) => ({
      ...(port !== undefined && { port }),
      ...(vlan !== undefined && { vlan }),
      address: addresses.map(prefixText),
    })),
    ...(routes.length > 0 && { routes }),
  };
  return { router, routed: new Set(interfaces.flatMap(({ port }) => port ?? [])) };
}

/** MAC address of the device; undefined: it has none that could be a router's. */
function ownMac({ db }: Reader): string | undefined {
  const text = db.entry("DEVICE_METADATA", "localhost")?.get("mac")?.toLowerCase();
  if (text === undefined || !/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/.test(text)) return undefined;
  return isStation(Number.parseInt(text.replaceAll(":", ""), 16)) ? text : undefined;
}

/** Finds the places of interfaces. */
class Places {
  constructor(
    private readonly reader: Reader,
    private readonly carrierOf: (name: string) => string | undefined,
    private readonly members: ReadonlyMap<string, Membership>,
  ) {}

  /** Returns the place; a text tells why there is none. */
  find(table: string, name: string, entry: Entry | undefined): Pick<Interface, "port" | "vlan"> | string {
    const { db } = this.reader;
    if (table === "VLAN_INTERFACE") {
      if (db.entry("VLAN", name) === undefined) return `there is no VLAN|${name}`;
      const vlan = Number(db.entry("VLAN", name)?.get("vlanid") ?? name.replace("Vlan", ""));
      const taken = [...this.members.values()].some((own) => own.untagged === vlan || own.tagged?.includes(vlan));
      return taken ? { vlan } : kElsewhere;
    }
    const [parent = "", suffix] = table === "VLAN_SUB_INTERFACE" ? name.split(".") : [name];
    const long = parent.replace(/^Eth(?=\d)/, "Ethernet").replace(/^Po(?=\d)/, "PortChannel");
    if (db.entry("PORT", long) === undefined && db.entry("PORTCHANNEL", long) === undefined) {
      return `there is no ${table === "PORTCHANNEL_INTERFACE" ? "PORTCHANNEL" : "PORT"}|${long}`;
    }
    const port = this.carrierOf(long);
    if (port === undefined) return kElsewhere;
    if (table !== "VLAN_SUB_INTERFACE") return { port };
    const vlan = Number(entry?.get("vlan") ?? suffix);
    return vlan >= 1 && vlan <= 4094 ? { port, vlan } : `${showVlan(vlan)} is no VLAN: 1 to 4094`;
  }
}

const kElsewhere = "";
const showVlan = (vlan: number) => (Number.isNaN(vlan) ? "its name" : String(vlan));

/** Adds the interfaces of a table that are at ports that are taken, with their addresses, to `all`. */
function readInterfaces(reader: Reader, table: string, places: Places, all: Interface[]): void {
  const { db, notes } = reader;
  const found = new Map<string, Interface>();
  for (const entry of db.entries(table)) {
    const [name = "", ...rest] = entry.key.split("|");
    const own = db.entry(table, name);
    const place = places.find(table, name, own);
    entry.take();
    if (typeof place === "string") {
      if (place !== kElsewhere) notes.add("wrong", entry.place(), place, false);
      else if (rest.length === 0) notes.add("ignored", entry.place(), "no port of it is taken");
      continue;
    }
    if (own?.get("admin_status") === "down") {
      if (rest.length === 0) notes.add("ignored", entry.place("admin_status"), "is not up");
      continue;
    }
    const vrf = own?.get("vrf_name") ?? "default";
    if (vrf !== "default" && vrf !== "") {
      if (rest.length === 0)
        notes.add("differs", entry.place("vrf_name"), "is not routed: there is one routing table, VRFs are not here");
      continue;
    }
    const at = found.get(name) ?? { table, name, ...place, addresses: [] };
    found.set(name, at);
    if (rest.length > 0) takeAddress(reader, entry, rest.join("|"), at, [...all, ...found.values()]);
  }
  for (const at of found.values()) {
    if (at.addresses.length > 0) all.push(at);
    else notes.add("differs", { table, key: at.name }, "is not routed, because it has no address but of its link");
  }
}

function takeAddress({ notes }: Reader, entry: Entry, text: string, own: Interface, all: Interface[]): void {
  const prefix = readPrefix(text);
  if (prefix === undefined || isGroup(prefix.address)) {
    notes.add("wrong", entry.place(), `${text} is not an address with a prefix length, such as 10.0.0.1/31`);
    return;
  }
  if (inPrefix({ address: "fe80::", length: 10 }, prefix.address)) {
    notes.add("ignored", entry.place(), "link-local addresses are the kernel's");
    return;
  }
  for (const { name, addresses } of all) {
    if (name === own.name) continue;
    const other = addresses.find((one) => inPrefix(one, prefix.address) || inPrefix(prefix, one.address));
    if (other === undefined) continue;
    notes.add("wrong", entry.place(), `overlaps with ${prefixText(other)} of ${name}`);
    return;
  }
  own.addresses.push(prefix);
}

const reaches = (links: readonly Prefix[], gateway: string) =>
  links.some((link) => inPrefix(link, gateway)) && !links.some(({ address }) => address === canonicalAddress(gateway));

function readRoutes({ db, notes }: Reader, interfaces: readonly Interface[]): object[] {
  const links = interfaces.flatMap(({ addresses }) => addresses);
  const found = new Map<string, object>();
  for (const entry of db.entries("STATIC_ROUTE")) {
    const [first = "", second] = entry.key.split("|");
    const [vrf, text] = second === undefined ? ["default", first] : [first, second];
    const gateways = (entry.get("nexthop") ?? "").split(",").map((one) => one.trim());
    entry.take();
    const prefix = readPrefix(text);
    if (prefix === undefined) {
      notes.add("wrong", entry.place(), `${text} is not a prefix such as 10.0.0.0/8`, false);
      continue;
    }
    const to = prefixText({ address: networkOf(prefix), length: prefix.length });
    if (vrf !== "default") {
      notes.add("ignored", entry.place(), "there is one routing table, VRFs are not here");
      continue;
    }
    const wrong = gateways.find((one) => isIP(one) === 0 && one !== "");
    if (wrong !== undefined) {
      notes.add("wrong", entry.place("nexthop"), `${showValue(wrong)} is not an address`, false);
      continue;
    }
    if (links.some((link) => prefixText({ ...link, address: networkOf(link) }) === to)) {
      notes.add("ignored", entry.place(), "is the link of an interface");
      continue;
    }
    const via = gateways.filter((one) => isIP(one) === isIP(prefix.address) && reaches(links, one));
    if (via.length === 0) {
      notes.add("ignored", entry.place(), "no gateway of it is on the link of a port that is taken");
      continue;
    }
    if (via.length < gateways.length) {
      notes.add("differs", entry.place("nexthop"), "only the gateways that are on the link of a port that is taken");
    }
    found.set(to, { to, via });
  }
  return [...found.values()];
}
