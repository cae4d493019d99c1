/** Variations of the incast of 20 to 1, one thing at a time, and their sizes. */

export interface Variation {
  /** Name of the trial. */
  name: string;
  /** Label in tables. */
  label: string;
  /** Label below a bar. */
  short: string;
  set: readonly string[];
  /** True if it runs on the wire, too. */
  wire?: boolean;
}

const parameter = (name: string, value: string | number | boolean) => `congestion.parameters.${name}=${value}`;
/** Reliable connections with one message under way: between two of them the sender waits for the acknowledgement. */
const oneAtATime = (message: string) => [
  "transport.type=rc",
  "transport.window=16384",
  "traffic.0.outstanding=1",
  `traffic.0.message=${message}`,
];

export const kBase: Variation = { name: "base", label: "table 14", short: "table 14", set: [], wire: true };

const kMarking: readonly Variation[] = [
  {
    name: "average-0.002",
    label: "RED on the averaged queue, weight 0.002",
    short: "avg 0.002",
    set: ["switch.ecn.queue=averaged", "switch.ecn.weight=0.002"],
  },
  {
    name: "average-0.02",
    label: "RED on the averaged queue, weight 0.02",
    short: "avg 0.02",
    set: ["switch.ecn.queue=averaged", "switch.ecn.weight=0.02"],
  },
  { name: "dequeue", label: "marked when leaving", short: "dequeue", set: ["switch.ecn.mark=dequeue"] },
  { name: "pmax-2", label: "Pmax 2%", short: "Pmax 2%", set: ["switch.ecn.pmax=2%"] },
  { name: "pmax-5", label: "Pmax 5%", short: "Pmax 5%", set: ["switch.ecn.pmax=5%"] },
  { name: "pmax-10", label: "Pmax 10%", short: "Pmax 10%", set: ["switch.ecn.pmax=10%"], wire: true },
  { name: "pmax-20", label: "Pmax 20%", short: "Pmax 20%", set: ["switch.ecn.pmax=20%"] },
];

const kReactionPoint: readonly Variation[] = [
  { name: "ai-5", label: "R_AI 5 Mb/s", short: "AI 5M", set: [parameter("rpg_ai_rate", "5Mbps")] },
  { name: "ai-20", label: "R_AI 20 Mb/s, half", short: "AI 20M", set: [parameter("rpg_ai_rate", "20Mbps")] },
  { name: "ai-200", label: "R_AI 200 Mb/s", short: "AI 200M", set: [parameter("rpg_ai_rate", "200Mbps")] },
  {
    name: "no-hyper",
    label: "no hyper increase",
    short: "no hyper",
    set: [parameter("rpg_hai_rate", 0), parameter("rpg_byte_reset", 0)],
  },
  {
    name: "clamp-increase",
    label: "target rate clamped after increases only",
    short: "clamp inc",
    set: [parameter("clamp_tgt_rate", false)],
  },
  {
    name: "no-clamp",
    label: "target rate clamped after byte counter only",
    short: "no clamp",
    set: [parameter("clamp_tgt_rate", false), parameter("clamp_tgt_rate_after_time_inc", false)],
  },
  { name: "min-rate", label: "lowest rate 1 Gb/s", short: "min 1G", set: [parameter("rpg_min_rate", "1Gbps")] },
  { name: "timer-300", label: "timer 300 us", short: "T 300us", set: [parameter("rpg_time_reset", "300us")] },
];

const kNotification: readonly Variation[] = [
  { name: "cnp-0", label: "a CNP for each mark", short: "CNP 0", set: [parameter("min_time_between_cnps", 0)] },
  {
    name: "cnp-25",
    label: "CNP interval 25 us",
    short: "CNP 25us",
    set: [parameter("min_time_between_cnps", "25us")],
  },
  // Section 3.3: ConnectX-3 Pro generates one CNP per 1 to 5 us, whichever flows they are of.
  {
    name: "cnp-nic-1us",
    label: "one CNP per 1 us of the whole NIC",
    short: "NIC 1us",
    set: ["host.cnp.nic_interval=1us"],
  },
  {
    name: "cnp-nic-5us",
    label: "one CNP per 5 us of the whole NIC",
    short: "NIC 5us",
    set: ["host.cnp.nic_interval=5us"],
  },
  {
    name: "cnp-priority",
    label: "CNPs as best effort",
    short: "CNP prio 0",
    set: ["host.cnp.priority=0", "host.cnp.dscp=0"],
  },
  {
    name: "delay-100ns",
    label: "links of 100 ns",
    short: "100 ns",
    set: ["topology.link.delay=100ns"],
  },
  {
    name: "delay-5us",
    label: "links of 5 us",
    short: "5 us",
    // Headroom has to hold what is under way.
    set: ["topology.link.delay=5us", "switch.buffer.headroom=60KB", "switch.buffer.total=16.3456MB"],
  },
];

const kTraffic: readonly Variation[] = [
  {
    name: "start-fair",
    label: "start at 2 Gb/s, the fair share",
    short: "start 2G",
    set: ["host.line_rate_start=false", "host.initial_rate=2Gbps"],
  },
  { name: "gaps-16KB", label: "16 KB messages, one at a time", short: "16 KB", set: oneAtATime("16KB") },
  { name: "gaps-64KB", label: "64 KB messages, one at a time", short: "64 KB", set: oneAtATime("64KB") },
  { name: "gaps-1MB", label: "1 MB messages, one at a time", short: "1 MB", set: oneAtATime("1MB") },
  { name: "gaps-4MB", label: "4 MB messages, one at a time", short: "4 MB", set: oneAtATime("4MB") },
  { name: "senders-10", label: "10 senders", short: "10 to 1", set: ["traffic.0.degree=10"] },
  { name: "senders-4", label: "4 senders", short: "4 to 1", set: ["traffic.0.degree=4"] },
  { name: "seed-2", label: "table 14, seed 2", short: "seed 2", set: ["seed=2"] },
  { name: "seed-3", label: "table 14, seed 3", short: "seed 3", set: ["seed=3"] },
];

/** The code of others, with their readings all at once; parameters as in examples/ns3/. */
const kOthers: readonly Variation[] = [
  {
    name: "as-hpcc",
    label: "as HPCC-ns3, R_HAI = R_AI",
    short: "as HPCC",
    set: [
      "congestion.profile=hpcc-ns3",
      parameter("rpg_time_reset", "55us"),
      parameter("rpg_threshold", 5),
      parameter("rpg_ai_rate", "40Mbps"),
      parameter("rpg_min_rate", "100Mbps"),
      parameter("dce_tcp_rtt", "55us"),
      parameter("rate_reduce_monitor_period", "50us"),
      parameter("clamp_tgt_rate", true),
      "switch.ecn.mark=dequeue",
    ],
  },
  {
    name: "as-ns3-rdma",
    label: "as ns3-rdma",
    short: "as ns3-rdma",
    set: [
      "congestion.profile=ns3-rdma",
      parameter("rpg_time_reset", "55us"),
      parameter("rpg_byte_reset", "10MB"),
      parameter("rpg_threshold", 4),
      "switch.ecn.kmin=6180B",
      "switch.ecn.kmax=207030B",
      "switch.ecn.mark=dequeue",
    ],
  },
];

export const kGroups: readonly { title: string; variations: readonly Variation[] }[] = [
  { title: "Marking at the switch", variations: kMarking },
  { title: "Reaction point", variations: kReactionPoint },
  { title: "CNPs and delay", variations: kNotification },
  { title: "Senders, messages and chance", variations: kTraffic },
  { title: "The readings of others, and they themselves", variations: kOthers },
];

export const kVariations: readonly Variation[] = [kBase, ...kGroups.flatMap(({ variations }) => variations)];
