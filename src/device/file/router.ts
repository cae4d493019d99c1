// The router of a switch.yaml: as written, in full, and the checks of it.
import { z } from "zod";
import { type Full, field, filled, integer, section, showValue } from "../../base/fields.js";
import type { Findings } from "../../base/findings.js";
import { isGroup, isStation } from "../../wire/address.js";
import { inPrefix, networkOf, type Prefix, prefixText, readPrefix } from "../../wire/prefix.js";
import { addressSchema, macSchema, namespacePath } from "./schema_parts.js";

/** Ways of one route: NextHopGroups of the native core. */
const kMostWays = 64;

const prefixSchema = (example: string) =>
  z
    .string({ error: (issue) => `${showValue(issue.input)} is not a prefix such as ${example}` })
    .refine((text) => readPrefix(text) !== undefined, {
      error: (issue) => `${showValue(issue.input)} is not a prefix such as ${example}`,
    })
    .transform((text) => readPrefix(text) as Prefix);

const ownAddress = prefixSchema("10.0.1.1/24 or fd00:1::1/64");

export const routerInterfaceSchema = section({
  port: field(z.string(), "Port that routes, and does not bridge any more. Default: all ports that bridge, in `vlan`."),
  vlan: integer("802.1Q VLAN of its frames. Default: they have no tag.", 1, 4094),
  address: z.union([ownAddress, z.array(ownAddress).min(1).max(16)]).meta({
    description: "The router's own address and the prefix of the link, such as 10.0.1.1/24; or several in a list.",
  }),
});

const waySchema = section({
  gateway: addressSchema.meta({ description: "Address of the next router, on the link of an interface." }),
  weight: integer("Its share of the flows, beside that of the others.", 1, 255, 1),
});

const routeSchema = section({
  to: prefixSchema("10.1.0.0/16 or ::/0").meta({ description: "Destinations; 0.0.0.0/0 and ::/0 are all." }),
  via: z
    .union([
      addressSchema,
      z
        .array(z.union([addressSchema, waySchema]))
        .min(1)
        .max(kMostWays),
    ])
    .meta({ description: "Gateway, or up to 64 of them in a list, among which flows are spread by their five-tuple." }),
});

const neighbourSchema = section({
  address: addressSchema.meta({ description: "IP address, on the link of an interface." }),
  mac: macSchema.meta({ description: "Its MAC address." }),
  port: field(z.string(), "Port that it is behind. Default: that of its interface, which must be one."),
});

const kernelSchema = section({
  namespace: namespacePath.meta({
    description:
      "Its path. It gets a twin of each interface, by whose name it goes, and what is for the router; its routes are the switch's.",
  }),
});

export const routerSchema = section({
  mac: field(macSchema, "MAC address of all interfaces of the router. Default: that of the first port."),
  interfaces: z.array(routerInterfaceSchema).min(1).max(1000).meta({ description: "Where it has addresses." }),
  routes: field(z.array(routeSchema).max(1_000_000), "Beside those to the links of its own addresses.", []),
  neighbors: field(z.array(neighbourSchema).max(10_000), "Whom it need not ask for by ARP or neighbor discovery.", []),
  kernel: field(
    z.union([z.literal(false), kernelSchema]),
    "A network namespace whose kernel is the router's control plane, for FRR or iproute2.",
    false,
  ),
  max_neighbors: integer("Most neighbors that it knows at a time.", 16, 1 << 20, 16_384),
});

export type RouterInput = Full<typeof routerSchema>;

export interface RouterInterface {
  /** Name: `PORT`, `PORT.VLAN`, `vlanVLAN`, or `bridge`. */
  name: string;
  /** Port; undefined: all ports that bridge. */
  port: string | undefined;
  /** VLAN; 0: no tag. */
  vlan: number;
  addresses: Prefix[];
}

export interface RouterRoute {
  to: Prefix;
  ways: { gateway: string; weight: number }[];
}

export interface RouterConfig {
  mac: number;
  interfaces: RouterInterface[];
  routes: RouterRoute[];
  neighbors: Full<typeof neighbourSchema>[];
  max_neighbors: number;
  /** The kernel whose tables are the router's, too. */
  kernel: { namespace: string } | undefined;
  /** Routes and neighbours of those tables. */
  learned?: LearnedTable;
}

/** Routes and neighbours beside those of the file; none is in both. */
export interface LearnedTable {
  routes: LearnedRoute[];
  /** Neighbours. `interface`: its position among those of the router. */
  neighbors: { address: string; interface: number; mac: number }[];
}

export interface LearnedRoute {
  to: Prefix;
  kind: "forward" | "own" | "unreachable" | "blackhole";
  /** Ways of the route. `gateway` undefined: on the link itself. */
  ways: { interface: number; gateway: string | undefined; weight: number }[];
  /** Ways that the kernel has besides, for which the router has no room. */
  left_out?: number;
}

/** @param mac MAC address of the first port. */
export function resolveRouter(input: z.output<typeof routerSchema>, mac: number): RouterConfig {
  const full = filled(routerSchema, input);
  return {
    mac: full.mac ?? mac,
    interfaces: full.interfaces.map(({ port, vlan = 0, address }) => ({
      name: port === undefined ? (vlan === 0 ? "bridge" : `vlan${vlan}`) : vlan === 0 ? port : `${port}.${vlan}`,
      port,
      vlan,
      addresses: [address].flat(),
    })),
    routes: full.routes.map(({ to, via }) => ({
      to: { address: networkOf(to), length: to.length },
      ways: [via].flat().map((way) => (typeof way === "string" ? { gateway: way, weight: 1 } : filled(waySchema, way))),
    })),
    neighbors: full.neighbors.map((neighbor) => filled(neighbourSchema, neighbor)),
    max_neighbors: full.max_neighbors,
    kernel: full.kernel === false ? undefined : full.kernel,
  };
}

/** The interface on whose link an address is; -1: none. */
export function interfaceOf({ interfaces }: RouterConfig, address: string): number {
  return interfaces.findIndex(({ addresses }) => addresses.some((own) => inPrefix(own, address)));
}

/** Checks interfaces that need a twin in the kernel. */
function checkTwins(interfaces: readonly RouterInterface[], found: Findings): void {
  interfaces.forEach(({ name, port }, i) => {
    const path = ["router", "interfaces", i];
    if (port === undefined) {
      found.problem(path, `${name} is at several ports, and has no twin in the kernel`, "name its port");
    } else if (!/^[^\s/:]{1,15}$/.test(name)) {
      const message = `${name} cannot be the name of the kernel's twin`;
      found.problem([...path, "port"], message, "give the port a name of 1 to 15 characters without spaces, / and :");
    }
  });
}

/** @param ports Names of the switch's ports. */
export function checkRouter(router: RouterConfig, ports: readonly string[], found: Findings): void {
  const { interfaces, routes, neighbors } = router;
  if (!isStation(router.mac) && router.mac !== 0) {
    found.problem(["router", "mac"], "is the address of a group", "give one whose first byte is even");
  }
  if (router.kernel !== undefined) checkTwins(interfaces, found);
  const links: { prefix: Prefix; name: string }[] = [];
  interfaces.forEach(({ name, port, addresses }, i) => {
    if (port !== undefined && !ports.includes(port)) {
      found.unknown(["router", "interfaces", i, "port"], "port", port, ports);
    }
    if (interfaces.findIndex((other) => other.name === name) !== i) {
      found.problem(["router", "interfaces", i], `${name} is there twice`, "list all addresses of an interface in one");
    }
    for (const own of addresses) {
      if (isGroup(own.address)) {
        found.problem(
          ["router", "interfaces", i, "address"],
          `${own.address} is a group's`,
          "give an address of its own",
        );
      }
      const other = links.find(({ prefix }) => inPrefix(prefix, own.address) || inPrefix(own, prefix.address));
      if (other !== undefined && other.name !== name) {
        const message = `${prefixText(own)} overlaps with ${prefixText(other.prefix)} of ${other.name}`;
        found.problem(["router", "interfaces", i, "address"], message, "each link needs a prefix of its own");
      }
      links.push({ prefix: own, name });
    }
  });
  const known = links.map(({ prefix }) => prefixText({ ...prefix, address: networkOf(prefix) })).join(", ");
  const taken = new Set<string>();
  routes.forEach(({ to, ways }, i) => {
    const text = prefixText(to);
    if (taken.has(text)) {
      found.problem(
        ["router", "routes", i, "to"],
        `${text} is there twice`,
        "list all gateways of a route in one `via`",
      );
    }
    taken.add(text);
    const own = links.find(({ prefix }) => prefix.length === to.length && inPrefix(prefix, to.address));
    if (own !== undefined) {
      found.problem(["router", "routes", i, "to"], `${text} is the link of ${own.name}`, "leave the route out");
    }
    for (const { gateway } of ways) checkOnLink(["router", "routes", i, "via"], gateway, to.address);
  });
  neighbors.forEach(({ address, mac, port }, i) => {
    const path = ["router", "neighbors", i];
    checkOnLink([...path, "address"], address, address);
    if (!isStation(mac))
      found.problem([...path, "mac"], "is not the address of a station", "give that of its interface");
    if (neighbors.findIndex((other) => other.address === address) !== i) {
      found.problem([...path, "address"], `${address} is there twice`, "a neighbor has one MAC address");
    }
    const at = interfaces[interfaceOf(router, address)];
    if (port !== undefined && !ports.includes(port)) found.unknown([...path, "port"], "port", port, ports);
    else if (at !== undefined && at.port === undefined && port === undefined) {
      found.problem([...path, "port"], `is missing: ${at.name} is at several ports`, "name the port that it is behind");
    } else if (at?.port !== undefined && port !== undefined && port !== at.port) {
      found.problem([...path, "port"], `${port} is not ${at.port}, where ${at.name} is`, "leave it out");
    }
  });

  function checkOnLink(path: (string | number)[], address: string, like: string): void {
    if (address.includes(":") !== like.includes(":")) {
      found.problem(path, `${address} is not of the same IP version as ${like}`, "both must be IPv4, or both IPv6");
    } else if (interfaceOf(router, address) < 0) {
      found.problem(path, `${address} is on the link of no interface`, `links: ${known}`);
    } else if (interfaces.some(({ addresses }) => addresses.some((own) => own.address === address))) {
      found.problem(path, `${address} is the router's own`, "give the address of a neighbor");
    }
  }
}
