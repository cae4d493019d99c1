/** Switches whose control plane is the kernel of a namespace: what iproute2 does there, and FRR's BGP between four of them. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { LabNetwork } from "../../src/host/veth.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { liveObstacle } from "./capability.js";
import { type Daemon, daemon } from "./daemons.js";
import { folder } from "./weir.js";

type Address = readonly [port: string, ...addresses: string[]];

/** A switch whose ports are named after what is behind them, with the kernel of namespace `k` and its number. */
function startRouter(net: LabNetwork, number: number, interfaces: readonly Address[], workers = 1): Promise<Daemon> {
  const path = folder();
  const [socket, file] = [join(path, "control.sock"), join(path, "switch.yaml")];
  const namespace = net.namespace(`s${number}`).path;
  const lines = [
    `name: s${number}`,
    "ports:",
    ...interfaces.map(
      ([port], i) => `  - { interface: ${port}, namespace: ${namespace}, rate: 1Gbps, worker: ${i % workers} }`,
    ),
    `workers: [${Array(workers).fill("{}").join(", ")}]`,
    "router:",
    `  mac: "02:57:52:00:00:0${number}"`,
    "  interfaces:",
    ...interfaces.map(([port, ...own]) => `    - { port: ${port}, address: ${JSON.stringify(own)} }`),
    `  kernel: { namespace: ${net.namespace(`k${number}`).path} }`,
    `control: ${socket}`,
    "metrics: false",
  ];
  writeFileSync(file, lines.join("\n"));
  return daemon("switch", file, socket);
}

async function network(routers: number, links: readonly (readonly [string, string])[]): Promise<LabNetwork> {
  const numbers = Array.from({ length: routers }, (_, i) => i + 1);
  const hosts = links.map(([from]) => from).filter((name) => !name.startsWith("s"));
  const net = await LabNetwork.create(
    [
      ...hosts.map((name) => ({ name, role: "host" as const })),
      ...numbers.map((n) => ({ name: `k${n}`, role: "host" as const })),
      ...numbers.map((n) => ({ name: `s${n}`, role: "switch" as const })),
    ],
    links.map(([from, to], i) => ({ from, to, mtu: 1500, fromMac: 0x02_57_00_00_00_10 + i })),
  );
  onTestFinished(() => net.close());
  for (const n of numbers) {
    await net.namespace(`k${n}`).run("sh", ["-c", "echo 0 > /proc/sys/net/ipv6/conf/all/disable_ipv6"]);
    await net.namespace(`k${n}`).run("sh", ["-c", "echo 0 > /proc/sys/net/ipv6/conf/default/disable_ipv6"]);
    await net.namespace(`k${n}`).run("ip", ["link", "set", "lo", "up"]);
  }
  return net;
}

async function addressHost(net: LabNetwork, host: string, n: number): Promise<void> {
  await net.namespace(host).run("sh", ["-c", "echo 0 > /proc/sys/net/ipv6/conf/weir0/disable_ipv6"]);
  for (const line of [
    "link set dev weir0 arp on multicast on",
    `address add 10.${n}.0.2/24 dev weir0`,
    `address add fd00:${n}::2/64 dev weir0 nodad`,
    `route add default via 10.${n}.0.1`,
    `-6 route add default via fd00:${n}::1`,
  ])
    await net.namespace(host).run("ip", line.split(" "));
}

async function ping(net: LabNetwork, from: string, ...args: string[]): Promise<string> {
  return (await net.namespace(from).run("sh", ["-c", `ping -n -W 2 ${args.join(" ")} 2>&1 || true`])).stdout;
}

async function totalOf(socket: string, name: string, labels: Record<string, string> = {}): Promise<number> {
  const { counters } = await ask(socket, "counters");
  return counters
    .filter((c) => c.name === name && Object.entries(labels).every(([key, value]) => c.labels[key] === value))
    .reduce((sum, { value }) => sum + value, 0);
}

const kernelRoutes = async (socket: string) => (await ask(socket, "routes")).filter(({ kind }) => kind === "kernel");
const kRoutes = 10_000;

describeUnless(liveObstacle(), "a switch with the kernel's control plane", () => {
  const ways = "answers by the kernel's twin, and forwards by the kernel's routes, which change without a lost frame";
  it.each([1, 2])(`${ways}: workers %i`, async (workers) => {
    const net = await network(1, [
      ["a", "s1"],
      ["b", "s1"],
    ]);
    const subnets: Address[] = [
      ["a", "10.1.0.1/24", "fd00:1::1/64"],
      ["b", "10.2.0.1/24", "fd00:2::1/64"],
    ];
    const router = await startRouter(net, 1, subnets, workers);
    await addressHost(net, "a", 1);
    await addressHost(net, "b", 2);
    const kernel = net.namespace("k1");
    const links = await kernel.run("ip", ["-o", "link"]);
    expect(links.stdout).toMatch(/ a: .*mtu 1500 .*02:57:52:00:00:01/);
    expect(await ping(net, "k1", "-c", "3", "-i", "0.05", "10.1.0.2")).toContain("3 received");
    expect(await ping(net, "a", "-c", "3", "-i", "0.05", "10.1.0.1")).toContain("3 received");
    expect(await ping(net, "a", "-c", "3", "-i", "0.05", "fd00:1::1")).toContain("3 received");
    expect(await ping(net, "a", "-c", "3", "-i", "0.05", "10.2.0.2")).toContain("3 received");
    expect(await totalOf(router.socket, "kernel_rx_packets", { port: "a" })).toBeGreaterThanOrEqual(9);
    expect(await totalOf(router.socket, "kernel_tx_packets", { port: "a" })).toBeGreaterThanOrEqual(9);

    await kernel.run("ip", ["address", "add", "10.255.0.1/32", "dev", "lo"]);
    await kernel.run("ip", ["route", "add", "blackhole", "10.66.0.0/16"]);
    await kernel.run("ip", "route add 10.7.0.0/16 nexthop via 10.1.0.2 weight 3 nexthop via 10.2.0.2".split(" "));
    await kernel.run("ip", "-6 route add fd00:7::/64 via fe80::9 dev b".split(" "));
    await kernel.run("ip", "neigh replace 10.2.0.9 lladdr 02:00:00:00:00:99 dev b nud permanent".split(" "));
    await eventually(async () => {
      const routes = await kernelRoutes(router.socket);
      expect(routes).toContainEqual({ to: "10.255.0.1/32", kind: "kernel", action: "own", ways: [] });
      expect(routes).toContainEqual({ to: "10.66.0.0/16", kind: "kernel", action: "blackhole", ways: [] });
      expect(routes.find(({ to }) => to === "10.7.0.0/16")?.ways).toEqual([
        { gateway: "10.1.0.2", interface: "a", weight: 3 },
        { gateway: "10.2.0.2", interface: "b", weight: 1 },
      ]);
      expect(routes.find(({ to }) => to === "fd00:7::/64")?.ways).toEqual([
        { gateway: "fe80::9", interface: "b", weight: 1 },
      ]);
      expect(await ask(router.socket, "neighbors")).toContainEqual(
        expect.objectContaining({ address: "10.2.0.9", mac: "02:00:00:00:00:99", state: "static", port: "b" }),
      );
    });
    expect(await ping(net, "a", "-c", "2", "-i", "0.05", "10.255.0.1")).toContain("2 received");
    await ping(net, "a", "-c", "1", "-W", "1", "10.66.0.1");
    expect(await totalOf(router.socket, "drop_blackhole")).toBe(1);

    const pinged = ping(net, "a", "-q", "-c", "600", "-i", "0.005", "10.2.0.2");
    const batch = Array.from(
      { length: kRoutes },
      (_, i) => `route add 10.${100 + Math.floor(i / 250)}.${i % 250}.0/24 via 10.2.0.2\n`,
    );
    const file = join(folder(), "batch");
    writeFileSync(file, batch.join(""));
    await kernel.run("ip", ["-batch", file]);
    await eventually(async () => expect((await kernelRoutes(router.socket)).length).toBe(kRoutes + 4));
    await kernel.run("ip", ["route", "flush", "via", "10.2.0.2"]);
    await eventually(async () => expect((await kernelRoutes(router.socket)).length).toBe(4));
    expect(await pinged).toContain("600 received");

    // However it ends, the kernel has nothing of it.
    router.child.kill("SIGKILL");
    await router.finished;
    await eventually(async () => expect((await kernel.run("ip", ["-o", "link"])).stdout).not.toContain(" a: "));
  });
});

/** FRR runs as a user of its own: its numbers. Undefined: it is not installed. */
function frrUser(): [number, number] | undefined {
  const [, user, group] = /^frr:[^:]*:(\d+):(\d+)/m.exec(readFileSync("/etc/passwd", "utf8")) ?? [];
  return user === undefined ? undefined : [Number(user), Number(group)];
}

/** Why FRR cannot run here; undefined if it can. */
function frrObstacle(): string | undefined {
  const owner = frrUser();
  if (owner === undefined) return lacking("frr") ?? "there is no user frr";
  const path = mkdtempSync(join(tmpdir(), "weir-frr-"));
  try {
    chownSync(path, ...owner);
    return undefined;
  } catch {
    return "FRR's user is unknown to this user namespace: run as root";
  } finally {
    rmSync(path, { recursive: true });
  }
}

/** FRR in the kernel of a switch, its files in a folder of its own, until the test ends. */
function startFrr(net: LabNetwork, number: number, neighbours: readonly (readonly [string, number])[]): void {
  const path = folder();
  const bgpd = [
    `router bgp ${65_000 + number}`,
    ` bgp router-id 10.255.0.${number}`,
    " no bgp ebgp-requires-policy",
    " bgp bestpath as-path multipath-relax",
    " timers bgp 1 3",
    ...neighbours.flatMap(([address, other]) => [
      ` neighbor ${address} remote-as ${65_000 + other}`,
      ` neighbor ${address} timers connect 1`,
      ` neighbor ${address} advertisement-interval 0`,
    ]),
    " address-family ipv4 unicast",
    "  redistribute connected",
    " exit-address-family",
    " address-family ipv6 unicast",
    ...neighbours.filter(([address]) => address.includes(":")).map(([address]) => `  neighbor ${address} activate`),
    "  redistribute connected",
    " exit-address-family",
  ];
  writeFileSync(join(path, "bgpd.conf"), `${bgpd.join("\n")}\n`);
  // Else, of a link that comes back, FRR 8 leaves the way out of the kernel's nexthop group.
  writeFileSync(join(path, "zebra.conf"), "no zebra nexthop kernel enable\n");
  chownSync(path, ...(frrUser() as [number, number]));
  for (const name of ["zebra", "bgpd"]) {
    const files = ["-f", join(path, `${name}.conf`), "-i", join(path, `${name}.pid`), "-z", join(path, "zserv.api")];
    const own = ["--vty_socket", path, "-P", "0"];
    const args = [`--net=${net.namespace(`k${number}`).path}`, `/usr/lib/frr/${name}`, ...files, ...own];
    const child = spawn("nsenter", args, { stdio: "ignore" });
    onTestFinished(() => end(child));
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}

describeUnless(liveObstacle() ?? lacking("frr") ?? frrObstacle(), "four switches with FRR", () => {
  it("route by BGP over both spines, both ways, and over one when the other's link has failed", async () => {
    const net = await network(4, [
      ["a", "s1"],
      ["b", "s2"],
      ["s1", "s3"],
      ["s1", "s4"],
      ["s2", "s3"],
      ["s2", "s4"],
    ]);
    // 10.9.LS.0/30 and fd00:9:LS::/64 between leaf L and spine S.
    const link = (leaf: number, spine: number, end: number) =>
      [`10.9.${leaf}${spine}.${end}/30`, `fd00:9:${leaf}${spine}::${end}/64`] as const;
    const routers = await Promise.all([
      startRouter(net, 1, [
        ["a", "10.1.0.1/24", "fd00:1::1/64"],
        ["s3", ...link(1, 3, 1)],
        ["s4", ...link(1, 4, 1)],
      ]),
      startRouter(net, 2, [
        ["b", "10.2.0.1/24", "fd00:2::1/64"],
        ["s3", ...link(2, 3, 1)],
        ["s4", ...link(2, 4, 1)],
      ]),
      ...[3, 4].map((spine) =>
        startRouter(net, spine, [
          ["s1", ...link(1, spine, 2)],
          ["s2", ...link(2, spine, 2)],
        ]),
      ),
    ]);
    const [first, second] = routers as [Daemon, Daemon];
    await addressHost(net, "a", 1);
    await addressHost(net, "b", 2);
    const peers = (leaf: number, spine: number, end: number, other: number) =>
      link(leaf, spine, end).map((prefix) => [prefix.replace(/\/.*/, ""), other] as const);
    for (const leaf of [1, 2])
      startFrr(
        net,
        leaf,
        [3, 4].flatMap((spine) => peers(leaf, spine, 2, spine)),
      );
    for (const spine of [3, 4])
      startFrr(
        net,
        spine,
        [1, 2].flatMap((leaf) => peers(leaf, spine, 1, leaf)),
      );
    const waysTo = async (socket: string, to: string) =>
      (await kernelRoutes(socket))
        .find((route) => route.to === to)
        ?.ways.map((way) => way.interface)
        .sort();
    const both = ["s3", "s4"];
    await eventually(async () => {
      expect(await waysTo(first.socket, "10.2.0.0/24")).toEqual(both);
      expect(await waysTo(second.socket, "10.1.0.0/24")).toEqual(both);
      expect(await waysTo(first.socket, "fd00:2::/64")).toEqual(both);
      expect(await waysTo(second.socket, "fd00:1::/64")).toEqual(both);
    });
    expect(await ping(net, "a", "-c", "10", "-i", "0.05", "10.2.0.2")).toContain("10 received");
    expect(await ping(net, "a", "-c", "10", "-i", "0.05", "fd00:2::2")).toContain("10 received");
    // Flows of many ports, and what answers that there is nobody at them.
    const flows = `import socket
for port in range(200):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("", 20000 + port))
    s.sendto(b"weir", ("10.2.0.2", 9000))
`;
    await net.namespace("a").run("python3", ["-c", flows]);
    for (const spine of routers.slice(2)) {
      await eventually(async () =>
        expect(await totalOf(spine.socket, "routed_packets", { port: "s1" })).toBeGreaterThan(40),
      );
    }
    await net.namespace("s1").run("ip", ["link", "set", "s3", "down"]);
    await eventually(async () => {
      expect(await waysTo(first.socket, "10.2.0.0/24")).toEqual(["s4"]);
      expect(await waysTo(second.socket, "10.1.0.0/24")).toEqual(["s4"]);
    });
    expect(await ping(net, "a", "-c", "10", "-i", "0.05", "10.2.0.2")).toContain("10 received");
    await net.namespace("s1").run("ip", ["link", "set", "s3", "up"]);
    await eventually(async () => expect(await waysTo(first.socket, "10.2.0.0/24")).toEqual(both));
  });
});
