/** PORT, VLAN, VLAN_MEMBER and what makes ports of routers: a switch of Weir bridges all its ports, and passes tags as they come. */
import type { Entry } from "./config_db.js";
import type { Reader } from "./reader.js";

export interface SonicPort {
  name: string;
  /** bit/s; undefined: not said. */
  rate: number | undefined;
  /** Undefined: not said, or wrong. */
  status: "up" | "down" | undefined;
}

export function readPorts(reader: Reader): SonicPort[] {
  return reader.db.entries("PORT").map((entry) => {
    const speed = reader.integer(entry, "speed", 1, 10_000_000);
    const status = reader.choice(entry, "admin_status", ["up", "down"]);
    reader.integer(entry, "mtu", 68, 65_535);
    if (entry.get("pfc_asym") === "on") {
      reader.note("differs", entry.place("pfc_asym"), "asymmetric PFC: ports here send and obey the same priorities");
    }
    return { name: entry.key, rate: speed && speed * 1e6, status };
  });
}

/** Checks VLANs, and tells what becomes of them. */
export function tellNetwork(reader: Reader): void {
  const vlans = new Map(reader.db.entries("VLAN").map((entry) => [entry.key, vlanOf(reader, entry)]));
  const members = new Map<string, string[]>();
  for (const entry of reader.db.entries("VLAN_MEMBER")) {
    const [vlan = "", port = ""] = entry.key.split("|");
    const tagging = reader.choice(entry, "tagging_mode", ["tagged", "untagged", "priority_tagged"]) ?? "untagged";
    if (!vlans.has(vlan)) reader.notes.add("wrong", entry.place(), `there is no VLAN|${vlan}`, reader.wanted.has(port));
    if (reader.db.entry("PORTCHANNEL", port) === undefined && reader.knownPorts(entry, port).length > 0) {
      if (reader.wanted.has(port)) members.set(port, [...(members.get(port) ?? []), `${vlan} ${tagging}`]);
    }
  }
  const kinds = new Set([...reader.wanted].map((port) => (members.get(port) ?? []).sort().join(", ")));
  const [only = ""] = kinds;
  if (kinds.size > 1) {
    const message =
      "ports of different VLANs reach each other: frames pass as they come, tags are not checked, put on or off";
    reader.note("differs", { table: "VLAN_MEMBER" }, message);
  } else if (only !== "" && !/^[^,]* untagged$/.test(only)) {
    reader.note("differs", { table: "VLAN_MEMBER" }, "tags pass as they come: they are not checked, put on or off");
  }
  tellRouting(reader);
}

function vlanOf(reader: Reader, entry: Entry): number | undefined {
  return reader.integer(entry, "vlanid", 1, 4094);
}

function tellRouting(reader: Reader): void {
  for (const table of ["INTERFACE", "VLAN_INTERFACE", "PORTCHANNEL_INTERFACE"]) {
    for (const { key } of reader.db.entries(table)) {
      const [name = ""] = key.split("|");
      const there = ["PORT", "VLAN", "PORTCHANNEL"].some((named) => reader.db.entry(named, name) !== undefined);
      if (!there) reader.notes.add("wrong", { table, key }, `there is no port or VLAN ${name}`, false);
      reader.notes.add(
        "differs",
        { table, key },
        "is routed in SONiC, and bridged here: hosts need addresses of one subnet",
      );
    }
  }
  for (const { key } of reader.db.entries("PORTCHANNEL_MEMBER")) {
    const message = "no link aggregation: members are ports by themselves, and two to one neighbour are a loop";
    reader.notes.add("differs", { table: "PORTCHANNEL_MEMBER", key }, message);
  }
}
