/** The router of a switch: its form in the native core, and its reports. */
import { macText } from "../base/mac.js";
import { nativeAddress } from "../native/ip_address.js";
import type { NativePrefix, NativeRouter, NeighborEntry } from "../native/types.js";
import { networkOf, type Prefix, prefixText } from "../wire/prefix.js";
import { interfaceOf, type LearnedRoute, type RouterConfig } from "./file/router.js";
import type { NeighborReport, RouteReport } from "./protocol.js";

/** Stands for all ports that bridge, at an interface. */
const kAnyPort = 0xffff;

/** @param ports Names of the switch's ports. */
export function nativeRouter(config: RouterConfig, ports: readonly string[]): NativeRouter {
  const { mac, interfaces, routes, neighbors, max_neighbors, learned } = config;
  const portOf = (name: string | undefined) => (name === undefined ? kAnyPort : ports.indexOf(name));
  return {
    mac,
    interfaces: interfaces.map(({ port, vlan, addresses }) => ({
      port: portOf(port),
      vlan,
      addresses: addresses.map(nativePrefix),
      ...(config.kernel && { kernel: true }),
    })),
    routes: [
      ...routes.map(({ to, ways }) => ({
        prefix: nativePrefix(to),
        ways: ways.map(({ gateway, weight }) => ({
          interface: interfaceOf(config, gateway),
          gateway: nativeAddress(gateway),
          weight,
        })),
      })),
      ...(learned?.routes ?? []).map((route) => {
        const native = natives.get(route) ?? nativeRoute(route);
        natives.set(route, native);
        return native;
      }),
    ],
    neighbours: [
      ...neighbors.map(({ address, mac, port }) => ({ address, mac, port, interface: interfaceOf(config, address) })),
      ...(learned?.neighbors ?? []).map((neighbor) => ({ ...neighbor, port: undefined })),
    ].map(({ address, interface: number, port, mac }) => ({
      address: nativeAddress(address),
      interface: number,
      port: portOf(port ?? interfaces[number]?.port),
      mac,
    })),
    neighbour_capacity: max_neighbors,
  };
}

/** Native forms of learned routes, kept because of thousands only a few change at a time. */
const natives = new WeakMap<LearnedRoute, NativeRouter["routes"][number]>();

function nativeRoute({ to, kind, ways }: LearnedRoute): NativeRouter["routes"][number] {
  return {
    prefix: nativePrefix(to),
    kind,
    ways: ways.map(({ interface: number, gateway, weight }) => ({
      interface: number,
      gateway: nativeAddress(gateway ?? to.address),
      weight,
      ...(gateway === undefined && { on_link: true }),
    })),
  };
}

const nativePrefix = ({ address, length }: Prefix): NativePrefix => ({ address: nativeAddress(address), length });

/** All routes of a switch, those to its own links first. */
export function routesOf(config: RouterConfig): RouteReport[] {
  const links = config.interfaces.flatMap(({ name, addresses }) =>
    addresses.map(
      (own): RouteReport => ({
        to: prefixText({ ...own, address: networkOf(own) }),
        kind: "connected",
        action: "forward",
        ways: [{ gateway: null, interface: name, weight: 1 }],
      }),
    ),
  );
  const others = config.routes.map(
    ({ to, ways }): RouteReport => ({
      to: prefixText(to),
      kind: "static",
      action: "forward",
      ways: ways.map(({ gateway, weight }) => ({
        gateway,
        interface: config.interfaces[interfaceOf(config, gateway)]?.name ?? "",
        weight,
      })),
    }),
  );
  const learned = (config.learned?.routes ?? []).map(
    ({ to, kind, ways }): RouteReport => ({
      to: prefixText(to),
      kind: "kernel",
      action: kind,
      ways: ways.map(({ interface: number, gateway = null, weight }) => ({
        gateway,
        interface: config.interfaces[number]?.name ?? "",
        weight,
      })),
    }),
  );
  return [...links, ...others, ...learned];
}

/** @param ports Names of the switch's ports. */
export function neighborsOf(
  { interfaces }: RouterConfig,
  ports: readonly string[],
  entries: readonly NeighborEntry[],
): NeighborReport[] {
  return entries.map(({ address, interface: number, port, mac, state, waits }) => ({
    address,
    interface: interfaces[number]?.name ?? "",
    mac: mac === 0 ? null : macText(mac),
    port: mac === 0 ? null : (ports[port] ?? ""),
    state: state === "permanent" ? "static" : state === "reachable" ? "reachable" : "incomplete",
    waiting: waits,
  }));
}
