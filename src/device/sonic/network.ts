/** Reads PORT, and the tables that separate and join ports: port channels, VLANs, addresses and routes. */
import { kRanges } from "./ranges.js";
import type { Reader } from "./reader.js";
import { readRouter } from "./routing.js";
import { readVlans } from "./vlans.js";

export interface SonicPort {
  name: string;
  /** Speed, bit/s; undefined: not set. */
  rate: number | undefined;
  /** Status; undefined: not set, or wrong. */
  status: "up" | "down" | undefined;
}

export function readPorts(reader: Reader): SonicPort[] {
  return reader.db.entries("PORT").map((entry) => {
    const speed = reader.integer(entry, "speed", ...kRanges.speed);
    entry.take();
    const status = reader.choice(entry, "admin_status", ["up", "down"]);
    reader.integer(entry, "mtu", ...kRanges.mtu);
    if (entry.get("pfc_asym") === "on") {
      reader.note("differs", entry.place("pfc_asym"), "asymmetric PFC: ports here send and obey the same priorities");
    }
    return { name: entry.key, rate: speed && speed * 1e6, status };
  });
}

export interface Network {
  /** `vlans` of each port, as in a switch.yaml; undefined: it has none there. */
  vlans: ReadonlyMap<string, object>;
  /** Router as in a switch.yaml; undefined: the switch does not route. */
  router: object | undefined;
}

/** Reads the network as far as the ports that are taken are part of it. */
export function readNetwork(reader: Reader): Network {
  const { db, notes, wanted } = reader;
  const channels = readChannels(reader);
  const carrierOf = (name: string) =>
    wanted.has(name) && !channels.idle.has(name) ? name : channels.carriers.get(name);
  const members = readVlans(reader, carrierOf);
  const { router, routed } = readRouter(reader, carrierOf, members);
  const told = ["VLAN_MEMBER", "INTERFACE", "VLAN_INTERFACE", "PORTCHANNEL_INTERFACE", "VLAN_SUB_INTERFACE"];
  if (told.every((table) => db.entries(table).length === 0)) {
    const message =
      "no port is in a VLAN or has an address, and SONiC would forward nothing: all ports are one bridge here";
    notes.add("differs", { table: "PORT" }, message);
    return { vlans: new Map(), router: undefined };
  }
  const bridging = [...wanted].filter((port) => !routed.has(port));
  return { vlans: new Map(bridging.map((port) => [port, members.get(port) ?? {}])), router };
}

/** Reads port channels: each becomes the first of its members that is taken; the others carry nothing. */
function readChannels(reader: Reader): { carriers: Map<string, string>; idle: Set<string> } {
  const carriers = new Map<string, string>();
  const idle = new Set<string>();
  for (const entry of reader.db.entries("PORTCHANNEL_MEMBER")) {
    const [channel = "", port = ""] = entry.key.split("|");
    entry.take();
    if (reader.db.entry("PORTCHANNEL", channel) === undefined) {
      reader.notes.add("wrong", entry.place(), `there is no PORTCHANNEL|${channel}`, reader.wanted.has(port));
    }
    if (reader.knownPorts(entry, port).length === 0 || !reader.wanted.has(port)) continue;
    const carrier = carriers.get(channel);
    if (carrier === undefined) {
      carriers.set(channel, port);
    } else {
      idle.add(port);
      const message = `no link aggregation: ${carrier} carries all of ${channel}, and this port nothing`;
      reader.notes.add("differs", entry.place(), message);
    }
  }
  return { carriers, idle };
}
