/** A scenario's network as far as it matters where frames of flows go: by the same next hops and hashes as those of network.ts. */
import type { NativeRoutedLinks, NativeRoutedNetwork } from "../native/simulation_types.js";
import { hostIp } from "../scenario/addresses.js";
import type { Fabric, SwitchTable } from "../scenario/fabric.js";
import type { Scenario, SwitchConfig } from "../scenario/types.js";
import { udpSourcePort } from "./behaviour.js";
import { routesOf } from "./network.js";

export function routedNetwork(scenario: Scenario, fabric: Fabric): NativeRoutedNetwork {
  const { switches, hosts, flows, ecmp_seed, transport } = scenario;
  // Sprayed packets have source ports of their own, so that the hash spreads them.
  const spreads = ({ load_balancing }: SwitchConfig) =>
    load_balancing === "spray" || load_balancing === "adaptive" || transport.spraying !== "none";
  return {
    switches: switches.map((own, component) => ({
      // Where addresses are learned, there is one way only, which is the shortest.
      ...routesOf(fabric.tables[component] as SwitchTable, false),
      hash_seed: ecmp_seed,
      component,
      spreads: spreads(own),
    })),
    addresses: Uint32Array.from(hosts, (_, host) => new DataView(hostIp(host).buffer).getUint32(0)),
    links: routedLinks(scenario, fabric),
    flows: {
      from: Uint32Array.from(flows, ({ from }) => fabric.host(from)),
      to: Uint32Array.from(flows, ({ to }) => fabric.host(to)),
      udp_source_port: Uint16Array.from(flows, (_, flow) => udpSourcePort(flow)),
    },
  };
}

function routedLinks({ links }: Scenario, fabric: Fabric): NativeRoutedLinks {
  return {
    from_device: Uint32Array.from(fabric.ends, ([{ device }]) => device),
    from_port: Uint32Array.from(fabric.ends, ([{ port }]) => port),
    to_device: Uint32Array.from(fabric.ends, ([, { device }]) => device),
    to_port: Uint32Array.from(fabric.ends, ([, { port }]) => port),
    delay: Float64Array.from(links, ({ delay }) => delay),
    rate: Float64Array.from(links, ({ rate }) => rate),
  };
}
