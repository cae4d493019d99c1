/** Tables of switches that route: routes, neighbors. */
import { printable } from "../../result/report/format.js";
import { ShownCounters, text } from "./counts.js";
import { gridView } from "./view.js";

const kKernel = ["kernel_rx_packets", "kernel_tx_packets", "drop_kernel_rate", "drop_kernel_refused"];

export const routes = gridView({
  description: "routes of a switch, with their gateways, and what came of packets to be routed",
  of: "switch",
  requests: ["routes", "counters", "switch"],
  grids({ routes, counters, switch: { ports } }) {
    const own = new ShownCounters(counters);
    return [
      {
        title: `Routes, ${routes.length}`,
        head: ["Prefix", "Type", "Gateway", "Interface", "Weight"],
        names: 4,
        rows: routes.flatMap(({ to, kind, action, ways }) => {
          // Packets to this destination are not forwarded.
          if (ways.length === 0) return [[to, kind, action, "-", "-"]];
          return ways.map(({ gateway, interface: at, weight }, i) => [
            i === 0 ? to : "",
            i === 0 ? kind : "",
            gateway ?? "-",
            printable(at),
            String(weight),
          ]);
        }),
      },
      {
        title: "Packets of the router's kernel, by port",
        head: ["Port", "Received", "Sent", "Too many", "Refused"],
        names: 1,
        rows: ports
          .map(({ name }) => [name, ...kKernel.map((counter) => own.get(counter, { port: name }))] as const)
          .filter(([, ...counts]) => counts.some((count) => count > 0))
          .map(([name, ...counts]) => [printable(name), ...counts.map(text)]),
      },
      {
        title: "Packets to be routed, by the port that they came in by",
        head: [
          "Port",
          "Routed",
          "No route",
          "Blackhole",
          "TTL",
          "Martian",
          "Header",
          "Neighbor",
          "Not ours",
          "Group",
          "MTU",
        ],
        names: 1,
        rows: ports.map(({ name }) => {
          const of = (...counters: string[]) =>
            text(counters.reduce((sum, counter) => sum + own.get(counter, { port: name }), 0));
          return [
            printable(name),
            of("routed_packets"),
            of("drop_ip_no_route"),
            of("drop_blackhole"),
            of("drop_ttl_expired"),
            of("drop_martian"),
            of("drop_ip_header"),
            of("drop_neighbor_unknown", "drop_neighbor_queue"),
            of("drop_router_protocol", "drop_router_bridged"),
            of("drop_router_multicast"),
            of("drop_mtu_exceeded"),
          ];
        }),
      },
    ];
  },
  json: ({ routes }) => ({ routes }),
});

export const neighbors = gridView({
  description: "neighbors of a switch that routes: MAC addresses by ARP and neighbor discovery",
  of: "switch",
  requests: ["neighbors"],
  grids({ neighbors }) {
    return [
      {
        title: `Neighbors, ${neighbors.length}`,
        head: ["Address", "MacAddress", "Interface", "Port", "State", "Waiting/pkts"],
        names: 5,
        rows: neighbors.map(({ address, mac, interface: at, port, state, waiting }) => [
          address,
          mac ?? "-",
          printable(at),
          port === null ? "-" : printable(port),
          state,
          String(waiting),
        ]),
      },
    ];
  },
});
