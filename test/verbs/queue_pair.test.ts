/** A queue pair refuses wrong requests, and holds on to the ways of datagrams; with a worker that only takes notes. */
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { WeirError } from "../../src/base/error.js";
import { kWorkCommand } from "../../src/native/types.js";
import { AddressHandle } from "../../src/verbs/address_handle.js";
import type { Device } from "../../src/verbs/device.js";
import type { CompletionQueue } from "../../src/verbs/queue_pair.js";
import { QueuePair, type QueuePairOptions } from "../../src/verbs/queue_pair.js";
import type { SendRequest } from "../../src/verbs/types.js";
import { WorkBuffer } from "../../src/verbs/work.js";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Registries call back in a task of their own. */
async function collected(): Promise<void> {
  for (let i = 0; i < 5; i++) {
    collectGarbage();
    await sleep(1);
  }
}

function setUp() {
  const destroyed: number[] = [];
  let posted = 0;
  const worker = {
    createQueuePair: () => 17,
    modifyQueuePair: () => {},
    destroyAddressHandle: (_: number, handle: number) => destroyed.push(handle) > 0,
    post: (_: number, _words: BigUint64Array, count: number) => {
      posted += count;
      return count;
    },
  };
  const device = {
    native: { worker },
    work: new WorkBuffer(),
    defaults: { pathMtu: 1024, priority: 3, dscp: 26 },
    largestPathMtu: 1024,
    works: true,
    mac: 1,
    attach: () => {},
    requireOpen: () => {},
    readRecords: () => {},
  } as unknown as Device;
  const queue = { push: () => {} } as unknown as CompletionQueue;
  const make = (type: QueuePairOptions["type"], sendDepth = 128) => {
    const pair = new QueuePair(device, 1, { ...(type !== undefined && { type }), sendDepth, sendCompletions: queue });
    const route = { address: "10.0.0.2", mac: 2 };
    pair.modify("init");
    pair.modify("rtr", type === "ud" ? {} : { route });
    pair.modify("rts");
    return pair;
  };
  Object.assign(device, { sourceFor: () => "10.0.0.1" });
  const handle = (number: number) => new AddressHandle(device.native.worker, number, () => true);
  return { device, make, handle, destroyed, posted: () => posted };
}

const to = (address: AddressHandle) => ({ address, qpn: 5, queueKey: 1 });

describe("a datagram queue pair", () => {
  it("refuses a destination that there is not, and posts nothing", () => {
    const { make, handle, posted } = setUp();
    const pair = make("ud");
    const gone = handle(3);
    gone.destroy();
    const foreign = setUp().handle(3);
    for (const address of [gone, foreign, { handle: 77_777 } as unknown as AddressHandle]) {
      expect(() => pair.postSend({ opcode: "send", to: to(address) })).toThrow(
        expect.objectContaining({ name: "WeirError", field: "to.address", hint: expect.stringContaining("create") }),
      );
    }
    expect(() => pair.postSend({ opcode: "send" })).toThrow("to: a datagram needs a destination");
    const write = { opcode: "rdma_write", remote: { address: 0n, key: 0 }, to: to(handle(3)) } as const;
    expect(() => pair.postSend(write)).toThrow("a datagram queue pair has no rdma_write");
    expect(posted()).toBe(0);
    expect(pair.sendRoom).toBe(pair.sendDepth);
    pair.postSend({ opcode: "send", to: to(handle(3)) });
    expect(posted()).toBe(1);
  });
});

describe("a queue pair", () => {
  it.each(["no_such_opcode", "fetch_add", "", undefined])("refuses the opcode %s, and posts nothing", (opcode) => {
    const { make, posted } = setUp();
    const request = { opcode, remote: { address: 0n, key: 0 } } as unknown as SendRequest;
    expect(() => make("rc").postSend(request)).toThrow(RangeError);
    expect(() => make("rc").postSend(request)).toThrow(/^opcode: .* is none of send, send_with_imm, /);
    expect(() => make("ud").postSend(request)).toThrow(WeirError);
    expect(posted()).toBe(0);
  });
});

describe("posting", () => {
  it("hands over many requests in order, the same ones once, however few are taken at a time", () => {
    const { device, make } = setUp();
    const taken: number[] = [];
    let commands = 0;
    const { at, words: length } = kWorkCommand;
    Object.assign(device.native.worker, {
      post: (_: number, words: BigUint64Array, count: number) => {
        const view = new DataView(words.buffer, words.byteOffset, words.byteLength);
        const most = Math.min(count, 50);
        for (let i = 0; i < most; i++) {
          const base = i * length * 8;
          for (let n = view.getUint32(base + at.times, true); n > 0; n--)
            taken.push(view.getFloat64(base + at.id, true));
        }
        commands += most;
        return most;
      },
    });
    const pair = make("rc", 1300);
    const [same, other] = [1, 2].map((id) => ({ id, opcode: "send" }) as const) as [SendRequest, SendRequest];
    const requests = Array.from({ length: 300 }, (_, i): SendRequest => {
      if (i % 10 === 9) return { id: 1000 + i, opcode: "send" };
      return i % 32 === 31 ? other : same;
    });
    pair.postSend(...requests, { ...other, times: 1000 });
    expect(taken).toEqual([...requests.map(({ id }) => id), ...new Array(1000).fill(2)]);
    expect(commands).toBeLessThan(100);
    expect(pair.sendRoom).toBe(0);
    expect(() => pair.postSend(same)).toThrow("the send queue is full: it holds 1300 work requests");
  });

  it("refuses more times than there is room, and a number of times that is none, and posts nothing", () => {
    const { make, posted } = setUp();
    const pair = make("rc", 10);
    expect(() => pair.postSend({ opcode: "send", times: 6 }, { opcode: "send", times: 5 })).toThrow("is full");
    expect(() => pair.postReceive({ times: 129 })).toThrow("the receive queue is full: it holds 128 work requests");
    for (const times of [0, -1, 1.5, Number.NaN, 32_769]) {
      expect(() => pair.postSend({ opcode: "send", times })).toThrow(
        `times: ${times} is not an integer between 1 and 32768`,
      );
    }
    expect(posted()).toBe(0);
    expect([pair.sendRoom, pair.receiveRoom]).toEqual([10, 128]);
    pair.postReceive({ times: 28 });
    expect(pair.receiveRoom).toBe(100);
  });
});

describe("an address handle", () => {
  it("is given back once, and not after its device has gone", () => {
    const { device, handle, destroyed } = setUp();
    const first = handle(3);
    first.destroy();
    first.destroy();
    expect(destroyed).toEqual([3]);
    new AddressHandle(device.native.worker, 4, () => false).destroy();
    expect(destroyed).toEqual([3]);
  });

  it("is kept while datagrams that use it wait, whoever else has forgotten it", async () => {
    const { make, handle, destroyed } = setUp();
    const pair = make("ud");
    const post = (number: number, times: number) =>
      pair.postSend({ opcode: "send", signaled: false, to: to(handle(number)), times });
    post(3, 2);
    post(4, 1);
    const completion = { id: 0, status: "success", opcode: "send", byteLength: 0, times: 1, queuePair: pair } as const;
    await collected();
    expect(destroyed).toEqual([]);
    pair.take(completion, false, 1);
    await collected();
    expect(destroyed).toEqual([]);
    pair.take(completion, false, 1);
    await collected();
    expect(destroyed).toEqual([3]);
    pair.take(completion, false, 1);
    await collected();
    expect(destroyed).toEqual([3, 4]);
  });
});
