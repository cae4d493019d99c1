/** The router of a switch.yaml, and the gateway of a nic.yaml. */
import { expect, it } from "vitest";
import { composeSwitchWorker } from "../../../src/device/compose.js";
import { loadNicDaemon, loadSwitchDaemon } from "../../../src/device/file/load.js";
import { routeFrom } from "../../../src/device/path.js";
import { routesOf } from "../../../src/device/router.js";
import { refusalOf } from "../../fixtures/refusal.js";

const kPorts = "ports: [{ interface: p1 }, { interface: p2 }, { interface: p3 }, { interface: p4 }]\n";
const kRouter = `router:
  mac: "02:00:00:00:00:01"
  interfaces:
    - { port: p1, address: [10.1.0.1/24, "fd00:1::1/64"] }
    - { port: p2, vlan: 20, address: 10.2.0.1/24 }
    - { vlan: 30, address: 10.3.0.1/24 }
`;

const routerOf = (text: string) => loadSwitchDaemon("sw0.yaml", { text: kPorts + text }).config;

it("is none unless there is one", () => {
  expect(routerOf("").router).toBeUndefined();
  expect(composeSwitchWorker(routerOf("")).switches[0]?.router).toBeUndefined();
});

it("becomes interfaces, routes and neighbors of the native core, by their numbers", () => {
  const config = routerOf(`${kRouter}
  routes:
    - { to: 172.16.5.5/12, via: [{ gateway: 10.1.0.2, weight: 3 }, 10.2.0.2] }
    - { to: "::/0", via: "fd00:1::2" }
  neighbors:
    - { address: 10.1.0.9, mac: "02:00:00:00:00:09" }
    - { address: 10.3.0.9, mac: "02:00:00:00:00:0a", port: p4 }`);
  const router = composeSwitchWorker(config).switches[0]?.router;
  expect(router?.mac).toBe(0x02_00_00_00_00_01);
  expect(router?.interfaces.map(({ port, vlan, addresses }) => [port, vlan, addresses.length])).toEqual([
    [0, 0, 2],
    [1, 20, 1],
    [0xffff, 30, 1],
  ]);
  expect(router?.routes[0]).toEqual({
    prefix: { address: { version: 4, bytes: Buffer.from([172, 16, 0, 0]) }, length: 12 },
    ways: [
      { interface: 0, gateway: { version: 4, bytes: Buffer.from([10, 1, 0, 2]) }, weight: 3 },
      { interface: 1, gateway: { version: 4, bytes: Buffer.from([10, 2, 0, 2]) }, weight: 1 },
    ],
  });
  expect(router?.routes[1]?.prefix).toMatchObject({ address: { version: 6 }, length: 0 });
  expect(router?.neighbours.map(({ interface: number, port, mac }) => [number, port, mac])).toEqual([
    [0, 0, 0x02_00_00_00_00_09],
    [2, 3, 0x02_00_00_00_00_0a],
  ]);
  expect(config.router && routesOf(config.router)).toMatchObject([
    { to: "10.1.0.0/24", kind: "connected", ways: [{ gateway: null, interface: "p1" }] },
    { to: "fd00:1::/64", kind: "connected" },
    { to: "10.2.0.0/24", ways: [{ interface: "p2.20" }] },
    { to: "10.3.0.0/24", ways: [{ interface: "vlan30" }] },
    { to: "172.16.0.0/12", kind: "static", ways: [{ gateway: "10.1.0.2", interface: "p1", weight: 3 }, { weight: 1 }] },
    { to: "::/0" },
  ]);
});

it.each([
  ["interfaces: []", "router.interfaces"],
  ["interfaces: [{ port: p1, address: 10.1.0.1 }]", "is not a prefix such as 10.0.1.1/24"],
  ["interfaces: [{ port: p1, address: 10.1.0.1/33 }]", "is not a prefix such as 10.0.1.1/24"],
  ["interfaces: [{ port: p9, address: 10.1.0.1/24 }]", "unknown port p9"],
  ["interfaces: [{ port: p1, address: 224.0.0.1/24 }]", "224.0.0.1 is a group's"],
  [
    "interfaces: [{ port: p1, address: 10.1.0.1/24 }, { port: p2, address: 10.1.0.129/25 }]",
    "10.1.0.129/25 overlaps with 10.1.0.1/24 of p1",
  ],
  ["interfaces: [{ port: p1, address: 10.1.0.1/24 }, { port: p1, address: 10.2.0.1/24 }]", "p1 is there twice"],
])("refuses %s", (text, message) => {
  expect(refusalOf(() => routerOf(`router: { ${text} }`))).toContain(message);
});

it.each([
  ["routes: [{ to: 10.9.0.0/16, via: 10.8.0.1 }]", "10.8.0.1 is on the link of no interface"],
  ["routes: [{ to: 10.9.0.0/16, via: 10.1.0.1 }]", "10.1.0.1 is the router's own"],
  ['routes: [{ to: "fd00:9::/64", via: 10.1.0.2 }]', "10.1.0.2 is not of the same IP version"],
  ["routes: [{ to: 10.1.0.0/24, via: 10.2.0.2 }]", "10.1.0.0/24 is the link of p1"],
  ["routes: [{ to: 10.9.0.0/16, via: 10.1.0.2 }, { to: 10.9.1.1/16, via: 10.1.0.3 }]", "10.9.0.0/16 is there twice"],
  ["routes: [{ to: 10.9.0.0/16, via: [{ gateway: 10.1.0.2, weight: 0 }] }]", "weight"],
  ['neighbors: [{ address: 10.3.0.9, mac: "02:00:00:00:00:09" }]', "vlan30 is at several ports"],
  ['neighbors: [{ address: 10.1.0.9, mac: "03:00:00:00:00:09" }]', "is not the address of a station"],
  ['neighbors: [{ address: 10.1.0.9, mac: "02:00:00:00:00:09", port: p2 }]', "p2 is not p1"],
])("refuses %s", (text, message) => {
  expect(refusalOf(() => routerOf(`${kRouter}  ${text}\n`))).toContain(message);
});

it("needs CNMs that go by IP where it has congestion points, and learning where its links are bridged", () => {
  expect(refusalOf(() => routerOf(`${kRouter}qcn: { enabled: true }\n`))).toContain("qcn.notification: sw0 routes");
  expect(refusalOf(() => routerOf("qcn: { enabled: true, notification: ip }\n"))).toContain("sw0 does not route");
  const { switches } = composeSwitchWorker(routerOf(`${kRouter}qcn: { enabled: true, notification: ip }\n`));
  expect(switches[0]).toMatchObject({ cn_priorities: 1 << 3, cnms_by_ip: true });
  expect(refusalOf(() => routerOf(`${kRouter}forwarding: static\n`))).toContain("vlan30 is at the ports that bridge");
});

it("gives a NIC's peers beyond its link the gateway for a next hop", () => {
  const nicOf = (text: string) => loadNicDaemon("nic0.yaml", { text: `interface: e0\n${text}` }).config;
  const { gateways } = nicOf(
    'address: [10.1.0.5, "fd00:1::5"]\ngateway: [{ address: 10.1.0.1 }, { address: "fd00:1::1", prefix: 48 }]',
  );
  const [v4, v6] = [routeFrom(gateways, "10.1.0.5"), routeFrom(gateways, "fd00:1::5")];
  expect([v4("10.1.0.9"), v4("10.2.0.9")]).toEqual(["10.1.0.9", "10.1.0.1"]);
  expect([v6("fd00:1:0:7::9"), v6("fd00:2::9")]).toEqual(["fd00:1:0:7::9", "fd00:1::1"]);
  expect(routeFrom([], "10.1.0.5")("10.2.0.9")).toBe("10.2.0.9");

  const nic = (gateway: string) => refusalOf(() => nicOf(`address: 10.1.0.5\ngateway: ${gateway}`));
  expect(nic("{ address: 10.2.0.1 }")).toContain("10.2.0.1 is no other address of the NIC's link 10.1.0.0/24");
  expect(nic("{ address: 10.1.0.5 }")).toContain("is no other address");
  expect(nic('{ address: "fd00::1" }')).toContain("cannot be reached from 10.1.0.5");
  expect(nic("{ address: 10.1.0.1, prefix: 64 }")).toContain("64 bits are more than an address has");
  expect(nic("[{ address: 10.1.0.1 }, { address: 10.1.0.2 }]")).toContain("is the second of its IP version");
});
