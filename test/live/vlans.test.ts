/** VLANs of a config_db.json on real frames: kernels' hosts without tags, one behind a trunk, and a port that routes. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import type { LabNetwork } from "../../src/host/veth.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import { daemon, network, weir } from "./daemons.js";
import { folder } from "./weir.js";

const kPorts = { Ethernet0: "a", Ethernet4: "b", Ethernet8: "c", Ethernet12: "d" };
const up = { speed: "1000", admin_status: "up" };

/** a is in VLAN 10, b in VLAN 20, c has both with their tags, d is routed. c has a NIC of VLAN 10. */
const kConfig = {
  PORT: Object.fromEntries(Object.keys(kPorts).map((port) => [port, up])),
  VLAN: { Vlan10: { vlanid: "10" }, Vlan20: { vlanid: "20" } },
  VLAN_MEMBER: {
    "Vlan10|Ethernet0": { tagging_mode: "untagged" },
    "Vlan20|Ethernet4": { tagging_mode: "untagged" },
    "Vlan10|Ethernet8": { tagging_mode: "tagged" },
    "Vlan20|Ethernet8": { tagging_mode: "tagged" },
  },
  VLAN_INTERFACE: { Vlan10: {}, "Vlan10|10.10.0.1/24": {}, Vlan20: {}, "Vlan20|10.20.0.1/24": {} },
  INTERFACE: { Ethernet12: {}, "Ethernet12|10.30.0.0/31": {} },
};

async function addresses(net: LabNetwork): Promise<void> {
  const ip = async (host: string, ...lines: string[]) =>
    net.namespace(host).run("ip", ["-batch", "-"], `${lines.join("\n")}\n`);
  const gateway = (vlan: number) => `route add default via 10.${vlan}.0.1`;
  await ip("a", "address flush dev weir0", "address add 10.10.0.2/24 dev weir0", gateway(10));
  await ip("b", "address flush dev weir0", "address add 10.20.0.3/24 dev weir0", gateway(20));
  await ip("d", "address flush dev weir0", "address add 10.30.0.1/31 dev weir0", "route add default via 10.30.0.0");
  await ip("c", "address flush dev weir0", "address add 10.10.0.44/24 dev weir0");
}

/** A NIC with the tag of VLAN 10 at c, which asks for an address that nobody has. */
async function startTagged(net: LabNetwork, path: string): Promise<void> {
  const [file, socket] = [join(path, "c.yaml"), join(path, "c.sock")];
  writeFileSync(
    file,
    `name: c
interface: weir0
namespace: ${net.namespace("c").path}
address: 10.10.0.4
vlan: 10
rate: 100Mbps
peers: [{ name: nobody, address: 10.10.0.99 }]
queue_pairs: [{ name: q, peer: nobody, send: { rate: 1Mbps } }]
metrics: false
control: ${socket}
`,
  );
  await daemon("nic", file, socket);
}

describeLive("weir switch --sonic with VLANs", () => {
  it("separates them, has their tags where they belong, and routes between them", async () => {
    const net = await network(["a", "b", "c", "d"]);
    await addresses(net);
    const path = folder();
    const [file, socket] = [join(path, "config_db.json"), join(path, "sw.sock")];
    const write = (config: object) => writeFileSync(file, JSON.stringify(config));
    write(kConfig);
    const map = Object.entries(kPorts).map(([port, host]) => `${port}=${host}`);
    const inside = net.namespace("sw").path;
    const set = ["metrics=false", `control=${socket}`, ...map.map((_, i) => `ports.${i}.namespace=${inside}`)];
    const options = ["--map", map.join(","), ...set.flatMap((one) => ["--set", one])];
    const running = weir("switch", "--sonic", file, ...options);
    await eventually(async () => ask(socket, "ports"));

    const reaches = async (from: string, ...to: string[]) => {
      const { stdout } = await net
        .namespace(from)
        .run("sh", ["-c", `ping -n -c 3 -i 0.05 -W 2 ${to.join(" ")} 2>&1 || true`]);
      return Number(/(\d+) received/.exec(stdout)?.[1]);
    };
    const dropped = async (name: string, port: string) => {
      const { counters } = await ask(socket, "counters");
      return counters.find((one) => one.name === name && one.labels.port === port)?.value ?? 0;
    };

    await startTagged(net, path);

    // Within a VLAN, from a port without its tag to one that has it, and back.
    await eventually(async () => expect(await reaches("a", "10.10.0.4")).toBe(3));
    // The router passes packets between them and to the port that routes.
    expect(await reaches("a", "10.20.0.3")).toBe(3);
    expect(await reaches("b", "10.10.0.4")).toBe(3);
    expect(await reaches("b", "10.30.0.1")).toBe(3);
    expect(await reaches("d", "10.10.0.2")).toBe(3);
    // Without the router they do not pass: b is not in a's VLAN, although it has an address there now.
    await net.namespace("b").run("ip", ["address", "add", "10.10.0.33/24", "dev", "weir0"]);
    expect(await reaches("a", "10.10.0.33")).toBe(0);
    // c has no VLAN without a tag.
    expect(await reaches("c", "10.10.0.2")).toBe(0);
    expect(await dropped("drop_vlan_untagged", "Ethernet8")).toBeGreaterThan(0);
    expect(await dropped("drop_vlan_not_member", "Ethernet8")).toBe(0);

    // SIGHUP puts a port into another VLAN.
    const { "Vlan20|Ethernet4": _, "Vlan10|Ethernet8": _tagged, ...others } = kConfig.VLAN_MEMBER;
    write({ ...kConfig, VLAN_MEMBER: { ...others, "Vlan10|Ethernet4": { tagging_mode: "untagged" } } });
    running.child.kill("SIGHUP");
    await eventually(async () => expect(await reaches("a", "10.10.0.33")).toBe(3));
    // c's NIC, which goes on asking, is in one whose tag its port does not take any more.
    await eventually(async () => expect(await dropped("drop_vlan_not_member", "Ethernet8")).toBeGreaterThan(0));
    running.child.kill("SIGTERM");
    expect((await running.finished).status).toBe(0);
  });
});
