/** Completions come from the native core to their queues: those in a row that are all the same come as one record. */
import { describe, expect, it } from "vitest";
import { kCompletionRun, type NativeAddon, type VerbsWorker } from "../../src/native/types.js";
import { Device } from "../../src/verbs/device.js";
import type { QueuePair, WorkCompletion } from "../../src/verbs/queue_pair.js";

interface Run {
  id: number;
  times: number;
  receive?: boolean;
  retired?: number;
}

const { at, words: kWords } = kCompletionRun;
const kQpn = 17;

/** A device whose native core has `runs` to tell of. */
class NotedDevice extends Device {
  readonly interface = "none";
  readonly mac = 1;
  readonly vlan = undefined;
  readonly largestPathMtu = 1024;
  readonly rate = 1;
  readonly defaults = { pathMtu: 1024, priority: 3, dscp: 26 };
  readonly native = {
    addon: {} as NativeAddon,
    worker: {
      createQueuePair: () => kQpn,
      drainCompletions: (_: number, words: BigUint64Array) => this.#drain(words),
      progress: (_: number, words: BigUint64Array) => {
        this.turns++;
        const count = this.#drain(words);
        return count > 0 || this.moves ? count : -1;
      },
    } as unknown as VerbsWorker,
  };
  readonly runs: Run[] = [];
  turns = 0;
  moves = false;

  #drain(words: BigUint64Array): number {
    const view = new DataView(words.buffer, words.byteOffset, words.byteLength);
    const found = this.runs.splice(0, words.length / kWords);
    for (const [i, { id, times, receive = false, retired = 1 }] of found.entries()) {
      const base = i * kWords * 8;
      for (let byte = 0; byte < kWords * 8; byte++) view.setUint8(base + byte, 0);
      view.setUint32(base + at.qpn, kQpn, true);
      view.setFloat64(base + at.id, id, true);
      view.setUint8(base + at.receive, Number(receive));
      view.setUint32(base + at.retired, retired, true);
      view.setUint32(base + at.times, times, true);
    }
    return found.length;
  }

  readonly addresses = [];
  readonly managers = [];
  resolve = () => Promise.reject(new Error("unasked"));
  createAddressHandle = () => Promise.reject(new Error("unasked"));
  managerFor = () => {
    throw new Error("unasked");
  };
  sourceFor = () => "";
  counters = () => new Map<string, number>();
  queuePairStates = () => [];
  readRecords = () => {};
  protected end(): void {}
  protected release(): void {}
}

function setUp(join?: boolean) {
  const device = new NotedDevice();
  const queue = device.createCompletionQueue(join === undefined ? {} : { join });
  const pair: QueuePair = device.allocateProtectionDomain().createQueuePair({ sendCompletions: queue });
  return { device, queue, pair };
}
const told = (completions: readonly WorkCompletion[]) => completions.map(({ id, times }) => [id, times]);

describe("completions that are all the same", () => {
  it("come one by one, each an object of its own", () => {
    const { device, queue, pair } = setUp();
    device.runs.push({ id: 1, times: 3, retired: 2 }, { id: 2, times: 1 }, { id: 1, times: 2, receive: true });
    const found = queue.poll();
    expect(told(found)).toEqual([1, 1, 1, 2, 1, 1].map((id) => [id, 1]));
    expect(new Set(found).size).toBe(6);
    expect([pair.sendRoom, pair.receiveRoom]).toEqual([128 + 7, 128 + 2]);
  });

  it("come as one to a queue that joins them, and give back as many places", () => {
    const { device, queue, pair } = setUp(true);
    device.runs.push({ id: 1, times: 3, retired: 2 }, { id: 2, times: 1 }, { id: 1, times: 2, receive: true });
    expect(told(queue.poll())).toEqual([
      [1, 3],
      [2, 1],
      [1, 2],
    ]);
    expect([pair.sendRoom, pair.receiveRoom]).toEqual([128 + 7, 128 + 2]);
  });

  it("are all told where there are more than are read at once", () => {
    const { device, queue } = setUp(true);
    for (let id = 0; id < 1000; id++) device.runs.push({ id, times: 2 });
    expect(device.progress()).toBe(true);
    expect(told(queue.poll())).toEqual(Array.from({ length: 1000 }, (_, id) => [id, 2]));
  });
});

describe("progress", () => {
  it("says whether anything has come or gone", () => {
    const { device } = setUp();
    expect(device.progress()).toBe(false);
    device.moves = true;
    expect(device.progress()).toBe(true);
    expect(device.turns).toBe(2);
  });

  it("from a callback takes a turn, and leaves the completions behind to who reads them", () => {
    const { device, queue } = setUp();
    const ids: number[] = [];
    queue.onCompletion(({ id }) => {
      ids.push(id);
      if (id === 1) device.runs.push({ id: 3, times: 1 });
      device.progress();
    });
    for (let i = 0; i < 256; i++) device.runs.push({ id: i % 2, times: 1 });
    device.progress();
    expect(ids.slice(0, 256)).toEqual(Array.from({ length: 256 }, (_, i) => i % 2));
    expect(ids.slice(256)).toEqual(new Array(128).fill(3));
    expect(device.turns).toBe(1 + 256 + 128);
  });
});
