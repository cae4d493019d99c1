import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readlinkSync } from "node:fs";
import { afterEach, expect, it } from "vitest";
import { type Namespace, NetworkNamespace } from "../../src/host/namespace.js";
import { type LabLink, LabNetwork, type LabNode } from "../../src/host/veth.js";
import { eventually } from "../patience.js";
import { programFile } from "../programs/files.js";
import { describeLive } from "./capability.js";
import { kTestMarker, markedProcesses, namespacesHeld } from "./processes.js";

const host = (name: string): LabNode => ({ name, role: "host" });
const sw = (name: string): LabNode => ({ name, role: "switch" });

interface Device {
  ifname: string;
  mtu: number;
  address: string;
  flags: string[];
  txqlen: number;
}

/** Devices of a namespace besides lo. */
async function devices(namespace: Namespace): Promise<Device[]> {
  const { stdout } = await namespace.run("ip", ["-json", "link"]);
  return (JSON.parse(stdout) as Device[]).filter((device) => device.ifname !== "lo");
}

const open: { close(): void }[] = [];
afterEach(() => {
  for (const thing of open.splice(0)) thing.close();
});
async function create(nodes: LabNode[], links: LabLink[]): Promise<LabNetwork> {
  const network = await LabNetwork.create(nodes, links);
  open.push(network);
  return network;
}

describeLive("NetworkNamespace", () => {
  it("is another namespace than ours, empty, and without IPv6", async () => {
    const namespace = await NetworkNamespace.create();
    open.push(namespace);
    expect(readlinkSync(namespace.path)).toMatch(/^net:\[\d+\]$/);
    expect(readlinkSync(namespace.path)).not.toBe(readlinkSync("/proc/self/ns/net"));
    expect(await devices(namespace)).toEqual([]);
    expect((await namespace.run("cat", ["/proc/sys/net/ipv6/conf/default/disable_ipv6"])).stdout).toBe("1\n");
  });

  it("gives a program its input, and says how it failed", async () => {
    const namespace = await NetworkNamespace.create();
    open.push(namespace);
    expect((await namespace.run("cat", [], "hello")).stdout).toBe("hello");
    await expect(namespace.run("sh", ["-c", "echo no >&2; exit 3"])).rejects.toMatchObject({
      status: 3,
      stderr: "no\n",
    });
  });

  it("closes once, and lets nobody in afterwards", async () => {
    const namespace = await NetworkNamespace.create();
    const name = readlinkSync(namespace.path);
    namespace.close();
    namespace.close();
    expect(namespace.fd).toBe(-1);
    expect(() => namespace.path).toThrow("closed");
    expect(namespacesHeld()).not.toContain(name);
  });
});

describeLive("LabNetwork", () => {
  it("gives both ends of a link their MTU, addresses and names, up, without ARP", async () => {
    const network = await create(
      [host("h1"), sw("sw")],
      [{ from: "h1", to: "sw", mtu: 4200, fromMac: 0x0257_4500_0001, toMac: 0x0257_5300_0002 }],
    );
    const [h1] = await devices(network.namespace("h1"));
    const [port] = await devices(network.namespace("sw"));
    expect(h1).toMatchObject({ ifname: "weir0", mtu: 4200, address: "02:57:45:00:00:01", txqlen: 1000 });
    expect(port).toMatchObject({ ifname: "h1", mtu: 4200, address: "02:57:53:00:00:02" });
    for (const device of ["h1", "sw"]) {
      // The kernel tells of its carrier a moment later.
      await eventually(async () => {
        const [{ flags } = { flags: [] }] = await devices(network.namespace(device));
        expect(flags).toEqual(expect.arrayContaining(["NOARP", "UP", "LOWER_UP"]));
        expect(flags).not.toContain("MULTICAST");
        expect(flags).not.toContain("NO-CARRIER");
      });
    }
    expect(network.end(0, "h1")).toEqual({ interface: "weir0", namespaceFd: network.namespace("h1").fd });
    expect(network.end(0, "sw")).toEqual({ interface: "h1", namespaceFd: network.namespace("sw").fd });
  });

  it("keeps quiet: no frame but ours crosses a link", async () => {
    const network = await create([host("h1"), host("h2")], [{ from: "h1", to: "h2", mtu: 1500 }]);
    const { stdout } = await network.namespace("h1").run("cat", ["/proc/net/dev"]);
    expect(stdout).toMatch(/weir0:(\s+0){16}\s*$/m);
  });

  it("makes interface names that the kernel takes, unique in each namespace", async () => {
    const peers = [
      "a",
      "dev",
      "lo",
      "all",
      "-x",
      "t.o/p o:f",
      "very-long-name-of-a-host-1",
      "very-long-name-of-a-host-2",
    ];
    const network = await create(
      [sw("sw"), ...peers.map(host)],
      peers.map((peer) => ({ from: "sw", to: peer, mtu: 1500 })),
    );
    const names = (await devices(network.namespace("sw"))).map((device) => device.ifname);
    expect(new Set(names)).toEqual(new Set(peers.map((_, i) => network.end(i, "sw").interface)));
    expect(names).toEqual(
      expect.arrayContaining(["a", "dev", "lo0", "all0", "_x", "t_o_p_o_f", "very-long-name-", "very-long-na0"]),
    );
  });

  it("builds 45 links", async () => {
    const hosts = Array.from({ length: 40 }, (_, i) => host(`h${i}`));
    const switches = Array.from({ length: 5 }, (_, i) => sw(`sw${i}`));
    const links: LabLink[] = [
      ...hosts.map(({ name }, i) => ({ from: name, to: `sw${i % 5}`, mtu: 1500 })),
      ...switches.map(({ name }, i) => ({ from: name, to: `sw${(i + 1) % 5}`, mtu: 1500 })),
    ];
    const network = await create([...hosts, ...switches], links);
    for (let i = 0; i < 5; i++) expect(await devices(network.namespace(`sw${i}`))).toHaveLength(10);
  });

  it("leaves nothing when it cannot be built", async () => {
    const before = namespacesHeld();
    const links = [
      { from: "h1", to: "sw", mtu: 1500 },
      { from: "h2", to: "sw", mtu: 1 },
    ];
    await expect(LabNetwork.create([host("h1"), host("h2"), sw("sw")], links)).rejects.toThrow(/ip|nsenter/);
    expect([...namespacesHeld()].filter((name) => !before.has(name))).toEqual([]);
  });

  it("leaves nothing after SIGKILL, not even while it is being built", async () => {
    for (const moment of ["building", "built"]) {
      const marker = randomUUID();
      const child = spawn(process.execPath, [programFile("lab_holder")], {
        env: { ...process.env, [kTestMarker]: marker },
      });
      await line(child, moment);
      expect(markedProcesses(marker)).not.toEqual([]);
      child.kill("SIGKILL");
      await once(child, "exit");
      // Its children end by themselves, and only processes hold its namespaces.
      await eventually(() => expect(markedProcesses(marker)).toEqual([]));
    }
  });
});

/** Waits for a line that starts with `text`, and gives the rest of it. */
async function line(child: ChildProcessWithoutNullStreams, text: string): Promise<string> {
  let output = "";
  for await (const chunk of child.stdout) {
    output += chunk;
    const found = output.split("\n").find((candidate) => candidate.startsWith(text));
    if (found !== undefined) return found.slice(text.length);
  }
  throw new Error(`the child ended: ${output}`);
}
