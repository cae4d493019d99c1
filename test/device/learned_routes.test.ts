/** Routes and neighbours that a router takes of the kernel's tables. */
import { expect, it } from "vitest";
import { composeSwitchWorker } from "../../src/device/compose.js";
import { loadSwitchDaemon } from "../../src/device/file/load.js";
import { learnedTable } from "../../src/device/learned_routes.js";
import { routesOf } from "../../src/device/router.js";
import type { KernelRoute } from "../../src/native/kernel_tables.js";
import { addressBytes } from "../../src/wire/address.js";

const text = (interfaces: string) => `ports: [{ interface: p1 }, { interface: p2 }]
router:
  mac: "02:00:00:00:00:01"
  interfaces: [${interfaces}]
  routes: [{ to: 10.50.0.0/16, via: 10.1.0.9 }]
  kernel: { namespace: /run/netns/sw }
`;
const kInterfaces =
  '{ port: p1, address: [10.1.0.1/24, "fd00:1::1/64"] }, { port: p2, vlan: 20, address: 10.2.0.1/24 }';
const { config } = loadSwitchDaemon("sw0.yaml", { text: text(kInterfaces) });
const router = config.router as NonNullable<typeof config.router>;

function route(to: string, ways: [number, string?, number?][], more: Partial<KernelRoute> = {}): KernelRoute {
  const [address = "", length = ""] = to.split("/");
  return {
    address: addressBytes(address),
    length: Number(length),
    kind: "forward",
    metric: 20,
    ways: ways.map(([number, gateway, weight = 1]) => ({
      interface: number,
      gateway: gateway === undefined ? undefined : addressBytes(gateway),
      weight,
    })),
    ...more,
  };
}

/** Numbers 7 and 8 are the twins of p1 and p2.20. */
const learned = (...routes: KernelRoute[]) => learnedTable(router, [7, 8], routes, []).routes;
const toOf = (routes: { to: { address: string; length: number } }[]) =>
  routes.map(({ to }) => `${to.address}/${to.length}`);

it("takes routes by its interfaces, of several for a prefix those of the lowest metric", () => {
  const found = learned(
    route("10.9.0.0/16", [[7, "10.1.0.2"]], { metric: 30 }),
    route("10.9.0.0/16", [
      [7, "10.1.0.3", 2],
      [8, "10.2.0.3"],
    ]),
    route("fd00:9::/64", [[7, "fe80::1"]]),
    route("fd00:9::/64", [[7, "fe80::2"]]),
    route("10.8.0.0/16", [[8]]),
  );
  expect(found).toEqual([
    {
      to: { address: "10.9.0.0", length: 16 },
      kind: "forward",
      ways: [
        { interface: 0, gateway: "10.1.0.3", weight: 2 },
        { interface: 1, gateway: "10.2.0.3", weight: 1 },
      ],
    },
    {
      to: { address: "fd00:9::", length: 64 },
      kind: "forward",
      ways: [
        { interface: 0, gateway: "fe80::1", weight: 1 },
        { interface: 0, gateway: "fe80::2", weight: 1 },
      ],
    },
    {
      to: { address: "10.8.0.0", length: 16 },
      kind: "forward",
      ways: [{ interface: 1, gateway: undefined, weight: 1 }],
    },
  ]);
});

it("leaves what the file says, its own links and what is never routed", () => {
  const own: Partial<KernelRoute> = { kind: "own", metric: 0 };
  const found = learned(
    route("10.1.0.0/24", [[7]]),
    route("10.1.0.1/32", [], own),
    route("10.1.0.255/32", [[7]]),
    route("10.50.0.0/16", [[7, "10.1.0.2"]]),
    route("127.0.0.0/8", [], own),
    route("fe80::/64", [[7]]),
    route("fe80::1/128", [], own),
    route("ff00::/8", [[7]]),
    route("::1/128", [], own),
    route("10.255.0.1/32", [], own),
  );
  expect(found).toEqual([{ to: { address: "10.255.0.1", length: 32 }, kind: "own", ways: [] }]);
});

it("refuses packets whose route leads elsewhere, and has no route by links that are down", () => {
  const found = learned(
    route("10.9.0.0/16", [[3, "192.168.0.1"]]),
    route("fd00:9::/64", [[8, "fe80::1"]]), // p2.20 has no IPv6
    route("10.8.0.0/16", []),
  );
  expect(found.map(({ kind }) => kind)).toEqual(["unreachable", "unreachable"]);
  expect(toOf(found)).toEqual(["10.9.0.0/16", "fd00:9::/64"]);
});

it("says how many ways of a route there is no room for", () => {
  const ways = Array.from({ length: 200 }, (_, i): [number, string] => [7, `10.1.0.${i + 2}`]);
  const [found] = learnedTable(router, [7, 8], [route("10.60.0.0/16", ways)], []).routes;
  expect(found).toMatchObject({ left_out: 136 });
  expect(found?.ways).toHaveLength(64);
  expect(learnedTable(router, [7, 8], [route("10.60.0.0/16", ways.slice(0, 64))], []).routes[0]).not.toHaveProperty(
    "left_out",
  );
});

it("makes nothing anew of routes that it has seen, and goes by what the file says now", () => {
  const known = new WeakMap();
  const [first, second] = [route("10.9.0.0/16", [[7, "10.1.0.2"]]), route("10.50.0.0/16", [[7, "10.1.0.2"]])];
  const before = learnedTable(router, [7, 8], [first, second], [], known);
  expect(toOf(before.routes)).toEqual(["10.9.0.0/16"]);
  const after = learnedTable({ ...router, routes: [] }, [7, 8], [first, second], [], known);
  expect(toOf(after.routes)).toEqual(["10.9.0.0/16", "10.50.0.0/16"]);
  expect(after.routes[0]).toBe(before.routes[0]);
  const native = (table: typeof after) =>
    composeSwitchWorker({ ...config, router: { ...router, routes: [], learned: table } }).switches[0]?.router
      ?.routes[0];
  expect(native(after)).toBe(native(before));
});

it("tells the native core, with a twin of each interface, and says whose routes they are", () => {
  const table = learnedTable(
    router,
    [7, 8],
    [route("10.9.0.0/16", [[8]]), route("10.66.0.0/16", [], { kind: "blackhole" })],
    [{ interface: 8, address: addressBytes("10.2.0.9"), mac: 9 }],
  );
  const running = { ...router, learned: table };
  const native = composeSwitchWorker({ ...config, router: running }).switches[0];
  expect(native?.twins?.map(({ interface: name, namespace_path }) => [name, namespace_path])).toEqual([
    ["p1", "/run/netns/sw"],
    ["p2.20", "/run/netns/sw"],
  ]);
  expect(native?.router?.interfaces.map(({ kernel }) => kernel)).toEqual([true, true]);
  expect(native?.router?.routes.slice(1)).toMatchObject([
    { kind: "forward", ways: [{ interface: 1, on_link: true }] },
    { kind: "blackhole", ways: [] },
  ]);
  expect(native?.router?.neighbours).toMatchObject([{ interface: 1, port: 1, mac: 9 }]);
  expect(routesOf(running).slice(-2)).toMatchObject([
    { to: "10.9.0.0/16", kind: "kernel", action: "forward", ways: [{ gateway: null, interface: "p2.20" }] },
    { to: "10.66.0.0/16", kind: "kernel", action: "blackhole", ways: [] },
  ]);
});

it.each([
  ["{ vlan: 30, address: 10.3.0.1/24 }", /vlan30 is at several ports, and has no twin/],
  ["{ port: p1, address: 10.1.0.1/24 }", /^accepted/],
])("interfaces that can have a twin: %s", (interfaces, expected) => {
  const load = () => loadSwitchDaemon("sw0.yaml", { text: text(interfaces).replace(/ {2}routes.*\n/, "") });
  const said = () => {
    try {
      load();
      return "accepted";
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(said()).toMatch(expected);
});
