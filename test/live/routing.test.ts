/** Two switches that route between three subnets: the kernel's ping of both IP versions, and RoCEv2 of NICs with a gateway. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { LabNetwork } from "../../src/host/veth.js";
import { count } from "../fixtures/counts.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import { daemon, weir } from "./daemons.js";
import { folder } from "./weir.js";

const kMarking = "ecn: { kmin: 20KB, kmax: 80KB, pmax: 0.1 }";

/** a at 10.1.0.0/24 of switch s1, b at 10.2.0.0/24 of s2, and 10.9.0.0/24 between the switches; fd00:1:: and so on. */
async function fabric(bottleneck = "1Gbps", workers = 1, marking = kMarking) {
  const net = await LabNetwork.create(
    [
      { name: "a", role: "host" },
      { name: "b", role: "host" },
      { name: "s1", role: "switch" },
      { name: "s2", role: "switch" },
    ],
    [
      { from: "a", to: "s1", mtu: 1500, fromMac: 0x02_57_00_00_00_0a },
      { from: "b", to: "s2", mtu: 1500, fromMac: 0x02_57_00_00_00_0b },
      { from: "s1", to: "s2", mtu: 1500, fromMac: 0x02_57_00_00_00_0c },
    ],
  );
  onTestFinished(() => net.close());
  const path = folder();
  const start = (own: string, number: number, host: string, other: string, rate: string) => {
    const socket = join(path, `${own}.sock`);
    const file = join(path, `${own}.yaml`);
    const namespace = net.namespace(own).path;
    const beyond = 3 - number;
    writeFileSync(
      file,
      `name: ${own}
ports:
  - { interface: ${host}, namespace: ${namespace}, rate: ${rate} }
  - { interface: ${other}, namespace: ${namespace}, rate: 1Gbps, worker: ${workers - 1} }
workers: [${Array(workers).fill("{}").join(", ")}]
${marking}
router:
  mac: "02:57:52:00:00:0${number}"
  interfaces:
    - { port: ${host}, address: [10.${number}.0.1/24, "fd00:${number}::1/64"] }
    - { port: ${other}, address: [10.9.0.${number}/24, "fd00:9::${number}/64"] }
  routes:
    - { to: 10.${beyond}.0.0/24, via: 10.9.0.${beyond} }
    - { to: "fd00:${beyond}::/64", via: "fd00:9::${beyond}" }
    - { to: 10.88.0.0/16, via: 10.9.0.${beyond} }
control: ${socket}
metrics: false
`,
    );
    return daemon("switch", file, socket);
  };
  const [first, second] = await Promise.all([
    start("s1", 1, "a", "s2", "1Gbps"),
    start("s2", 2, "b", "s1", bottleneck),
  ]);
  return { net, path, first, second };
}

/** Starts the NIC of host `n`, which sends to the other one's, or is sent to. */
function startNic(net: LabNetwork, path: string, host: string, n: number, congestion: string, send = "") {
  const [socket, file] = [join(path, `nic-${host}.sock`), join(path, `nic-${host}.yaml`)];
  writeFileSync(
    file,
    `name: nic-${host}
interface: weir0
namespace: ${net.namespace(host).path}
address: 10.${n}.0.2
gateway: { address: 10.${n}.0.1, prefix: 24 }
rate: 1Gbps
${congestion}
peers: [{ name: peer, address: 10.${3 - n}.0.2 }]
queue_pairs: [{ name: qp, peer: peer${send} }]
control: ${socket}
metrics: false
`,
  );
  return daemon("nic", file, socket);
}

async function addresses(net: LabNetwork): Promise<void> {
  for (const [host, n] of [
    ["a", 1],
    ["b", 2],
  ] as const) {
    const lines = [
      "link set dev weir0 arp on multicast on",
      `address add 10.${n}.0.2/24 dev weir0`,
      `address add fd00:${n}::2/64 dev weir0 nodad`,
      `route add default via 10.${n}.0.1`,
      `-6 route add default via fd00:${n}::1`,
    ];
    const on = "echo 0 > /proc/sys/net/ipv6/conf/weir0/disable_ipv6";
    await net.namespace(host).run("sh", ["-c", on]);
    for (const line of lines) await net.namespace(host).run("ip", line.split(" "));
  }
}

describeLive("switches that route", () => {
  const ways = "carry the kernel's traffic between subnets, answer for themselves, and tell who is not there";
  it.each([1, 2])(`${ways}: workers of each %i`, async (workers) => {
    const { net, first, second } = await fabric("1Gbps", workers);
    await addresses(net);
    const ping = async (...args: string[]) =>
      (await net.namespace("a").run("sh", ["-c", `ping -n -W 2 ${args.join(" ")} 2>&1 || true`])).stdout;
    expect(await ping("-c", "20", "-i", "0.1", "10.2.0.2")).toMatch(/20 received[\s\S]*/);
    expect(await ping("-c", "20", "-i", "0.1", "fd00:2::2")).toMatch(/20 received[\s\S]*/);
    expect(await ping("-c", "1", "10.2.0.2")).toContain("ttl=62");
    // The router answers at its own addresses, and hops tell of themselves, as traceroute needs it.
    expect(await ping("-c", "1", "10.1.0.1")).toContain("1 received");
    expect(await ping("-c", "1", "-t", "1", "10.2.0.2")).toMatch(/From 10\.1\.0\.1 .*Time to live exceeded/);
    expect(await ping("-c", "1", "-t", "2", "10.2.0.2")).toMatch(/From 10\.9\.0\.2 .*Time to live exceeded/);
    expect(await ping("-c", "1", "-t", "1", "fd00:2::2")).toMatch(/From fd00:1::1 .*Hop limit/);
    expect(await ping("-c", "1", "10.77.0.1")).toMatch(/From 10\.1\.0\.1 .*Net Unreachable/i);
    await eventually(async () => expect(await count(first, "drop_ttl_expired")).toBe(2));
    await eventually(async () => expect(await count(second, "drop_ttl_expired")).toBe(1));
    await eventually(async () => expect(await count(first, "drop_ip_no_route")).toBe(1));
    await eventually(async () => expect(await count(second, "routed_packets")).toBeGreaterThanOrEqual(80));
    // Each of them takes the other for the way: frames go 63 times between them, then the sender is told.
    expect(await ping("-c", "1", "10.88.0.1")).toMatch(/From 10\.9\.0\.2 .*Time to live exceeded/);
    // A worker's counters are told a moment later.
    await eventually(async () => expect(await count(second, "drop_ttl_expired")).toBe(2));

    const neighbors = await ask(first.socket, "neighbors");
    expect(neighbors).toContainEqual(
      expect.objectContaining({ address: "10.1.0.2", mac: "02:57:00:00:00:0a", port: "a", state: "reachable" }),
    );
    expect(neighbors).toContainEqual(
      expect.objectContaining({ address: "10.9.0.2", mac: "02:57:52:00:00:02", port: "s2", state: "reachable" }),
    );
    const show = async (view: string) => (await weir("show", view, "--socket", first.socket).finished).stdout;
    const shown = await show("routes");
    expect(shown).toMatch(/10\.2\.0\.0\/24\s+static\s+10\.9\.0\.2\s+s2\s+1/);
    expect(shown).toMatch(/10\.1\.0\.0\/24\s+connected\s+-\s+a\s+1/);
    expect(await show("neighbors")).toContain("02:57:00:00:00:0a");
  });

  it.each([1, 2])("mark, pause and lose nothing of RoCEv2 between NICs with a gateway: workers %i", async (workers) => {
    // Headroom for what comes while a busy host does not let the one that is paused hear of it: 0.4 s at this rate.
    const patient = "buffer: { total: 64MB, mode: static, threshold: 100KB, headroom: 20MB, priorities: 1 }";
    const { net, path, second } = await fabric("100Mbps", workers, `${kMarking}\n${patient}`);
    const none = "congestion: { algorithm: none }";
    const receiver = await startNic(net, path, "b", 2, none);
    await startNic(net, path, "a", 1, none, ", send: { rate: 400Mbps }");
    await eventually(async () => {
      expect(await count(receiver, "rx_packets")).toBeGreaterThan(1000);
      // The egress to b is the bottleneck: it marks, and s1 is paused.
      expect(await count(second, "wred_ecn_marked_packets", { port: "b", priority: "3" })).toBeGreaterThan(0);
      expect(await count(second, "pfc_tx_transitions", { port: "s1", priority: "3" })).toBeGreaterThan(0);
    });
    await eventually(async () => expect(await count(receiver, "np_ecn_marked_roce_packets")).toBeGreaterThan(0));
    for (const name of [
      "drop_headroom_full",
      "drop_buffer_full",
      "drop_ip_header",
      "drop_martian",
      "drop_ip_no_route",
    ]) {
      expect(await count(second, name), name).toBe(0);
    }
  });

  it("slow a sender two hops away by CNMs that go by IP, all of which its NIC believes", async () => {
    const points = "ecn: { enabled: false }\nqcn: { enabled: true, notification: ip, cpQSp: 20KB, cpSampleBase: 10KB }";
    const { net, path, first, second } = await fabric("50Mbps", 2, points);
    const reaction = "congestion: { algorithm: qcn, profile: netfpga }\nqcn: { notification: ip }";
    await startNic(net, path, "b", 2, reaction);
    const sender = await startNic(net, path, "a", 1, reaction, ", send: { message: 1MB }");
    await eventually(async () => {
      expect(await count(sender, "rp_cnm_handled")).toBeGreaterThan(20);
      const [pair] = await ask(sender.socket, "queue_pairs");
      expect(pair).toMatchObject({ limited: true });
      expect(pair?.rate).toBeLessThan(150e6);
    });
    await eventually(async () =>
      expect(await count(second, "cn_cp_transmitted_cnms", { port: "b" })).toBeGreaterThan(20),
    );
    const refusals = (await ask(sender.socket, "counters")).counters.filter(
      ({ name, value }) => name.startsWith("rp_cnm_") && name !== "rp_cnm_handled" && value > 0,
    );
    expect(refusals).toEqual([]);
    for (const one of [first, second]) expect(await count(one, "drop_ip_no_route")).toBe(0);
  });
});
