// switch.yaml and nic.yaml as users write them: the sections of a scenario, and those that tie a daemon to its host.
import { z } from "zod";
import { choice, field, flag, integer, mapping, rate, section, size, time } from "../../base/fields.js";
import { congestionSchema } from "../../congestion/section.js";
import { changeSchema } from "../../scenario/change_schema.js";
import {
  hostSchema,
  impairmentSchema,
  interfaceSchema,
  nameSchema,
  switchSchema,
} from "../../scenario/device_schema.js";
import { kMostPorts } from "../../scenario/topology_schema.js";
import { trafficDefaultsSchema } from "../../scenario/traffic_schema.js";
import { transportSchema } from "../../scenario/transport_schema.js";
import { kMostNicAddresses } from "../../wire/address.js";
import { kPriorityKeys } from "../../wire/priority.js";
import { faultSchema } from "../fault_request.js";
import { routerSchema } from "./router.js";
import { addressSchema, macSchema, namespacePath } from "./schema_parts.js";
import { vlansSchema } from "./vlans.js";

/** Largest queue pair number: 24 bits on the wire. */
const kLastQpn = 0xff_ffff;

const namespaceSchema = field(
  namespacePath,
  "Network namespace that the interface is in, as a path. Default: the daemon's own.",
);
const mtuSchema = integer("Largest IP packet, in bytes. Default: the interface's.", 68, 65_535);

const kReceiveBackends = ["auto", "af_packet", "af_xdp"] as const;
const kBackends = [...kReceiveBackends, "live"] as const;
const backendFields = {
  backend: choice(
    "How frames pass between the interface and Weir, both ways; `auto` picks by what the interface is and can do, and says why; `live` sends live XDP frames, and receives by af_xdp.",
    kBackends,
    "auto",
  ),
  receive: field(z.enum(kReceiveBackends), "The same, of frames that arrive. Default: `backend`."),
  transmit: field(z.enum(kBackends), "The same, of frames that leave. Default: `backend`."),
  xdp_mode: choice(
    "Where the program that receives by af_xdp runs: in the driver (native), or above it, on any interface (generic).",
    ["auto", "native", "generic"],
    "auto",
  ),
  ring: field(
    z.literal([64, 128, 256, 512, 1024, 2048, 4096]),
    "Frames in each ring of af_xdp. Smaller rings stay in caches.",
    512,
  ),
};

export const workerSchema = section({
  cpu: integer("CPU to run on. Default: any.", 0, 4095),
  polling: choice(
    "busy: looks for frames without a pause, takes a whole CPU; adaptive: so while frames come, then sleeps; interrupt: short naps under load.",
    ["busy", "adaptive", "interrupt"],
    "interrupt",
  ),
});

/** Entries of the forwarding table: `fdb_capacity` of the native core. */
const kFdbEntries = 16_384;
/** Most addresses that a port may learn, so that none can fill the table. */
const kMostLearned = kFdbEntries / 2;
const kUnlimited = { default: "unlimited", zero: "unlimited" } as const;

/** Ports at which Prometheus finds the daemons. */
export const kMetricsPorts = { switch: 9464, nic: 9465 } as const;

const listenFields = (port: number) => ({
  address: field(z.string().min(1), "Address to listen at.", "127.0.0.1"),
  port: integer("TCP port to listen at.", 1, 65_535, port),
});

const dashboardSection = (port: number) =>
  section({
    ...listenFields(port),
    token: field(
      z.string().regex(/^[A-Za-z0-9._~-]{16,128}$/, { error: "a token has 16 to 128 letters, digits, or . _ ~ -" }),
      "What a browser has to show. Default: one that is made at the start, which `weir show dashboard` prints; at 127.0.0.1 only changes take it.",
    ),
  });

export const lldpSchema = section({
  tx_interval: time("Between two LLDPDUs of a port while nothing changes (msgTxInterval).", {
    default: "30s",
    min: 1e9,
    max: 3600e9,
  }),
  tx_hold: integer("For how many intervals neighbours keep what they heard (msgTxHold).", 1, 100, 4),
});

const willing = (fallback?: boolean) =>
  field(
    z.boolean(),
    "Takes the peer's PFC priorities and the ETS that it recommends, in place of the own ones. Of two peers that are willing, the one with the higher MAC address takes the other's PFC.",
    fallback,
  );
const roce_priority = integer(
  "Priority that neighbours are told for RoCEv2 (UDP port 4791). Default: a NIC's, that of its first queue pair, or of its programs, or nothing is said; a switch's, the lowest of `pfc.priorities`.",
  0,
  7,
);

/** DCBX of each kind of daemon. */
export const kDcbx = {
  switch: section({
    willing: willing(false),
    roce_priority,
    ports: field(z.record(z.string(), section({ willing: willing() })), "Name of the port -> what differs there."),
  }),
  nic: section({ willing: willing(true), roce_priority }),
} as const;

/** Addresses at which each kind of daemon listens. */
export const kListening = {
  switch: { metrics: section(listenFields(kMetricsPorts.switch)), dashboard: dashboardSection(9466) },
  nic: {
    metrics: section({
      ...listenFields(kMetricsPorts.nic),
      per_qp: field(
        z.union([z.boolean(), z.int().min(1).max(4096)], { error: "give true, false, or a number from 1 to 4096" }),
        "Also series of queue pairs, with rate, target rate and alpha: of all (`true`), or of the 1 to 4096 that moved most bytes lately.",
        false,
      ),
      node_infiniband: flag("Also under the names of node_exporter's infiniband collector.", false),
    }),
    dashboard: dashboardSection(9467),
  },
} as const;

function daemonFields<Kind extends "switch" | "nic">(kind: Kind) {
  const { metrics, dashboard }: (typeof kListening)[Kind] = kListening[kind];
  return {
    name: field(nameSchema, "Name in metrics, logs and `weir show`. Default: the file's name."),
    metrics: field(
      z.union([z.literal(false), metrics]),
      `Prometheus endpoint, or false. Default: 127.0.0.1:${kMetricsPorts[kind]}.`,
    ),
    dashboard: field(
      z.union([z.boolean(), dashboard]),
      `Page that shows it live, see dashboard.md. \`true\`: 127.0.0.1:${dashboard.shape.port.meta()?.default}.`,
      false,
    ),
    control: field(
      z
        .string()
        .regex(/^\//, { error: "give an absolute path" })
        .max(107, { error: "a socket's path has at most 107 characters" }),
      "Control socket. Default: weir/NAME.sock in /run, or when not root in $XDG_RUNTIME_DIR, or NAME.sock in /tmp/weir-UID where that is not set.",
    ),
    lldp: field(
      z.union([z.boolean(), lldpSchema]),
      "LLDP (IEEE 802.1AB) at its ports, see dcbx.md. `true`: with the defaults. Default: off, or `true` with `dcbx`.",
    ),
    dcbx: field(
      z.union([z.boolean(), kDcbx[kind]]),
      "DCBX (IEEE 802.1Q) by LLDP: PFC, ETS, the priority of RoCEv2 and congestion notification are told to peers, and compared or taken over, see dcbx.md. `true`: with the defaults.",
      false,
    ),
  };
}

/** Fields of a switch. Each address is behind one port: there are no paths to choose among. */
const { forwarding: _, load_balancing: _l, flowlet_gap: _g, ...switchFields } = switchSchema.shape;

export const portSchema = section({
  interface: interfaceSchema.meta({ description: "Interface to take over; it must exist already." }),
  name: field(nameSchema, "Name of the port. Default: the interface's."),
  namespace: namespaceSchema,
  rate: rate("Rate of the link, in each direction; without one, queues hardly form.", {
    default: "unlimited",
    zero: "unlimited",
  }),
  delay: time(
    "How long what arrives here has been under way: propagation, or a delay line. Takes a `rate`, and packet sockets.",
    {
      default: "0s",
      max: 1e9,
    },
  ),
  mtu: mtuSchema,
  ...backendFields,
  worker: integer("Which of `workers` the port belongs to, counted from 0.", 0, 63, 0),
  max_learned_addresses: integer(
    "Most addresses of the forwarding table, which has 16384, that are learned at this port. At the limit a new one takes the place of one of the port's own.",
    1,
    kFdbEntries,
    kMostLearned,
  ),
  vlans: field(
    vlansSchema,
    "802.1Q VLANs that the port is in, such as `{ untagged: 10, tagged: [20] }`; `{}`: in none, and all that comes here is dropped. Where no port has it, tags pass as they come.",
  ),
  storm_control: field(
    section({
      broadcast: rate("Most that is flooded of broadcasts.", kUnlimited),
      unknown_unicast: rate("Most that is flooded of frames to addresses that are not known.", kUnlimited),
      multicast: rate("Most that is flooded of multicasts.", kUnlimited),
    }),
    "Storm control: limits to what comes in by this port and is flooded; the rest is dropped.",
  ),
  impairment: field(
    impairmentSchema,
    "Faults on purpose in what arrives at this port: loss, duplication, corruption, reordering.",
  ),
  limits: field(
    mapping(
      kPriorityKeys,
      section({
        rate: rate("Most that the egress queue of this priority may send."),
        buffer: size("Most bytes that it may hold; what comes beyond is dropped. Lossy priorities only.", {
          min: 64,
        }),
      }),
    ),
    "Limits by priority of what leaves this port, such as `{ 0: { rate: 500Mbps, buffer: 200KB } }`.",
  ),
});

const { switch: _s, ...changeFields } = changeSchema.shape;

export const rateChangeSchema = section({
  ...changeFields,
  at: time("When, from the start of the daemon, and from each SIGHUP.", { default: "0s", max: 1e15 }),
  port: z.string().meta({ description: "Name of the port." }),
});

export const switchDaemonSchema = section({
  ...daemonFields("switch"),
  ports: z.array(portSchema).min(1).max(kMostPorts).meta({ description: "The switch's ports." }),
  workers: field(
    z.array(workerSchema).min(1).max(64),
    "Threads that the ports are spread over. Default: one, on any CPU.",
  ),
  ...switchFields,
  forwarding: choice(
    "Learn addresses and flood unknown ones (loop-free networks only), or `static_fdb` alone.",
    ["learning", "static"],
    "learning",
  ),
  static_fdb: field(
    z.array(
      section({
        mac: macSchema.meta({ description: "Destination." }),
        port: z.string().meta({ description: "Name of the port it is behind." }),
      }),
    ),
    "Addresses that need no learning and do not age.",
    [],
  ),
  changes: field(
    z.array(rateChangeSchema).max(1000),
    "Rates of egress queues that change while the daemon runs, as in a scenario. Before its first change a queue has that of `limits`.",
    [],
  ),
  telemetry: flag(
    "In-band network telemetry (INT): each port writes its queue, bytes sent, time and rate into packets that have room for it, as those of HPCC's senders have. Takes a `rate` of each port.",
    false,
  ),
  faults: field(
    z.array(faultSchema).max(64),
    "Faults that are made on purpose, as by `weir fault`; `after` counts from the start, or from the reload that brought them.",
    [],
  ),
  router: field(
    z.union([z.literal(false), routerSchema]),
    "Routing between subnets, IPv4 and IPv6; `false`: the switch bridges only.",
    false,
  ),
});

export const sendSchema = section({
  operation: choice("RDMA operation.", ["write", "send"], "write"),
  message: size("Size of one message.", { default: "4MB", min: 1, max: 2 ** 31 }),
  rate: rate("Cap on the rate that the application offers. Default: none."),
  bytes: size("Total to send. Default: no limit.", { min: 1, max: 1e15 }),
  start: time("When to start, from the start of the daemon.", { default: "0s" }),
  outstanding: trafficDefaultsSchema.shape.outstanding,
});

export const queuePairSchema = section({
  name: nameSchema.meta({ description: "Name of the queue pair." }),
  peer: z.string().meta({ description: "The peer at the other end: a name of `peers`, or an IP address." }),
  qpn: integer("Own number. Queue pairs are numbered in order from the first one's. Default: from 0x11.", 2, kLastQpn),
  remote_qpn: integer("The peer's number. Default: the same as the own one.", 2, kLastQpn),
  priority: integer("Priority (traffic class) of the data.", 0, 7, 3),
  dscp: integer("DSCP of the data. Default: one that `dscp_map` gives `priority`.", 0, 63),
  send: field(sendSchema, "What to send; a queue pair without it only receives."),
});

const { pfc, scheduler, trust, dscp_map, default_priority } = switchSchema.shape;

const gatewaySchema = section({
  address: addressSchema.meta({ description: "Of the router, on the NIC's link." }),
  prefix: integer(
    "Bits that all addresses of the NIC's link share; peers beyond are behind the router. Default: 24 of IPv4, 64 of IPv6.",
    0,
    128,
  ),
});

export const programsSchema = section({
  group: field(
    z.union([z.string().min(1), z.int().min(0).max(0xffff_fffe)], {
      error: "give the name or the number of a group, such as rdma",
    }),
    "Group whose members may use the NIC, by its name or number. Default: only the daemon's own user may.",
  ),
  priority: integer("Priority (traffic class) of what they send, where they do not say by traffic class.", 0, 7, 3),
  direct: flag(
    "Each program drives the connections to other hosts itself, on a packet socket that the daemon lends it: as fast as a NIC of its own. What it sends is looked at by nobody, so it is for programs that you trust.",
    false,
  ),
});

const { dcbx, ...nicDaemonFields } = daemonFields("nic");

/** Fields that a port of a NIC may have of its own; `interface` and `address` are required. */
const nicFields = {
  interface: field(
    interfaceSchema,
    "Interface to use; it must exist already. Required, here or of each of `ports`, as `address` is.",
  ),
  namespace: namespaceSchema,
  address: field(
    z.union([addressSchema, z.array(addressSchema).min(1).max(kMostNicAddresses)]),
    "IP address of the NIC: one of its own, or one that the kernel has too. Or several in a list, of which the first of each IP version is for its own queue pairs.",
  ),
  gateway: field(
    z.union([gatewaySchema, z.array(gatewaySchema).min(1).max(2)]),
    "Router to peers beyond the NIC's link, whose MAC address frames to them have; two in a list: one IPv4 and one IPv6. Default: all peers are on the link.",
  ),
  vlan: integer("802.1Q VLAN of all that the NIC sends and takes. Default: untagged.", 1, 4094),
  mac: field(macSchema, "MAC address. Default: the interface's."),
  rate: rate("Line rate.", { default: "10Gbps" }),
  mtu: mtuSchema,
  ...backendFields,
  worker: field(workerSchema, "The thread that the NIC runs on."),
  ...hostSchema.shape,
  burst: size(
    "Most that a late NIC makes up for at once. Default: 32 KB; with `programs` what `rate` carries in 100 us, if that is more.",
    { max: 1e9 },
  ),
  ...{ pfc, scheduler, trust, dscp_map, default_priority },
  congestion: field(congestionSchema, "Congestion control."),
  peers: field(
    z.array(
      section({
        name: nameSchema.meta({ description: "Name for use in `queue_pairs`." }),
        address: addressSchema.meta({ description: "IPv4 or IPv6 address." }),
        mac: field(
          macSchema,
          "MAC address of the peer, or of the router on the way. Default: asked for by ARP, or by neighbour discovery.",
        ),
      }),
    ),
    "Whom the NIC talks to.",
    [],
  ),
  transport: field(
    z.union([transportSchema.shape.type.unwrap(), transportSchema]),
    "How the queue pairs carry their messages: `stream`, `rc`, or more of it. The peer's must do so too.",
    "stream",
  ),
  queue_pairs: field(z.array(queuePairSchema).max(4096), "Queue pairs.", []),
  programs: field(
    z.union([z.boolean(), programsSchema]),
    "Programs of this host may use the NIC by libibverbs: see `weir run`. `true`: with the defaults.",
    false,
  ),
  faults: field(
    z.array(faultSchema).max(64),
    "Faults that are made on purpose, as by `weir fault`; `after` counts from the start, or from the reload that brought them.",
    [],
  ),
  dcbx,
};

export const nicPortSchema = section({
  name: field(
    nameSchema,
    "Name of the port's NIC. Default: the file's, and `_0`, `_1` and so on in the order of ports.",
  ),
  ...nicFields,
});

/** Most ports of a NIC: more than any card has. */
const kMostNicPorts = 8;

export const nicDaemonSchema = section({
  ...nicDaemonFields,
  ports: field(
    z.array(nicPortSchema).min(1).max(kMostNicPorts),
    "Ports, up to 8, each of them a NIC of its own: `interface`, `address`, and whatever is otherwise there than this file says: any field but `metrics`, `dashboard`, `control` and `lldp`. Default: one, which is as the file says.",
  ),
  ...nicFields,
});

export type SwitchDaemonInput = z.output<typeof switchDaemonSchema>;
export type NicDaemonInput = z.output<typeof nicDaemonSchema>;
/** One port, with the settings that all have in common. */
export type NicInput = Omit<NicDaemonInput, "ports" | "interface" | "address"> & {
  interface: string;
  address: NonNullable<NicDaemonInput["address"]>;
};
