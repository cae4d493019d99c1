/** RoCEv2 in super-frames: what arrives is what was sent, and every packet is counted, whoever takes them whole or cuts them. */
import { createHash, randomFillSync } from "node:crypto";
import { afterEach, expect, it } from "vitest";
import { Fabric, type FabricOptions } from "../../bench/dataplane/fabric.js";
import { describeLive } from "./capability.js";
import { connected, type Side, transfer } from "./verbs_pair.js";

const kBytes = 4 << 20;
const kMessage = 64 << 10;

const sha256 = ({ bytes }: Side) => createHash("sha256").update(bytes).digest("hex");
const run = (host: "a" | "b" | "sw", ...command: string[]): FabricOptions => ({
  prepare: async (links) => {
    const [program = "", ...words] = command;
    await links.namespace(host).run(program, words);
  },
});

describeLive("super-frames", () => {
  let fabric: Fabric | undefined;
  afterEach(() => fabric?.close());

  /** Writes and reads; what both ends and the switch have counted. */
  async function exchange(options: FabricOptions) {
    fabric = await Fabric.create(options);
    const { a, b } = await connected(fabric, { memory: kBytes });
    randomFillSync(a.bytes);
    await transfer(a, "rdma_write", b, kMessage);
    expect(sha256(b)).toBe(sha256(a));
    const read = sha256(a);
    a.bytes.fill(0);
    await transfer(a, "rdma_read", b, kMessage);
    expect(sha256(a)).toBe(read);
    return { a: fabric.a.counters(), b: fabric.b.counters(), network: fabric };
  }

  it("pass a switch without rates whole", async () => {
    const { a, b, network } = await exchange({});
    const through = network.counters();
    expect(a.get("tx_super_frames")).toBeGreaterThan(0);
    expect(b.get("tx_super_frames")).toBeGreaterThan(0);
    expect(a.get("rx_super_frames")).toBeGreaterThan(0);
    expect(b.get("rx_super_frames")).toBeGreaterThan(0);
    expect(through.get("gso_passed")).toBeGreaterThan(0);
    // Packets, all of them: the last acknowledgement may still be on its way.
    await expect
      .poll(() => (network.b.counters().get("rx_packets") ?? 0) - (network.a.counters().get("tx_packets") ?? 0))
      .toBe(0);
    await expect
      .poll(() => (network.a.counters().get("rx_packets") ?? 0) - (network.b.counters().get("tx_packets") ?? 0))
      .toBe(0);
    expect(network.a.counters().get("rx_icrc_encapsulated")).toBe(0);
    expect(network.b.counters().get("rx_icrc_encapsulated")).toBe(0);
    expect(2 * (kBytes / 4096)).toBeLessThanOrEqual(network.b.counters().get("rx_packets") ?? 0);
  });

  it("are cut for ports with a rate", async () => {
    const { a, network } = await exchange({ port: { rate: "2Gbps" } });
    expect(a.get("tx_super_frames")).toBeGreaterThan(0);
    expect(network.counters().get("gso_segmented")).toBeGreaterThan(0);
    expect(network.counters().get("gso_passed")).toBe(0);
    const sums = network.counters();
    const dropped = [...sums].reduce((sum, [name, value]) => sum + (name.startsWith("drop_") ? value : 0), 0);
    await expect
      .poll(() => (network.counters().get("rx_packets") ?? 0) - (network.counters().get("tx_packets") ?? 0))
      .toBe(dropped);
  });

  it("are cut by the kernel for an interface that cannot", async () => {
    const { a, b } = await exchange(run("a", "ethtool", "-K", "weir0", "tx", "off"));
    expect(a.get("tx_super_frames")).toBeGreaterThan(0);
    expect(b.get("rx_icrc_encapsulated")).toBe(0);
    expect(b.get("drop_malformed")).toBe(0);
  });

  it("lose packets one by one where a link loses some", async () => {
    const { a, b } = await exchange({
      device: {
        impairment: { loss: 0.02, duplicate: 0.01, corrupt: 0.01, reorder: 0.01, jitter: 0, reorder_delay: 100_000 },
      },
    });
    expect(a.get("tx_super_frames")).toBeGreaterThan(0);
    expect(b.get("rx_icrc_encapsulated")).toBeGreaterThan(0);
  });

  it("are not of a device with a rate below 10 Gb/s", async () => {
    const { a, b } = await exchange({ device: { rate: "5Gbps" } });
    expect(a.get("tx_super_frames")).toBe(0);
    expect(b.get("tx_super_frames")).toBe(0);
  });
});
