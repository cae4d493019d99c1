/** VLANs of a switch. */
import { printable } from "../../result/report/format.js";
import { ShownCounters, text } from "./counts.js";
import { gridView } from "./view.js";

export const vlan = gridView({
  description:
    "VLANs of a switch: which ports are in them, with a tag or without, and what was dropped because of them",
  of: "switch",
  requests: ["counters", "switch"],
  grids({ counters, switch: { ports } }) {
    const own = new ShownCounters(counters);
    const all = ports.flatMap(({ name, vlans: { untagged, tagged } }) => [
      ...(untagged === 0 ? [] : [{ vlan: untagged, name, tagging: "untagged" }]),
      ...tagged.map((vlan) => ({ vlan, name, tagging: "tagged" })),
    ]);
    const members = all.sort((a, b) => a.vlan - b.vlan);
    return [
      {
        title: `VLANs, ${new Set(members.map(({ vlan }) => vlan)).size}`,
        head: ["VLAN ID", "Port", "Port Tagging"],
        names: 3,
        rows: members.map(({ vlan, name, tagging }, i) => [
          members[i - 1]?.vlan === vlan ? "" : text(vlan),
          printable(name),
          tagging,
        ]),
      },
      {
        title: "Dropped because of VLANs, by the port that frames came in by",
        head: ["Port", "Without a tag", "Not a member", "Not there"],
        names: 1,
        rows: ports.map(({ name }) => {
          const of = (counter: string) => text(own.get(counter, { port: name }));
          return [printable(name), of("drop_vlan_untagged"), of("drop_vlan_not_member"), of("drop_vlan_egress")];
        }),
      },
    ];
  },
});
