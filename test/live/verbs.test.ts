/** Operations of verbs between two devices through a switch: data arrives, and completions tell of it. */
import { randomFillSync } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Fabric } from "../../bench/dataplane/fabric.js";
import { addressText } from "../../src/wire/address.js";
import { describeLive } from "./capability.js";
import { connected, counted, perform, type Side } from "./verbs_pair.js";

const kAddresses = { IPv4: ["10.0.0.1", "10.0.0.2"], IPv6: ["fd00::1", "fd00::2"] } as const;

describeLive("verbs", () => {
  let fabric: Fabric;
  beforeAll(async () => {
    fabric = await Fabric.create();
  });
  afterAll(() => fabric?.close());

  describe.each(["IPv4", "IPv6"] as const)("on a reliable connection over %s", (version) => {
    let a: Side;
    let b: Side;
    beforeAll(async () => {
      ({ a, b } = await connected(fabric, { address: kAddresses[version][1] }));
    });

    it("connects by the addresses that were given", () => {
      expect(a.connection).toMatchObject({ remoteAddress: kAddresses[version][1], remoteQpn: b.queuePair.qpn });
      expect(b.connection).toMatchObject({ remoteAddress: kAddresses[version][0], remoteQpn: a.queuePair.qpn });
      expect([a, b].map(({ queuePair }) => queuePair.state)).toEqual(["rts", "rts"]);
      expect(a.connection.pathMtu).toBe(4096);
    });

    // Lengths around the path MTU, and those that need padding.
    it.each([0, 1, 3, 4095, 4096, 4097, 50_001])("writes and reads %i bytes", async (length) => {
      randomFillSync(a.bytes);
      b.bytes.fill(0);
      const remote = b.memory.remote(100);
      const local = { region: a.memory, offset: 7, length };
      await perform(a.queuePair, { opcode: "rdma_write", id: 1, local, remote });
      expect(b.bytes.subarray(100, 100 + length).equals(a.bytes.subarray(7, 7 + length))).toBe(true);
      // Nothing around it has changed.
      expect(b.bytes.subarray(0, 100).every((byte) => byte === 0)).toBe(true);
      expect(b.bytes.subarray(100 + length).every((byte) => byte === 0)).toBe(true);

      const wanted = Buffer.from(a.bytes.subarray(7, 7 + length));
      a.bytes.fill(0);
      const { byteLength } = await perform(a.queuePair, { opcode: "rdma_read", id: 2, local, remote });
      expect(byteLength).toBe(length);
      expect(a.bytes.subarray(7, 7 + length).equals(wanted)).toBe(true);
      expect(a.bytes.subarray(7 + length).every((byte) => byte === 0)).toBe(true);
    });

    it("sends messages into the buffers that were posted, in order", async () => {
      const half = { offset: 0, length: 10_000 };
      b.queuePair.postReceive(
        { id: 11, local: { region: b.memory, ...half } },
        { id: 12, local: { region: b.memory, offset: 10_000, length: 10_000 } },
        { id: 13 },
      );
      a.bytes.fill("first", 0, 5).fill("second", 5, 11);
      a.queuePair.postSend(
        { opcode: "send", local: { region: a.memory, length: 5 }, signaled: false },
        { opcode: "send_with_imm", local: { region: a.memory, offset: 5, length: 6 }, immediate: 0xfedc_ba98 },
        { opcode: "rdma_write_with_imm", id: 3, remote: b.memory.remote(), immediate: 0 },
      );
      const received = b.queuePair.receiveCompletions;
      expect(await received.next()).toEqual({
        id: 11,
        status: "success",
        opcode: "recv",
        byteLength: 5,
        times: 1,
        queuePair: b.queuePair,
      });
      expect(await received.next()).toMatchObject({ id: 12, byteLength: 6, immediate: 0xfedc_ba98 });
      expect(await received.next()).toMatchObject({ id: 13, opcode: "recv_rdma_with_imm", immediate: 0 });
      expect(b.bytes.toString("latin1", 0, 5)).toBe("first");
      expect(b.bytes.toString("latin1", 10_000, 10_006)).toBe("second");
      // The unsignaled request is done with, too.
      expect(await a.queuePair.sendCompletions.next()).toMatchObject({ opcode: "send_with_imm" });
      expect(await a.queuePair.sendCompletions.next()).toMatchObject({ id: 3 });
      expect(a.queuePair.sendRoom).toBe(a.queuePair.sendDepth);
      expect(b.queuePair.receiveRoom).toBe(b.queuePair.receiveDepth);
    });

    it("does atomics", async () => {
      const word = new BigUint64Array(b.memory.buffer, 64, 1);
      const before = new BigUint64Array(a.memory.buffer, 0, 1);
      const remote = b.memory.remote(64);
      const local = { region: a.memory };
      word[0] = 2n ** 64n - 1n;
      await perform(a.queuePair, { opcode: "atomic_fetch_and_add", local, remote, add: 6n });
      expect([before[0], word[0]]).toEqual([2n ** 64n - 1n, 5n]);
      await perform(a.queuePair, { opcode: "atomic_cmp_and_swp", local, remote, compare: 5n, swap: 2n ** 63n });
      expect([before[0], word[0]]).toEqual([5n, 2n ** 63n]);
      await perform(a.queuePair, { opcode: "atomic_cmp_and_swp", local, remote, compare: 5n, swap: 1n });
      expect([before[0], word[0]]).toEqual([2n ** 63n, 2n ** 63n]);
    });

    it("moves what is in the memory at the time, not a copy", async () => {
      const remote = b.memory.remote();
      for (const text of ["once", "more"]) {
        a.bytes.write(text);
        await perform(a.queuePair, { opcode: "rdma_write", local: { region: a.memory, length: 4 }, remote });
        expect(b.bytes.toString("latin1", 0, 4)).toBe(text);
      }
      b.bytes.write("here");
      await perform(a.queuePair, { opcode: "rdma_read", local: { region: a.memory, length: 4 }, remote });
      expect(a.bytes.toString("latin1", 0, 4)).toBe("here");
    });
  });

  it("takes a key away with SEND with invalidate", async () => {
    const { a, b } = await connected(fabric);
    const region = b.domain.registerMemory(64, ["local_write", "remote_write", "remote_invalidate"]);
    const write = { opcode: "rdma_write", local: { region: a.memory, length: 8 }, remote: region.remote() } as const;
    await perform(a.queuePair, write);
    b.queuePair.postReceive({ id: 1 });
    await perform(a.queuePair, { opcode: "send_with_inv", invalidateKey: region.key });
    expect(await b.queuePair.receiveCompletions.next()).toMatchObject({ id: 1, invalidatedKey: region.key });
    await perform(a.queuePair, write, "rem_access_err");
  });

  it("waits for a receiver that is not ready", async () => {
    const { a, b } = await connected(fabric);
    a.bytes.write("late");
    a.queuePair.postSend({ opcode: "send", local: { region: a.memory, length: 4 } });
    await counted(fabric.a, "rnr_nak_retry_err");
    b.queuePair.postReceive({ local: { region: b.memory } });
    expect(await a.queuePair.sendCompletions.next()).toMatchObject({ status: "success" });
    expect(await b.queuePair.receiveCompletions.next()).toMatchObject({ byteLength: 4 });
    expect(b.bytes.toString("latin1", 0, 4)).toBe("late");
  });

  describe("to memory that the peer may not touch", () => {
    const kCases: [string, (b: Side) => { address: bigint; key: number }][] = [
      ["a wrong key", (b) => ({ ...b.memory.remote(), key: (b.memory.key ^ 0xff00) >>> 0 })],
      ["an address behind the end", (b) => b.memory.remote(b.memory.byteLength - 7)],
      ["an address before the start", (b) => b.memory.remote(-1)],
      ["an address at the end of all", (b) => ({ ...b.memory.remote(), address: 2n ** 64n - 1n })],
      ["a region that is only read", (b) => b.domain.registerMemory(64, ["remote_read"]).remote()],
      ["a region of another protection domain", (b) => b.device.allocateProtectionDomain().registerMemory(64).remote()],
      [
        "a region that was given up",
        (b) => {
          const region = b.domain.registerMemory(64);
          region.deregister();
          return region.remote();
        },
      ],
    ];
    it.each(kCases)("%s: rem_access_err, and no byte changes", async (_, remote) => {
      const { a, b } = await connected(fabric);
      b.bytes.fill(0x55);
      a.bytes.fill(0xaa);
      const failures: string[] = [];
      a.queuePair.onError((status) => failures.push(status));
      const local = { region: a.memory, length: 8 };
      a.queuePair.postSend({ opcode: "rdma_write", id: 1, local, remote: remote(b) }, { opcode: "send", id: 2 });
      const completions = a.queuePair.sendCompletions;
      expect(await completions.next()).toMatchObject({ id: 1, status: "rem_access_err", opcode: "rdma_write" });
      expect(await completions.next()).toMatchObject({ id: 2, status: "wr_flush_err" });
      expect(b.bytes.every((byte) => byte === 0x55)).toBe(true);
      expect(a.queuePair.state).toBe("error");
      expect(failures).toEqual(["rem_access_err"]);
      await counted(fabric.a, "req_remote_access_errors");
    });
  });

  it("does not send from memory of another protection domain", async () => {
    const { a, b } = await connected(fabric);
    const region = a.device.allocateProtectionDomain().registerMemory(64);
    await perform(a.queuePair, { opcode: "rdma_write", local: { region }, remote: b.memory.remote() }, "loc_prot_err");
  });

  it.each([
    ["IPv4", 20],
    ["IPv6", 40],
  ] as const)("sends datagrams over %s", async (version, header) => {
    const [source, destination] = kAddresses[version];
    const make = (device: Fabric["a"]) => {
      const domain = device.allocateProtectionDomain();
      const memory = domain.registerMemory(8192);
      const queuePair = domain.createQueuePair({ type: "ud", sendCompletions: device.createCompletionQueue() });
      queuePair.modify("init", { queueKey: 0x1234_5678 });
      queuePair.modify("rtr");
      queuePair.modify("rts");
      return { memory, queuePair, bytes: Buffer.from(memory.buffer) };
    };
    const [a, b] = [make(fabric.a), make(fabric.b)];
    const to = { address: await fabric.a.createAddressHandle(destination), qpn: b.queuePair.qpn };
    const local = { region: a.memory, length: 4096 };
    randomFillSync(a.bytes);
    b.queuePair.postReceive({ id: 5, local: { region: b.memory } });
    // The SEND with the wrong key is dropped without a word.
    const wrong = { opcode: "send", id: 1, local, to: { ...to, queueKey: 1 } } as const;
    const right = {
      ...wrong,
      opcode: "send_with_imm",
      id: 2,
      immediate: 77,
      to: { ...to, queueKey: 0x1234_5678 },
    } as const;
    a.queuePair.postSend(wrong, right);
    for (const id of [1, 2]) expect(await a.queuePair.sendCompletions.next()).toMatchObject({ id, status: "success" });
    expect(await b.queuePair.receiveCompletions.next()).toMatchObject({
      id: 5,
      status: "success",
      byteLength: 40 + 4096,
      immediate: 77,
      sourceQpn: a.queuePair.qpn,
    });
    expect(b.bytes.subarray(40, 40 + 4096).equals(a.bytes.subarray(0, 4096))).toBe(true);
    // The network header is at the end of its 40 bytes.
    expect((b.bytes[40 - header] as number) >> 4).toBe(version === "IPv4" ? 4 : 6);
    const addresses = version === "IPv4" ? [32, 36, 40] : [8, 24, 40];
    expect(addressText(b.bytes.subarray(addresses[0], addresses[1]))).toBe(source);
    expect(addressText(b.bytes.subarray(addresses[1], addresses[2]))).toBe(destination);
    await counted(fabric.b, "drop_queue_key");

    // Each counts data, and only what was taken.
    const countersOf = (side: typeof a, device: Fabric["a"]) =>
      device.queuePairStates().find(({ qpn }) => qpn === side.queuePair.qpn)?.counters;
    expect(countersOf(a, fabric.a)).toMatchObject({ tx_packets: 2, tx_bytes: 8192, rx_packets: 0 });
    expect(countersOf(b, fabric.b)).toMatchObject({ tx_packets: 0, rx_packets: 1, rx_bytes: 4096, rx_messages: 1 });

    expect(() => a.queuePair.postSend({ opcode: "send", local })).toThrow(/destination/);
    // This is more than fits a packet.
    a.queuePair.postSend({ ...right, local: { region: a.memory, length: 4097 } });
    expect(await a.queuePair.sendCompletions.next()).toMatchObject({ status: "loc_len_err" });
  });
});
