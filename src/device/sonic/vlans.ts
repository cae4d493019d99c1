/** Reads VLAN and VLAN_MEMBER: the VLANs of the ports that are taken. */
import type { Entry } from "./config_db.js";
import type { Reader } from "./reader.js";

/** VLANs of a port as in its `vlans` in a switch.yaml. */
export interface Membership {
  untagged?: number;
  tagged?: number[];
}

/** @param carrierOf The port that carries a port or port channel; undefined: none that is taken. */
export function readVlans(
  reader: Reader,
  carrierOf: (name: string) => string | undefined,
): ReadonlyMap<string, Membership> {
  const vlans = new Map(reader.db.entries("VLAN").map((entry) => [entry.key, vlanOf(reader, entry)]));
  const members = new Map<string, Membership>();
  for (const entry of reader.db.entries("VLAN_MEMBER")) {
    const [vlan = "", name = ""] = entry.key.split("|");
    const tagging = reader.choice(entry, "tagging_mode", ["tagged", "untagged", "priority_tagged"]) ?? "untagged";
    entry.take();
    if (name === "") {
      reader.note("wrong", entry.place(), "is not VLAN|PORT, such as Vlan100|Ethernet0");
      continue;
    }
    const port = carrierOf(name);
    if (!vlans.has(vlan)) reader.notes.add("wrong", entry.place(), `there is no VLAN|${vlan}`, port !== undefined);
    if (reader.db.entry("PORTCHANNEL", name) === undefined) reader.knownPorts(entry, name);
    const number = vlans.get(vlan);
    if (port === undefined || number === undefined) continue;
    const own = members.get(port) ?? {};
    members.set(port, own);
    if (tagging === "tagged") {
      own.tagged = [...(own.tagged ?? []), number];
      continue;
    }
    if (tagging === "priority_tagged") {
      reader.note("differs", entry.place("tagging_mode"), "frames leave without a tag, not with one of VLAN 0");
    }
    if (own.untagged === undefined) own.untagged = number;
    else reader.notes.add("wrong", entry.place(), `${name} is in VLAN ${own.untagged} without a tag, too`);
  }
  return members;
}

/** Number of a VLAN, by its field or its name; undefined: wrong. */
function vlanOf(reader: Reader, entry: Entry): number | undefined {
  entry.take();
  const [, digits] = /^Vlan(\d{1,4})$/.exec(entry.key) ?? [];
  const named = digits === undefined ? undefined : Number(digits);
  const number = entry.get("vlanid") === undefined ? named : reader.integer(entry, "vlanid", 1, 4094);
  if (number === undefined && entry.get("vlanid") === undefined) {
    reader.note("wrong", entry.place(), "is not named after a VLAN, such as Vlan100, and has no vlanid");
  } else if (number !== undefined && named !== undefined && named !== number) {
    reader.note("wrong", entry.place("vlanid"), `${number} is not the VLAN that it is named after`);
  } else if (number !== undefined && (number < 1 || number > 4094)) {
    reader.note("wrong", entry.place(), `${number} is no VLAN: 1 to 4094`);
    return undefined;
  }
  return number;
}
