// The `topology` section: a kind that expands to hosts, switches and links (topologies.ts), or all of them written out.
import { z } from "zod";
import { field, integer, section } from "../base/fields.js";
import { hostSchema, linkDefaultsSchema, linkSchema, nameSchema, switchSchema } from "./device_schema.js";

/** Hosts and switches that one scenario may have. */
export const kMostHosts = 65_000;
export const kMostSwitches = 10_000;
/** Most ports of one switch: the largest that are sold have 512 and some for management. Addresses (addresses.ts) have room for as many. */
export const kMostPorts = 1024;

const nicHostSchema = section({
  ...hostSchema.shape,
  machine: field(nameSchema, "Machine of which the host is a NIC, with all others that name it. Default: its own."),
});

const kind = <const Kind extends string>(name: Kind, description: string) => z.literal(name).meta({ description });

const required = (description: string, min: number, max: number) => z.int().min(min).max(max).meta({ description });

/** Fields of every kind. */
const common = {
  link: field(linkDefaultsSchema, "Defaults of every link."),
  routes: field(
    z.array(
      section({
        from: z.string().meta({ description: "Source host." }),
        to: z.string().meta({ description: "Destination host." }),
        via: z.array(z.string()).min(1).meta({ description: "All switches on the way, in order." }),
      }),
    ),
    "Pinned paths. Other traffic takes a shortest path, picked by a hash of its five-tuple.",
  ),
  ecmp_seed: integer(
    "Seed of that hash, to hold paths fixed while other randomness varies. Default: the scenario's seed.",
    0,
    Number.MAX_SAFE_INTEGER,
  ),
};

const kMostNics = 64;
/** A field of kinds whose hosts can be NICs of machines. */
const nics = (usual: number, how: string) =>
  integer(
    `NICs of each machine: ${how}. Ranks of message graphs reach others of their machine inside.`,
    1,
    kMostNics,
    usual,
  );

/** Refines kinds of so many hosts at each switch. */
const wholeMachines =
  <T extends { nics?: number | undefined }>(hostsOf: (topology: T) => number) =>
  (topology: T, context: z.RefinementCtx): void => {
    const [hosts, each] = [hostsOf(topology), topology.nics ?? 1];
    if (hosts % each === 0) return;
    context.addIssue({
      code: "custom",
      message: `machines of ${each} NICs, and ${hosts} hosts at a switch`,
      path: ["nics"],
      params: { hint: "a number that divides the hosts of a switch" },
    });
  };
const kOfOneSwitch = "so many hosts that follow each other at a switch";

/** Fields of the kinds that make devices. */
const generated = {
  ...common,
  host_overrides: field(z.record(nameSchema, hostSchema), "Name of a host -> what differs from the `host` section."),
  switch_overrides: field(
    z.record(nameSchema, switchSchema),
    "Name of a switch -> what differs from the `switch` section.",
  ),
};

const graph = section({
  kind: kind("graph", "Everything written out; the default.").optional(),
  ...common,
  switches: field(
    z.union([z.array(nameSchema), z.record(nameSchema, switchSchema.nullable())]),
    "Switches: a list of names, or name -> what differs from the `switch` section.",
  ),
  hosts: z.union([z.array(nameSchema), z.record(nameSchema, nicHostSchema.nullable())]).meta({
    description:
      "Hosts: a list of names, or name -> what differs from the `host` section, and `machine`: the name of the machine of which it is a NIC, with all others that have it.",
  }),
  links: z
    .array(linkSchema)
    .min(1)
    .meta({ description: 'Links: "h1 -- sw", or a mapping with `from`, `to` and what differs from `link`.' }),
});

const star = section({
  kind: kind("star", "Hosts `h1`, `h2`, ... on one switch `sw`."),
  hosts: required("Number of hosts.", 1, kMostPorts),
  nics: nics(1, kOfOneSwitch),
  ...generated,
}).superRefine(wholeMachines(({ hosts }) => hosts));

const dumbbell = section({
  kind: kind("dumbbell", "Hosts `s1`, ... on switch `left`, hosts `r1`, ... on switch `right`, one link between them."),
  senders: required("Number of hosts on the left.", 1, kMostPorts - 1),
  receivers: integer("Number of hosts on the right. Default: as many as on the left.", 1, kMostPorts - 1),
  bottleneck: field(linkDefaultsSchema, "What differs from `link` on the link between the switches."),
  ...generated,
});

const count = (min: number) =>
  z
    .int()
    .min(min)
    .max(kMostPorts - 2);

const parkingLot = section({
  kind: kind("parking-lot", "Switches `sw1`, `sw2`, ... in a row, each with hosts of its own: `h1-1`, `h1-2`, ..."),
  switches: required("Number of switches.", 2, kMostSwitches),
  hosts: field(
    z.union([count(1), z.array(count(0))]),
    `Hosts of each switch, or a list with the number for each. 1 to ${kMostPorts - 2}.`,
    1,
  ),
  uplink: field(linkDefaultsSchema, "What differs from `link` on links between switches."),
  ...generated,
}).superRefine(({ switches, hosts = 1 }, context) => {
  const problem = (message: string, hint: string) =>
    context.addIssue({ code: "custom", message, path: ["hosts"], params: { hint } });
  if (Array.isArray(hosts) && hosts.length !== switches) {
    problem(`${hosts.length} numbers for ${switches} switches`, "give one number for all switches, or one for each");
  }
  const count = Array.isArray(hosts) ? hosts.reduce((sum, n) => sum + n, 0) : switches * hosts;
  if (count > kMostHosts) problem(`${count} hosts are too many`, `at most ${kMostHosts}`);
});

const testbed = section({
  kind: kind(
    "testbed",
    "Figure 2 of the DCQCN paper: ToRs `t1` to `t4`, leaves `l1` to `l4`, spines `s1` and `s2`, hosts `h1-1` (under `t1`) to `h4-5`.",
  ),
  hosts: integer("Hosts of each ToR.", 1, kMostPorts - 2, 5),
  ...generated,
});

const leafSpine = section({
  kind: kind(
    "leaf-spine",
    "Every leaf (`leaf1`, ...) linked to every spine (`spine1`, ...); hosts `h1-1` under `leaf1`.",
  ),
  leaves: required("Number of leaves.", 1, kMostPorts),
  spines: required("Number of spines.", 1, kMostPorts - 1),
  hosts: required("Hosts of each leaf.", 1, kMostPorts - 1),
  nics: nics(1, kOfOneSwitch),
  uplink: field(linkDefaultsSchema, "What differs from `link` on links to spines."),
  ...generated,
}).superRefine(wholeMachines(({ hosts }) => hosts));

const rail = section({
  kind: kind(
    "rail",
    "Rail-optimised: NIC 3 of each machine is at the switch `rail3`, and rails are joined by spines (`spine1`, ...). Hosts `h1-1` to `h1-8` are NICs of machine `m1`. With several scalable units each has rail switches of its own: `rail2-3` is rail 3 of the second. With several pods there is a third tier: each pod has units and spines of its own (`spine2-1`), and cores (`core1`) join them.",
  ),
  machines: required("Machines of each unit.", 1, kMostPorts),
  nics: nics(8, "one for each rail"),
  units: integer("Scalable units, of each pod; they are numbered through all of them.", 1, kMostPorts, 1),
  spines: required("Number of spines, of each pod, each linked to every rail switch of it.", 1, kMostPorts - 1),
  pods: integer("Pods.", 1, kMostPorts, 1),
  cores: integer("With several pods: number of cores, each linked to every spine.", 1, kMostPorts - 1),
  uplink: field(linkDefaultsSchema, "What differs from `link` on links between switches."),
  ...generated,
}).superRefine(({ machines, nics = 8, units = 1, spines, pods = 1, cores }, context) => {
  const problem = (path: string, message: string, hint: string) =>
    context.addIssue({ code: "custom", message, path: [path], params: { hint } });
  const count = machines * nics * units * pods;
  if (count > kMostHosts) {
    const all = machines * units * pods;
    problem("machines", `${all} machines of ${nics} NICs make ${count} hosts`, `at most ${kMostHosts} hosts`);
  }
  if (pods > 1 && cores === undefined) {
    problem("cores", `is not there, and ${pods} pods have nothing that joins them`, `cores: ${spines}, for example`);
  }
  if (pods === 1 && cores !== undefined) {
    problem("cores", "join several pods, and there is one", "pods: 2 or more, or leave cores out");
  }
});

const fatTree = section({
  kind: kind(
    "fat-tree",
    "k pods of k/2 edge switches (`e1_1`, pod first) and k/2 aggregation switches (`a1_1`), (k/2)^2 core switches (`c1`); hosts `h1-2-3`: pod 1, edge 2, third.",
  ),
  k: z
    .int()
    .min(2)
    .max(64)
    .refine((k) => k % 2 === 0, { error: "k must be even: half of the ports go up, half go down" })
    .meta({ description: "Ports of a switch, an even number; k^3/4 hosts. 2 to 64." }),
  hosts: integer("Hosts of each edge switch. Default: k/2; more oversubscribe it.", 1, kMostPorts - 32),
  nics: nics(1, kOfOneSwitch),
  uplink: field(linkDefaultsSchema, "What differs from `link` on links between switches."),
  ...generated,
})
  .superRefine(({ k, hosts = k / 2 }, context) => {
    const count = ((k * k) / 2) * hosts;
    if (count <= kMostHosts) return;
    context.addIssue({
      code: "custom",
      message: `k = ${k} with ${hosts} hosts on each edge switch makes ${count} hosts`,
      path: ["k"],
      params: { hint: `at most ${kMostHosts} hosts` },
    });
  })
  .superRefine(wholeMachines(({ k, hosts = k / 2 }) => hosts));

export const topologySchema = z.discriminatedUnion("kind", [
  graph,
  star,
  dumbbell,
  parkingLot,
  testbed,
  leafSpine,
  rail,
  fatTree,
]);

export type TopologyInput = z.output<typeof topologySchema>;
export type NicHostInput = z.output<typeof nicHostSchema>;
