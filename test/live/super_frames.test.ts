/** RoCEv2 in super-frames: what arrives is what was sent, and every packet is counted, whoever takes them whole or cuts them. */
import { createHash, randomFillSync } from "node:crypto";
import { afterEach, expect, it } from "vitest";
import { Fabric, type FabricOptions } from "../../bench/dataplane/fabric.js";
import type { Device } from "../../src/verbs/index.js";
import { describeLive } from "./capability.js";
import { connected, type Side, transfer } from "./verbs_pair.js";

const kBytes = 4 << 20;
const kMessage = 64 << 10;
const kSettledMs = 1000;

const sha256 = ({ bytes }: Side) => createHash("sha256").update(bytes).digest("hex");
const run = (host: "a" | "b" | "sw", ...command: string[]): FabricOptions => ({
  prepare: async (links) => {
    const [program = "", ...words] = command;
    await links.namespace(host).run(program, words);
  },
});

/** Counters of ports are brought up to date a few times a second. */
const happened = (device: Device, counter: string) =>
  expect.poll(() => device.counters().get(counter)).toBeGreaterThan(0);

const of = (device: Device, name: string) => device.counters().get(name) ?? 0;

/** Counts every packet, both ways; those of connection management are not the NIC's. */
async function allArrives({ a, b }: Fabric): Promise<void> {
  const missing = (from: Device, to: Device) => of(from, "tx_packets") - of(to, "rx_packets") + of(to, "rx_punted");
  await expect.poll(() => missing(a, b)).toBe(0);
  await expect.poll(() => missing(b, a)).toBe(0);
}

describeLive("super-frames", () => {
  let fabric: Fabric | undefined;
  afterEach(() => fabric?.close());

  /** Writes and reads; returns the counts of both ends and the switch. */
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
    return fabric;
  }

  it("pass a switch without rates whole", async () => {
    const network = await exchange({});
    for (const device of [network.a, network.b]) {
      await happened(device, "tx_super_frames");
      await happened(device, "rx_super_frames");
    }
    expect(network.counters().get("gso_passed")).toBeGreaterThan(0);
    await allArrives(network);
    expect(network.a.counters().get("rx_icrc_encapsulated")).toBe(0);
    expect(network.b.counters().get("rx_icrc_encapsulated")).toBe(0);
  });

  it("are cut for ports with a rate", async () => {
    const network = await exchange({ port: { rate: "2Gbps" } });
    await happened(network.a, "tx_super_frames");
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
    await happened(a, "tx_super_frames");
    expect(b.counters().get("rx_icrc_encapsulated")).toBe(0);
    expect(b.counters().get("drop_malformed")).toBe(0);
  });

  it("lose packets one by one where a link loses some", async () => {
    const { a, b } = await exchange({
      device: {
        impairment: { loss: 0.02, duplicate: 0.01, corrupt: 0.01, reorder: 0.01, jitter: 0, reorder_delay: 100_000 },
      },
    });
    await happened(a, "tx_super_frames");
    await happened(b, "rx_icrc_encapsulated");
  });

  it("bring the right bytes where a switch loses and reorders 5% of the packets", async () => {
    const network = await exchange({ port: { impairment: { loss: "5%", reorder: "5%", reorder_delay: "100us" } } });
    await happened(network.a, "tx_super_frames");
    expect(network.counters().get("lost")).toBeGreaterThan(0);
    expect(network.counters().get("reordered")).toBeGreaterThan(0);
  });

  it("are marked and paused packet by packet: each mark, CNP, pause and packet is found at the other end", async () => {
    const network = await exchange({
      port: { rate: "2Gbps" },
      switch: {
        ecn: { kmin: "20KB", kmax: "200KB", pmax: "10%" },
        buffer: { mode: "static", threshold: "30KB", headroom: "2MB", priorities: 1 },
      },
    });
    const { a, b } = network;
    const switched = (name: string) => network.counters().get(name) ?? 0;
    const both = (...names: string[]) =>
      [a, b].reduce((sum, one) => names.reduce((all, name) => all + of(one, name), sum), 0);
    await happened(a, "tx_super_frames");
    expect(switched("gso_segmented")).toBeGreaterThan(0);
    await allArrives(network);
    await expect.poll(() => switched("tx_packets") - switched("rx_packets")).toBe(0);
    const dropped = [...network.counters()].filter(([name, value]) => /drop/.test(name) && value > 0);
    expect(dropped).toEqual([]);
    expect(switched("wred_ecn_marked_packets")).toBeGreaterThan(0);
    await expect.poll(() => both("np_ecn_marked_roce_packets") - switched("wred_ecn_marked_packets")).toBe(0);
    expect(both("np_cnp_sent")).toBeGreaterThan(0);
    await expect.poll(() => both("rp_cnp_handled", "rp_cnp_ignored") - both("np_cnp_sent")).toBe(0);
    expect(switched("pfc_tx_transitions")).toBeGreaterThan(0);
    await expect.poll(() => both("rx_pfc_frames") - switched("tx_pfc_frames")).toBe(0);
    await expect.poll(() => both("rx_prio_pause_transition") - switched("pfc_tx_transitions")).toBe(0);
  });

  it("are not of a device with a rate below 10 Gb/s", async () => {
    const { a, b } = await exchange({ device: { rate: "5Gbps" } });
    await happened(a, "tx_packets");
    await new Promise((resolve) => setTimeout(resolve, kSettledMs));
    for (const device of [a, b]) expect(device.counters().get("tx_super_frames")).toBe(0);
  });
});
