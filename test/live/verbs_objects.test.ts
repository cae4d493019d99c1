/** Verbs' objects apart from moving data: connections, states, queues that are full, memory, completion queues, closing. */
import { setTimeout as sleep } from "node:timers/promises";
import { MessageChannel } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Fabric } from "../../bench/dataplane/fabric.js";
import { WeirError } from "../../src/base/error.js";
import { connect, listen, openDevice, type QueuePairAttributes, type WorkCompletion } from "../../src/verbs/index.js";
import { ConnectionRejected } from "../../src/wire/cm/reject.js";
import { describeLive } from "./capability.js";
import { connected, perform } from "./verbs_pair.js";

const kServer = "10.0.0.2";

describeLive("objects of verbs", () => {
  let fabric: Fabric;
  beforeAll(async () => {
    fabric = await Fabric.create();
  });
  afterAll(() => fabric?.close());
  const queuePairOn = (device: Fabric["a"], options = {}) =>
    device.allocateProtectionDomain().createQueuePair({ sendCompletions: device.createCompletionQueue(), ...options });
  /** Waits until something that happens at the other end is noticed here. */
  const eventually = (value: () => unknown) => expect.poll(value);

  describe("connections", () => {
    it("carry private data both ways, and end at both sides", async () => {
      const serving = queuePairOn(fabric.b);
      const asked: string[] = [];
      const stop = listen(fabric.b, 6000, async (request) => {
        asked.push(request.privateData.toString("latin1", 0, 5), request.address);
        const connection = await request.accept({ queuePair: serving, privateData: Buffer.from("welcome") });
        connection.onDisconnected(() => asked.push("gone"));
      });
      const queuePair = queuePairOn(fabric.a);
      const connection = await connect(fabric.a, {
        address: kServer,
        port: 6000,
        queuePair,
        privateData: Buffer.from("hello"),
      });
      stop();
      expect(connection.privateData.toString("latin1", 0, 8)).toBe("welcome\0");
      queuePair.postReceive({ id: 1 }, { id: 2 });
      await connection.disconnect();
      expect(queuePair.state).toBe("error");
      for (const id of [1, 2]) {
        expect(await queuePair.receiveCompletions.next()).toMatchObject({ id, status: "wr_flush_err" });
      }
      await eventually(() => asked).toEqual(["hello", "10.0.0.1", "gone"]);
      expect(serving.state).toBe("error");
      await connection.disconnect();
    });

    it("are rejected by the application, and where nobody listens", async () => {
      const stop = listen(fabric.b, 6001, (request) => request.reject(Buffer.from("busy")));
      const queuePair = queuePairOn(fabric.a);
      const refused = await connect(fabric.a, { address: kServer, port: 6001, queuePair }).catch((error) => error);
      expect(refused).toBeInstanceOf(ConnectionRejected);
      expect(refused).toMatchObject({ reason: 28 });
      expect(refused.privateData.toString("latin1", 0, 5)).toBe("busy\0");
      stop();
      // The queue pair is of use still, and the port is free.
      await expect(connect(fabric.a, { address: kServer, port: 6001, queuePair })).rejects.toMatchObject({
        reason: 8,
        hint: expect.stringContaining("nothing listens"),
      });
    });

    it("outlive a queue pair that was destroyed, until the peer ends them", async () => {
      const { a, b } = await connected(fabric);
      const ended = new Promise<void>((resolve) => a.connection.onDisconnected(() => resolve()));
      a.queuePair.destroy();
      await b.connection.disconnect();
      await ended;
    });

    it("need an address of the same IP version, and one that is on the link", async () => {
      const queuePair = queuePairOn(fabric.a);
      await expect(connect(fabric.a, { address: "10.0.1.2", port: 1, queuePair })).rejects.toThrow(
        "10.0.1.2 is not in 10.0.0.1/24, and there is no gateway",
      );
      await expect(connect(fabric.a, { address: "nowhere", port: 1, queuePair })).rejects.toThrow(
        "nowhere is neither an IP address nor a name that is known here",
      );
      const privateData = Buffer.alloc(57);
      await expect(connect(fabric.a, { address: kServer, port: 6002, queuePair, privateData })).rejects.toThrow(
        /57 bytes of private data/,
      );
    });
  });

  describe("queue pairs", () => {
    it("go from state to state in the one order that there is", () => {
      const queuePair = queuePairOn(fabric.a);
      const route = { address: kServer, mac: fabric.b.mac };
      expect(() => queuePair.modify("rtr", { route })).toThrow("cannot go from RESET to RTR");
      expect(() => queuePair.modify("rts")).toThrow("cannot go from RESET to RTS");
      expect(() => queuePair.postReceive({})).toThrow("in state reset cannot receive");
      queuePair.modify("init");
      expect(() => queuePair.modify("rtr")).toThrow("needs to know its peer");
      expect(queuePair.state).toBe("init");
      queuePair.modify("rtr", { route });
      expect(() => queuePair.postSend({ opcode: "send" })).toThrow("in state rtr cannot send");
      queuePair.modify("rts");
      queuePair.modify("error");
      expect(() => queuePair.modify("rts")).toThrow("cannot go from ERROR to RTS");
      queuePair.modify("reset");
      queuePair.modify("init");
      queuePair.destroy();
      queuePair.destroy();
      expect(() => queuePair.modify("reset")).toThrow("was destroyed");
      expect(() => queuePair.postReceive({})).toThrow("was destroyed");
    });

    const kWrong: [keyof QueuePairAttributes, number, string][] = [
      ["timeout", 32, "between 0 and 31"],
      ["retryCount", 8, "between 0 and 7"],
      ["rnrRetry", -1, "between 0 and 7"],
      ["minRnrTimer", 1.5, "between 0 and 31"],
      ["maxRdAtomic", 0, "between 1 and 128"],
      ["maxDestRdAtomic", 129, "between 1 and 128"],
      ["window", 3, "between 4 and 65536"],
      ["sendPsn", 2 ** 24, "between 0 and 16777215"],
      ["receivePsn", Number.NaN, "between 0 and 16777215"],
      ["remoteQpn", 2 ** 24, "between 0 and 16777215"],
      ["partitionKey", 65_536, "between 0 and 65535"],
      ["queueKey", 2 ** 32, "between 0 and 4294967295"],
      ["priority", 8, "between 0 and 7"],
      ["dscp", 64, "between 0 and 63"],
      ["rateCap", -1, "between 0 and"],
      ["pathMtu", 1500, "is not possible here"],
    ];
    it.each(kWrong)("refuse %s %d, and forget it", (field, value, range) => {
      const queuePair = queuePairOn(fabric.a);
      const attempt = () => queuePair.modify("init", { [field]: value });
      expect(attempt).toThrow(expect.objectContaining({ field, message: expect.stringContaining(range) }));
      expect(attempt).toThrow(new RegExp(`^${field}: ${value} `));
      queuePair.modify("init");
      queuePair.destroy();
    });

    it("refuse depths and options of the device that are out of range", async () => {
      expect(() => queuePairOn(fabric.a, { sendDepth: 0 })).toThrow(
        "sendDepth: 0 is not an integer between 1 and 32768",
      );
      expect(() => queuePairOn(fabric.a, { receiveDepth: 32_769 })).toThrow("receiveDepth: 32769");
      const { interface: name, namespaceFd } = fabric.network.end(0, "a");
      const place = { interface: name, namespace: `/proc/${process.pid}/fd/${namespaceFd}` };
      await expect(openDevice({ ...place, address: "10.0.0.9/24", vlan: 4095 })).rejects.toThrow(
        "vlan: 4095 is not between 1 and 4094",
      );
      for (const address of [[], ["10.0.0.9/24", "10.0.0.10/24"]]) {
        await expect(openDevice({ ...place, address })).rejects.toThrow("one IPv4 address, one IPv6 address, or both");
      }
      await expect(openDevice({ ...place, interface: "none0", address: "10.0.0.9/24" })).rejects.toThrow(
        "there is no interface none0",
      );
    });

    it("hold as many work requests as was said", async () => {
      const { a, b } = await connected(fabric, { depth: 4 });
      const write = {
        opcode: "rdma_write",
        local: { region: a.memory, length: 1 },
        remote: b.memory.remote(),
      } as const;
      expect(() => a.queuePair.postSend(write, write, write, write, write)).toThrow(
        "the send queue is full: it holds 4",
      );
      a.queuePair.postSend(write, write, write, write);
      expect(a.queuePair.sendRoom).toBe(0);
      expect(() => a.queuePair.postSend(write)).toThrow(WeirError);
      for (let i = 0; i < 4; i++) await a.queuePair.sendCompletions.next();
      expect(a.queuePair.sendRoom).toBe(4);
      a.queuePair.postReceive({}, {}, {}, {});
      expect(() => a.queuePair.postReceive({})).toThrow("the receive queue is full: it holds 4");
    });

    it("take more at once than fits between them and the poll thread", async () => {
      const { a, b } = await connected(fabric, { depth: 32_768 });
      const remote = b.memory.remote();
      const last = 20_000;
      const writes = Array.from({ length: last }, (_, i) => {
        return { opcode: "rdma_write", id: i + 1, remote, signaled: i + 1 === last } as const;
      });
      a.queuePair.postSend(...writes);
      expect(await a.queuePair.sendCompletions.next()).toMatchObject({ id: last, status: "success" });
      expect(a.queuePair.sendRoom).toBe(32_768);
    });

    it("count what was posted before a request that is wrong", async () => {
      const { a, b } = await connected(fabric);
      const write = {
        opcode: "rdma_write",
        local: { region: a.memory, length: 1 },
        remote: b.memory.remote(),
      } as const;
      const wrong = { ...write, local: { region: a.memory, offset: 1, length: a.memory.byteLength } };
      // These are as many as are handed over at a time, and none is the same as the one before.
      const right = Array.from({ length: 64 }, () => ({ ...write }));
      expect(() => a.queuePair.postSend(...right, wrong)).toThrow(RangeError);
      for (let i = 0; i < 64; i++) await a.queuePair.sendCompletions.next();
      expect(a.queuePair.sendRoom).toBe(a.queuePair.sendDepth);
    });

    it("flush what is not done when they go to error, and keep to themselves what is not done when destroyed", async () => {
      const { a } = await connected(fabric);
      const { queuePair } = a;
      queuePair.postReceive({ id: 1 });
      queuePair.modify("error");
      queuePair.postReceive({ id: 2 });
      queuePair.postSend({ opcode: "send", id: 3 });
      for (const id of [1, 2]) {
        expect(await queuePair.receiveCompletions.next()).toMatchObject({ id, status: "wr_flush_err", opcode: "recv" });
      }
      expect(await queuePair.sendCompletions.next()).toMatchObject({ id: 3, status: "wr_flush_err" });

      const other = await connected(fabric);
      other.a.queuePair.postReceive({ id: 4 });
      other.a.queuePair.destroy();
      await sleep(20);
      expect(other.a.queuePair.receiveCompletions.poll()).toEqual([]);
    });
  });

  describe("memory", () => {
    it("stays where it is when somebody tries to give it to another thread", async () => {
      const { a, b } = await connected(fabric);
      const { buffer } = b.memory;
      const { port1, port2 } = new MessageChannel();
      // Node.js 20 does not transfer but copies it; later ones throw.
      const attempts = [
        () => structuredClone(buffer, { transfer: [buffer] }),
        () => port1.postMessage(buffer, [buffer]),
      ];
      for (const attempt of attempts) {
        try {
          attempt();
        } catch (error) {
          expect((error as Error).name).toBe("DataCloneError");
        }
      }
      port1.close();
      port2.close();
      expect(buffer.byteLength).toBe(b.memory.byteLength);
      a.bytes.write("still here");
      const local = { region: a.memory, length: 10 };
      await perform(a.queuePair, { opcode: "rdma_write", local, remote: b.memory.remote() });
      expect(Buffer.from(buffer).toString("latin1", 0, 10)).toBe("still here");
    });

    it("starts as zeros, has no part of 0 bytes, and none outside of it", () => {
      const domain = fabric.a.allocateProtectionDomain();
      const region = domain.registerMemory(10_000);
      expect(Buffer.from(region.buffer).every((byte) => byte === 0)).toBe(true);
      expect(region.byteLength).toBe(10_000);
      expect(() => domain.registerMemory(0)).toThrow(/at least 1/);
      expect(region.remote(9)).toEqual({ address: BigInt(region.start) + 9n, key: region.key });
    });
  });

  describe("completion queues", () => {
    const three = async () => {
      const { a, b } = await connected(fabric);
      const write = (id: number) =>
        ({ opcode: "rdma_write", id, local: { region: a.memory, length: 1 }, remote: b.memory.remote() }) as const;
      return { queuePair: a.queuePair, post: (...ids: number[]) => a.queuePair.postSend(...ids.map(write)) };
    };

    it("are polled", async () => {
      const { queuePair, post } = await three();
      const completions = queuePair.sendCompletions;
      expect(completions.poll()).toEqual([]);
      post(1, 2, 3);
      const polled: WorkCompletion[] = [];
      await eventually(() => polled.push(...completions.poll(1))).toBe(3);
      expect(polled.map(({ id }) => id)).toEqual([1, 2, 3]);
    });

    it("are iterated over, and keep what the loop leaves", async () => {
      const { queuePair, post } = await three();
      post(1, 2, 3);
      await sleep(20);
      for await (const { id } of queuePair.sendCompletions) {
        expect(id).toBe(1);
        break;
      }
      expect(await queuePair.sendCompletions.next()).toMatchObject({ id: 2 });
      expect(await queuePair.sendCompletions.next()).toMatchObject({ id: 3 });
    });

    it("wake all who wait", async () => {
      const { queuePair, post } = await three();
      const waiting = [1, 2, 3].map(() => queuePair.sendCompletions.next());
      post(1, 2, 3);
      expect((await Promise.all(waiting)).map(({ id }) => id)).toEqual([1, 2, 3]);
    });

    it("call back, in order and for those that have come before", async () => {
      const { queuePair, post } = await three();
      const ids: number[] = [];
      post(1, 2);
      await eventually(() => queuePair.sendCompletions.poll(0) && queuePair.sendRoom).toBe(queuePair.sendDepth);
      queuePair.sendCompletions.onCompletion(({ id }) => ids.push(id));
      post(3);
      await eventually(() => ids).toEqual([1, 2, 3]);
      queuePair.sendCompletions.onCompletion(undefined);
      post(4);
      expect(await queuePair.sendCompletions.next()).toMatchObject({ id: 4 });
      expect(ids).toEqual([1, 2, 3]);
    });
  });

  it("closing a device ends all that waits, and tells the peer", async () => {
    const other = await Fabric.create();
    try {
      const { a, b } = await connected(other);
      await perform(a.queuePair, { opcode: "rdma_write", remote: b.memory.remote() });
      const told = new Promise<void>((resolve) => b.connection.onDisconnected(() => resolve()));
      const next = expect(a.queuePair.sendCompletions.next()).rejects.toThrow("the device is closed");
      const loop = (async () => {
        for await (const _ of a.queuePair.receiveCompletions) throw new Error("nothing was posted");
      })();
      const asking = expect(
        connect(other.a, { address: "10.0.0.77", port: 1, queuePair: queuePairOn(other.a) }),
      ).rejects.toThrow("closed");
      other.a.close();
      other.a.close();
      await Promise.all([next, loop, asking, told]);
      expect(() => a.queuePair.postReceive({})).toThrow("the device is closed");
      expect(() => a.domain.registerMemory(1)).toThrow("the device is closed");
      expect(() => listen(other.a, 1, () => {})).toThrow("the device is closed");
      a.queuePair.destroy();
      a.memory.deregister();
      await a.connection.disconnect();
      // Memory of the closed device may still be looked at.
      expect(a.bytes[0]).toBe(0);
      expect(other.a.counters().size).toBe(0);
    } finally {
      other.close();
    }
  });
});
