/** A switch whose control plane is the kernel of a namespace, on which iproute2 works. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { LabNetwork } from "../../src/host/veth.js";
import { count } from "../fixtures/counts.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { liveObstacle } from "./capability.js";
import { type Daemon, daemon } from "./daemons.js";
import { folder } from "./weir.js";

type Address = readonly [port: string, ...addresses: string[]];

/** A switch whose ports are named after the nodes behind them, with the kernel of namespace `k` and its number. */
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

const kernelRoutes = async (socket: string) => (await ask(socket, "routes")).filter(({ kind }) => kind === "kernel");
const kRoutes = 10_000;
/** Interval of a few pings, s: so long ping waits for the last answer, too, on a machine that may have other things to do. */
const kApart = "0.3";

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
    expect(await ping(net, "k1", "-c", "3", "-i", kApart, "10.1.0.2")).toContain("3 received");
    expect(await ping(net, "a", "-c", "3", "-i", kApart, "10.1.0.1")).toContain("3 received");
    expect(await ping(net, "a", "-c", "3", "-i", kApart, "fd00:1::1")).toContain("3 received");
    expect(await ping(net, "a", "-c", "3", "-i", kApart, "10.2.0.2")).toContain("3 received");
    await eventually(async () =>
      expect(await count(router, "kernel_rx_packets", { port: "a" })).toBeGreaterThanOrEqual(9),
    );
    await eventually(async () =>
      expect(await count(router, "kernel_tx_packets", { port: "a" })).toBeGreaterThanOrEqual(9),
    );

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
    expect(await ping(net, "a", "-c", "2", "-i", kApart, "10.255.0.1")).toContain("2 received");
    await ping(net, "a", "-c", "1", "-W", "1", "10.66.0.1");
    await eventually(async () => expect(await count(router, "drop_blackhole")).toBe(1));

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

    // However it ends, nothing of it is left in the kernel.
    router.child.kill("SIGKILL");
    await router.finished;
    await eventually(async () => expect((await kernel.run("ip", ["-o", "link"])).stdout).not.toContain(" a: "));
  });
});
