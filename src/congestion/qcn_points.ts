// QCN in files of devices: congestion points of switches, reaction points of hosts. Names are those of IEEE8021-CN-MIB.
import { z } from "zod";
import { choice, type Full, field, flag, integer, mapping, priorities, section, size } from "../base/fields.js";
import { kPriorityKeys } from "../wire/priority.js";
import { kQcn } from "./described.js";
import { parametersOf } from "./parameter.js";
import { parameterSchema } from "./parameter_schema.js";

const kDefences = ["auto", "disabled", "interior", "interior-ready", "edge"] as const;

const kNotifications = ["l2", "ip"] as const;

const cnPortSchema = section({
  defence: field(z.enum(kDefences), "As `qcn.defence`, of this port."),
  alternate_priority: integer("As `qcn.alternate_priority`, of this port.", 0, 7),
});

export const switchQcnSchema = section({
  enabled: flag("Sample frames at the congestion points (CP) and answer their sources with CNMs.", false),
  priorities: priorities(
    "Congestion notification priority values (CNPV): priorities whose queues are congestion points. At most 7.",
    [3],
  ),
  cpQSp: size("Q_eq: queue length that a congestion point steers to.", { default: "26KB", min: 100, max: 1e9 }),
  cpWeight: integer("log2 of w, the weight of the queue's growth in F_b = -(Q_off + w Q_delta).", -10, 10, 1),
  cpSampleBase: size("Bytes that join the queue between two samples, while it is not congested.", {
    default: "150KB",
    min: 10_000,
    max: 1e9,
  }),
  cpMinHeaderOctets: integer(
    "Bytes of the sampled frame that a CNM returns, from its EtherType on; a sender without `host.qcn.cn_tag` tells flows apart by them.",
    0,
    64,
    0,
  ),
  notification: choice(
    "How CNMs go to their sources: `l2`, by Ethernet addresses, as the standard has it; `ip`, in IP and UDP, so that routers forward them. A switch that routes has `ip`, others have `l2`.",
    kNotifications,
    "l2",
  ),
  cnm_priority: integer("Priority at which CNMs leave; a strict one (`scheduler.strict`).", 0, 7, 6),
  defence: choice(
    "What ports do at CNPVs. `interior-ready`: the neighbour is in the congestion notification domain, and knows CN-TAGs; `interior`: it does not, so they are taken off; `edge`: it is outside, so its frames get `alternate_priority`; `disabled`: no CNPVs there; `auto`: by what the scenario says of the neighbour; in switch.yaml by what it tells itself with `dcbx`, `interior-ready` without.",
    kDefences,
    "auto",
  ),
  alternate_priority: integer("Priority of frames that come in at a CNPV where the defence is `edge`.", 0, 7, 0),
  ports: field(
    z.record(z.string(), cnPortSchema),
    "Name of the neighbour (switch.yaml: of the port) -> what differs there.",
  ),
});

/** Reaction points of a NIC are numbered by the 16 bits of a CN-TAG. */
const kMostReactionPoints = 65_535;

const groupSchema = section(
  Object.fromEntries(Object.entries(parametersOf(kQcn)).map(([name, one]) => [name, parameterSchema(name, one)])),
);

export const hostQcnSchema = section({
  priorities: field(
    z.array(z.int().min(0).max(7)).max(8),
    "CNPVs of the NIC. Default: those of its switch; in nic.yaml 3.",
  ),
  flows: choice(
    "What is one congestion controlled flow, with a rate of its own: a queue pair, all of an application (traffic entry), all to one destination, or a five-tuple.",
    ["queue-pair", "application", "destination-mac", "five-tuple"],
    "queue-pair",
  ),
  reaction_points: integer(
    "rpppMaxRps: reaction points of each CNPV. With more flows than that, flows share them.",
    1,
    kMostReactionPoints,
    100,
  ),
  reaction_point_groups: field(
    mapping(kPriorityKeys, groupSchema),
    "CNPV -> parameters of its reaction point group (RPG) in place of those of `congestion`, such as `{ 4: { rpgAiRate: 10Mbps } }`.",
    {},
  ),
  cn_tag: flag(
    "Put a CN-TAG (EtherType 0x22E9) with the flow's number into each frame; CNMs return it. Not where they come by `ip`: routers take it off.",
    true,
  ),
  notification: field(
    z.enum(kNotifications),
    "Which CNMs are believed: `l2` or `ip`, as in `switch.qcn.notification`. Default: as its switch sends them; in nic.yaml `l2`.",
  ),
  limiter: choice(
    "Rate limiter of the reaction points: paced to the nanosecond, or NetFPGA's token bucket of 3 KB that is filled each 16 us.",
    ["pacer", "token-bucket"],
    "pacer",
  ),
});

type Given<S> = { [K in keyof S]: Exclude<S[K], undefined> };
/** Congestion points of a switch, and the defence of their domain. */
export type SwitchQcn = Given<Full<typeof switchQcnSchema>>;
/** Reaction points of a host, as they are written. */
export type HostQcn = Given<Full<typeof hostQcnSchema>>;
export type WrittenGroups = HostQcn["reaction_point_groups"];
export type CnDefence = Exclude<SwitchQcn["defence"], "auto">;
