/** Verbs and the network around them: VLANs, addresses that the kernel has too, congestion control, faults. */
import { execFileSync } from "node:child_process";
import { randomFillSync } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { Fabric, type FabricOptions } from "../../bench/dataplane/fabric.js";
import type { Namespace } from "../../src/host/namespace.js";
import { connect } from "../../src/verbs/index.js";
import { describeLive } from "./capability.js";
import { connected, counted, perform, transfer } from "./verbs_pair.js";

const kMiB = 1 << 20;
const kEnableIpv6 = `
for scope in all default weir0; do echo 0 > /proc/sys/net/ipv6/conf/$scope/disable_ipv6; done
ip link set weir0 multicast on
ip address add fd00::2/64 dev weir0 nodad`;

/** Number of times that a namespace's kernel has told somebody that a destination is unreachable. */
async function unreachables(namespace: Namespace): Promise<number> {
  const { stdout } = await namespace.run("cat", ["/proc/net/snmp"]);
  const [names = [], values = []] = stdout
    .split("\n")
    .filter((line) => line.startsWith("Icmp:"))
    .map((line) => line.split(" "));
  const v4 = Number(values[names.indexOf("OutDestUnreachs")]);
  const v6 = /^Icmp6OutDestUnreachs\s+(\d+)/m.exec((await namespace.run("cat", ["/proc/net/snmp6"])).stdout)?.[1];
  return v4 + Number(v6 ?? 0);
}

describeLive("verbs in the network", () => {
  let fabric: Fabric | undefined;
  const build = async (options: FabricOptions) => {
    fabric = await Fabric.create(options);
    return fabric;
  };
  afterEach(() => fabric?.close());

  it.each(["10.0.0.2", "fd00::2"])("are in a VLAN, with what resolves %s and connects to it", async (address) => {
    const network = await build({ device: { vlan: 10 } });
    const { a, b } = await connected(network, { address });
    randomFillSync(a.bytes);
    await transfer(a, "rdma_write", b, 16_384);
    expect(b.bytes.equals(a.bytes)).toBe(true);
    await a.connection.disconnect();
    // The switch has not seen a frame without the tag.
    const learned = network.forwardingTable().map(({ mac, vlan }) => ({ mac, vlan }));
    expect(learned.sort((x, y) => x.mac - y.mac)).toEqual(
      [network.a.mac, network.b.mac].sort((x, y) => x - y).map((mac) => ({ mac, vlan: 10 })),
    );
  });

  it("answer pings at addresses that the kernel does not have, however busy the event loop is", async () => {
    const pinged = ["10.0.0.2"];
    const network = await build({
      prepare: async (links) => {
        const host = links.namespace("a");
        await host.run("ip", ["link", "set", "weir0", "arp", "on"]);
        await host.run("ip", ["address", "add", "10.0.0.9/24", "dev", "weir0"]);
        const hasIpv6 = await host.run("sh", ["-ec", kEnableIpv6.replace("fd00::2", "fd00::9")]).catch(() => undefined);
        if (hasIpv6 !== undefined) pinged.push("fd00::2");
      },
    });
    for (const address of pinged) {
      // No JavaScript runs meanwhile: the NIC's worker answers, ARP and neighbour discovery as well.
      const inside = [`--net=${network.network.namespace("a").path}`, "ping", "-q", "-c", "20", "-i", "0.01", address];
      const stdout = execFileSync("nsenter", inside, { encoding: "utf8" });
      expect(stdout).toContain("20 packets transmitted, 20 received");
    }
    expect(network.b.counters().get("icmp_echo_replies")).toBe(20 * pinged.length);
    expect(network.b.counters().get("icmp_echo_limited")).toBe(0);
  });

  it("tell at once that a host has no RDMA", async () => {
    const network = await build({
      prepare: async (links) => {
        const host = links.namespace("b");
        await host.run("ip", ["link", "set", "weir0", "arp", "on"]);
        await host.run("ip", ["address", "add", "10.0.0.9/24", "dev", "weir0"]);
      },
    });
    const domain = network.a.allocateProtectionDomain();
    const queuePair = domain.createQueuePair({ sendCompletions: network.a.createCompletionQueue() });
    await expect(connect(network.a, { address: "10.0.0.9", port: 7000, queuePair })).rejects.toThrow(
      "no RoCEv2 responder at 10.0.0.9: port unreachable",
    );
  });

  it("share addresses with the kernel, which answers for them but not to RoCE", async () => {
    const addresses = ["10.0.0.2"];
    const network = await build({
      prepare: async (links) => {
        const host = links.namespace("b");
        await host.run("ip", ["link", "set", "weir0", "arp", "on"]);
        await host.run("ip", ["address", "add", "10.0.0.2/24", "dev", "weir0"]);
        // Some containers have /proc/sys read-only.
        const hasIpv6 = await host.run("sh", ["-ec", kEnableIpv6]).catch(() => undefined);
        if (hasIpv6 !== undefined) addresses.push("fd00::2");
      },
    });
    const kernel = network.network.namespace("b");
    for (const address of addresses) {
      const { a, b } = await connected(network, { address });
      randomFillSync(a.bytes);
      await transfer(a, "rdma_write", b, 16_384);
      expect(b.bytes.equals(a.bytes)).toBe(true);
      await a.connection.disconnect();
    }
    expect(await unreachables(kernel)).toBe(0);

    // Without the device on top the kernel would have answered.
    const { a, b } = await connected(network);
    const remote = b.memory.remote();
    network.b.close();
    a.queuePair.modify("reset");
    a.queuePair.modify("init");
    a.queuePair.modify("rtr", { route: { address: "10.0.0.2", mac: network.b.mac } });
    a.queuePair.modify("rts");
    a.queuePair.postSend({ opcode: "rdma_write", remote });
    await expect.poll(() => unreachables(kernel)).toBeGreaterThan(0);
  });

  describe("where the switch's port to the receiver is slow for their priority", () => {
    // Rates fall and do not recover meanwhile, so that what they fell to can be seen.
    const slow: FabricOptions = {
      port: { limits: { 3: { rate: "200Mbps" } } },
      switch: { ecn: { kmin: "5KB", kmax: "20KB", pmax: 1 } },
      device: {
        congestion: { parameters: { rpg_time_reset: "10s", rpg_byte_reset: 0, rpg_min_rate: "100Mbps" } },
      },
    };
    const kBytes = 2 * kMiB;

    it.each([
      ["the requester is paced when it writes", "rdma_write"],
      ["the responder is paced when it is read from", "rdma_read"],
    ] as const)("%s", async (_, opcode) => {
      const network = await build(slow);
      const { a, b } = await connected(network, { memory: kBytes });
      const [sender, receiver] = opcode === "rdma_write" ? [a, b] : [b, a];
      randomFillSync(sender.bytes);
      await transfer(a, opcode, b, kMiB / 4);
      expect(receiver.bytes.equals(sender.bytes)).toBe(true);
      await counted(receiver.device, "np_ecn_marked_roce_packets");
      await counted(receiver.device, "np_cnp_sent");
      await counted(sender.device, "rp_cnp_handled");
      const states = sender.device.queuePairStates().filter(({ qpn }) => qpn === sender.queuePair.qpn);
      expect(states).toEqual([expect.objectContaining({ limited: true })]);
      expect(states[0]?.rate).toBeLessThan(sender.device.rate / 4);
      expect(sender.device.counters().get("np_cnp_sent")).toBe(0);
    });
  });

  it.each(["go-back-n", "selective-repeat"] as const)("lose nothing to a faulty network, by %s", async (recovery) => {
    const network = await build({
      port: { impairment: { loss: "1%", reorder: "1%", reorder_delay: "100us", duplicate: "1%" } },
      switch: { ecn: { enabled: false } },
      device: { congestion: { algorithm: "none" } },
    });
    // 134 ms: a busy machine must not be taken for a dead peer.
    const attributes = { recovery, timeout: 15 };
    const { a, b } = await connected(network, { memory: 4 * kMiB, attributes });
    randomFillSync(a.bytes);
    const wanted = Buffer.from(a.bytes);
    await transfer(a, "rdma_write", b, kMiB / 2);
    expect(b.bytes.equals(wanted)).toBe(true);
    a.bytes.fill(0);
    await transfer(a, "rdma_read", b, kMiB / 2);
    expect(a.bytes.equals(wanted)).toBe(true);
    // An atomic that is sent again is not done again.
    const word = new BigUint64Array(b.memory.buffer, 0, 1);
    word[0] = 0n;
    const local = { region: a.memory };
    for (let i = 1; i <= 30; i++) {
      await perform(a.queuePair, { opcode: "atomic_fetch_and_add", local, remote: b.memory.remote(), add: 1n });
      expect(word[0]).toBe(BigInt(i));
    }
    expect(network.counters().get("lost")).toBeGreaterThan(0);
    await counted(a.device, "retransmitted");
  });

  it("repeats a request in vain as often as was said", async () => {
    const network = await build({});
    const { a, b } = await connected(network, { attributes: { timeout: 8 } });
    const remote = b.memory.remote();
    b.queuePair.destroy();
    const { queuePair } = a;
    await perform(queuePair, { opcode: "rdma_write", remote }, "retry_exc_err");
    expect(queuePair.state).toBe("error");
  });
});
