/** Work requests and completions as words, field by field where the native core says that they are. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { kCompletionRun, kWorkCommand } from "../../src/native/types.js";
import type { MemoryRegion, SendRequest } from "../../src/verbs/index.js";
import { kStatus } from "../../src/verbs/types.js";
import { CompletionBuffer, WorkBuffer } from "../../src/verbs/work.js";

const kOpcodes = [
  "send",
  "send_with_imm",
  "send_with_inv",
  "rdma_write",
  "rdma_write_with_imm",
  "rdma_read",
  "atomic_cmp_and_swp",
  "atomic_fetch_and_add",
] as const;
const kAtomic = [6, 7];

/** Decodes a request as the native core reads it. */
function decode(buffer: WorkBuffer, index: number) {
  const { at, words } = kWorkCommand;
  const view = new DataView(buffer.words.buffer, index * words * 8, words * 8);
  const number = (place: number) => view.getUint32(place, true);
  return {
    qpn: number(at.qpn),
    times: number(at.times),
    receive: view.getUint8(at.receive) === 1,
    opcode: view.getUint8(at.opcode),
    flags: view.getUint8(at.flags),
    id: view.getFloat64(at.id, true),
    localAddress: Number(view.getBigUint64(at.local_address, true)),
    length: number(at.length),
    localKey: number(at.local_key),
    remoteAddress: view.getBigUint64(at.remote_address, true),
    remoteKey: number(at.remote_key),
    immediate: number(at.immediate),
    compare: view.getBigUint64(at.compare, true),
    swapAdd: view.getBigUint64(at.swap_add, true),
    addressHandle: number(at.address_handle),
    remoteQpn: number(at.remote_qpn),
    queueKey: number(at.queue_key),
  };
}

const region = (byteLength: number, start = 0x7f00_0000_0000, key = 0xffff_ffff) =>
  ({ byteLength, start, key }) as MemoryRegion;

const u32 = fc.oneof(fc.constantFrom(0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff), fc.nat(0xffff_ffff));
const u64 = fc.oneof(fc.constantFrom(0n, 1n, 2n ** 63n, 2n ** 64n - 1n), fc.bigInt(0n, 2n ** 64n - 1n));
const integer = fc.oneof(fc.constantFrom(0, Number.MAX_SAFE_INTEGER, -1), fc.maxSafeInteger());

describe("WorkBuffer", () => {
  it("puts every field of a send where the native core looks for it", () => {
    const fields = fc.record({
      at: fc.nat(WorkBuffer.kRequests - 1),
      opcode: fc.nat(7),
      qpn: fc.nat(0xff_ffff),
      times: fc.nat(0xffff),
      id: integer,
      signaled: fc.boolean(),
      solicited: fc.boolean(),
      fence: fc.boolean(),
      start: fc.nat(2 ** 30).map((low) => 0x7fff_0000_0000 + low),
      offset: fc.nat(1000),
      length: fc.nat(2 ** 30),
      localKey: u32,
      remoteAddress: u64,
      remoteKey: u32,
      immediate: u32,
      compare: u64,
      swap: u64,
      handle: u32,
      remoteQpn: u32,
      queueKey: u32,
    });
    const buffer = new WorkBuffer();
    fc.assert(
      fc.property(fields, (f) => {
        const length = kAtomic.includes(f.opcode) ? 8 : f.length;
        const request = {
          opcode: kOpcodes[f.opcode],
          id: f.id,
          signaled: f.signaled,
          solicited: f.solicited,
          fence: f.fence,
          local: { region: region(f.offset + length, f.start, f.localKey), offset: f.offset, length },
          ...(f.opcode >= 3 && { remote: { address: f.remoteAddress, key: f.remoteKey } }),
          ...((f.opcode === 1 || f.opcode === 4) && { immediate: f.immediate }),
          ...(f.opcode === 2 && { invalidateKey: f.remoteKey }),
          ...(f.opcode === 6 && { compare: f.compare, swap: f.swap }),
          ...(f.opcode === 7 && { add: f.swap }),
          ...(f.opcode < 2 && { to: { address: { handle: f.handle }, qpn: f.remoteQpn, queueKey: f.queueKey } }),
        } as SendRequest;
        buffer.writeSend(f.at, f.qpn, request, f.times);
        expect(buffer.times(f.at)).toBe(f.times);
        expect(decode(buffer, f.at)).toMatchObject({
          qpn: f.qpn,
          times: f.times,
          receive: false,
          opcode: f.opcode,
          flags: Number(f.signaled) + 2 * Number(f.solicited) + 4 * Number(f.fence),
          id: f.id,
          localAddress: f.start + f.offset,
          length,
          localKey: f.localKey,
          ...(f.opcode >= 2 && { remoteKey: f.remoteKey }),
          ...(f.opcode >= 3 && { remoteAddress: f.remoteAddress }),
          ...((f.opcode === 1 || f.opcode === 4) && { immediate: f.immediate }),
          ...(f.opcode === 6 && { compare: f.compare }),
          ...(f.opcode >= 6 && { swapAdd: f.swap }),
          ...(f.opcode < 2 && { addressHandle: f.handle, remoteQpn: f.remoteQpn, queueKey: f.queueKey }),
        });
      }),
    );
  });

  it("has defaults: signaled, no data, the rest of the region, the 8 bytes of an atomic", () => {
    const buffer = new WorkBuffer();
    buffer.writeSend(0, 1, { opcode: "send" });
    expect(decode(buffer, 0)).toMatchObject({ times: 1, flags: 1, id: 0, localAddress: 0, length: 0, localKey: 0 });
    buffer.writeSend(0, 1, { opcode: "send", local: { region: region(100), offset: 40 } });
    expect(decode(buffer, 0)).toMatchObject({ localAddress: 0x7f00_0000_0000 + 40, length: 60 });
    const remote = { address: 0n, key: 0 };
    buffer.writeSend(0, 1, { opcode: "atomic_fetch_and_add", local: { region: region(100) }, remote, add: -1n });
    expect(decode(buffer, 0)).toMatchObject({ length: 8, swapAdd: 2n ** 64n - 1n });
  });

  it("writes a receive, of which no more than a message counts", () => {
    const buffer = new WorkBuffer();
    buffer.writeReceive(2, 0xff_ffff, { id: 7, local: { region: region(2 ** 33), offset: 3 } });
    const receive = { qpn: 0xff_ffff, receive: true, id: 7, localAddress: 0x7f00_0000_0003, localKey: 0xffff_ffff };
    expect(decode(buffer, 2)).toMatchObject({ ...receive, length: 2 ** 30 });
    buffer.writeReceive(2, 1, {}, 3);
    expect(decode(buffer, 2)).toMatchObject({ receive: true, times: 3, id: 0, length: 0, localKey: 0 });
  });

  const remote = { address: 0n, key: 0 };
  it.each([
    ["behind the end", { offset: 90, length: 11 }],
    ["before the start", { offset: -1 }],
    ["of a negative length", { offset: 10, length: -1 }],
    ["that starts behind the end", { offset: 101 }],
    ["that is not a number", { offset: Number.NaN }],
  ])("refuses a slice %s", (_, slice) => {
    const buffer = new WorkBuffer();
    const local = { region: region(100), ...slice };
    expect(() => buffer.writeSend(0, 1, { opcode: "rdma_write", local, remote })).toThrow(RangeError);
    expect(() => buffer.writeReceive(0, 1, { local })).toThrow("not within a region of 100 bytes");
  });

  it("refuses what no message can be", () => {
    const buffer = new WorkBuffer();
    const local = { region: region(2 ** 32 + 1) };
    expect(() => buffer.writeSend(0, 1, { opcode: "send", local })).toThrow("a message of 4294967297 bytes");
    const nine = { region: region(9), length: 9 };
    const atomic = { opcode: "atomic_cmp_and_swp", local: nine, remote, compare: 0n, swap: 0n } as const;
    expect(() => buffer.writeSend(0, 1, atomic)).toThrow("an atomic is about 8 bytes");
  });
});

describe("CompletionBuffer", () => {
  it("reads what the native core writes", () => {
    const statuses = Object.keys(kStatus).map(Number) as (keyof typeof kStatus)[];
    const fields = fc.record({
      at: fc.nat(CompletionBuffer.kCompletions - 1),
      id: integer,
      qpn: fc.nat(0xff_ffff),
      status: fc.constantFrom(...statuses),
      receive: fc.boolean(),
      opcode: fc.nat(7),
      flags: fc.nat(7),
      bytes: u32,
      immediate: u32,
      source: u32,
      retired: u32,
      times: u32,
    });
    const buffer = new CompletionBuffer();
    fc.assert(
      fc.property(fields, (f) => {
        const { at, words } = kCompletionRun;
        const view = new DataView(buffer.words.buffer, f.at * words * 8, words * 8);
        view.setFloat64(at.id, f.id, true);
        view.setUint32(at.qpn, f.qpn, true);
        view.setUint8(at.status, f.status);
        view.setUint8(at.receive, Number(f.receive));
        view.setUint8(at.opcode, f.opcode);
        view.setUint8(at.flags, f.flags);
        view.setUint32(at.bytes, f.bytes, true);
        view.setUint32(at.immediate, f.immediate, true);
        view.setUint32(at.source_qpn, f.source, true);
        view.setUint32(at.retired, f.retired, true);
        view.setUint32(at.times, f.times, true);
        expect([buffer.qpn(f.at), buffer.receive(f.at), buffer.retired(f.at)]).toEqual([f.qpn, f.receive, f.retired]);
        expect(buffer.times(f.at)).toBe(f.times);
        expect(buffer.read(f.at, "its own", f.times)).toEqual({
          queuePair: "its own",
          id: f.id,
          status: kStatus[f.status],
          opcode: f.receive ? (f.opcode === 4 ? "recv_rdma_with_imm" : "recv") : kOpcodes[f.opcode],
          byteLength: f.bytes,
          times: f.times,
          ...((f.flags & 1) !== 0 && { immediate: f.immediate }),
          ...((f.flags & 2) !== 0 && { invalidatedKey: f.immediate }),
          ...((f.flags & 4) !== 0 && { sourceQpn: f.source }),
        });
      }),
    );
  });
});
