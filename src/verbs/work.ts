/** Work requests and completions in the rings of the native core. */
import { kCompletionRun, kWorkCommand, WorkOpcode } from "../native/types.js";
import { type Completion, kStatus, type ReceiveRequest, type SendRequest, type Slice } from "./types.js";

const kOpcodes = Object.keys(WorkOpcode) as (keyof typeof WorkOpcode)[];

const { at: kAt } = kWorkCommand;
const { at: kPlaces } = kCompletionRun;
const kBytes = kCompletionRun.words * 8;
const kSignaled = 1;
const kSolicited = 2;
const kFence = 4;
/** Most bytes of a message. */
const kMostMessage = 2 ** 30;
const kAtomicBytes = 8;
const kNothing: { address: number; length: number; key: number } = { address: 0, length: 0, key: 0 };

/** A few work requests on their way down. */
export class WorkBuffer {
  static readonly kRequests = 64;
  readonly words = new BigUint64Array(WorkBuffer.kRequests * kWorkCommand.words);
  readonly #view = new DataView(this.words.buffer);

  /**
   * Writes request number `at`, which stands for `times`. @throws RangeError for a slice outside of its region, or longer than a
   * message may be, or an unknown opcode.
   */
  writeSend(at: number, qpn: number, request: SendRequest, times = 1): void {
    const { opcode, local } = request;
    const number = kOpcodes.indexOf(opcode);
    if (number < 0) throw new RangeError(`opcode: ${opcode} is none of ${kOpcodes.join(", ")}`);
    const flags =
      (request.signaled === false ? 0 : kSignaled) |
      (request.solicited ? kSolicited : 0) |
      (request.fence ? kFence : 0);
    const isAtomic = opcode === "atomic_cmp_and_swp" || opcode === "atomic_fetch_and_add";
    const slice = local === undefined ? kNothing : resolveSlice(local, isAtomic ? kAtomicBytes : undefined);
    if (isAtomic && slice.length !== kAtomicBytes) throw new RangeError("an atomic is about 8 bytes");
    if (slice.length > kMostMessage) throw new RangeError(`a message of ${slice.length} bytes; 1 GiB is the most`);
    const base = this.#writeHead(at, qpn, times, request.id ?? 0, slice);
    const view = this.#view;
    const half = (place: number, value: number) => view.setUint32(base + place, value, true);
    const word = (place: number, value: bigint) => view.setBigUint64(base + place, value, true);
    view.setUint8(base + kAt.receive, 0);
    view.setUint8(base + kAt.opcode, number);
    view.setUint8(base + kAt.flags, flags);
    if ("remote" in request) {
      word(kAt.remote_address, request.remote.address);
      half(kAt.remote_key, request.remote.key);
    }
    if ("immediate" in request) half(kAt.immediate, request.immediate);
    if (opcode === "send_with_inv") half(kAt.remote_key, request.invalidateKey);
    if (opcode === "atomic_cmp_and_swp") {
      word(kAt.compare, request.compare);
      word(kAt.swap_add, request.swap);
    }
    if (opcode === "atomic_fetch_and_add") word(kAt.swap_add, request.add);
    if ("to" in request && request.to !== undefined) {
      half(kAt.address_handle, request.to.address.handle);
      half(kAt.remote_qpn, request.to.qpn);
      half(kAt.queue_key, request.to.queueKey);
    }
  }

  writeReceive(at: number, qpn: number, { id = 0, local }: ReceiveRequest, times = 1): void {
    const { address, length, key } = local === undefined ? kNothing : resolveSlice(local);
    // No message fills more than that, nor can the field hold more.
    const base = this.#writeHead(at, qpn, times, id, { address, length: Math.min(length, kMostMessage), key });
    this.#view.setUint8(base + kAt.receive, 1);
  }

  /** Number of work requests for which number `at` stands. */
  times(at: number): number {
    return this.#view.getUint32(at * kWorkCommand.words * 8 + kAt.times, true);
  }

  /** Returns the place at which the request begins. */
  #writeHead(at: number, qpn: number, times: number, id: number, { address, length, key }: typeof kNothing): number {
    const base = at * kWorkCommand.words * 8;
    this.#view.setUint32(base + kAt.qpn, qpn, true);
    this.#view.setUint32(base + kAt.times, times, true);
    // The ID is opaque to the core: any number comes back as it was.
    this.#view.setFloat64(base + kAt.id, id, true);
    this.#view.setUint32(base + kAt.local_address, address % 2 ** 32, true);
    this.#view.setUint32(base + kAt.local_address + 4, address / 2 ** 32, true);
    this.#view.setUint32(base + kAt.length, length, true);
    this.#view.setUint32(base + kAt.local_key, key, true);
    return base;
  }
}

function resolveSlice({ region, offset = 0, length: wanted }: Slice, usual?: number) {
  const length = wanted ?? usual ?? region.byteLength - offset;
  if (!(offset >= 0 && length >= 0 && offset + length <= region.byteLength)) {
    throw new RangeError(`bytes ${offset} to ${offset + length} are not within a region of ${region.byteLength} bytes`);
  }
  return { address: region.start + offset, length, key: region.key };
}

/** Completions on their way up. */
export class CompletionBuffer {
  static readonly kCompletions = 256;
  readonly words = new BigUint64Array(CompletionBuffer.kCompletions * kCompletionRun.words);
  readonly #view = new DataView(this.words.buffer);

  /** Queue pair of completion number `at`. */
  qpn(at: number): number {
    return this.#view.getUint32(at * kBytes + kPlaces.qpn, true);
  }

  /** Tells whether the completion is of a receive. */
  receive(at: number): boolean {
    return this.#view.getUint8(at * kBytes + kPlaces.receive) !== 0;
  }

  /** Work requests that are done with, unsignaled ones before it too; 0: an event of the queue pair. */
  retired(at: number): number {
    return this.#view.getUint32(at * kBytes + kPlaces.retired, true);
  }

  /** Number of completions in a row that are all the same as number `at`. */
  times(at: number): number {
    return this.#view.getUint32(at * kBytes + kPlaces.times, true);
  }

  /**
   * Reads it as applications see it, for `times` in a row. All have the same fields in the same order, absent ones too: V8 is
   * fast with those.
   */
  read<Q>(at: number, queuePair: Q, times = 1): Completion & { queuePair: Q } {
    const base = at * kBytes;
    const view = this.#view;
    const receive = this.receive(at);
    const opcode = kOpcodes[view.getUint8(base + kPlaces.opcode)] as (typeof kOpcodes)[number];
    const flags = view.getUint8(base + kPlaces.flags);
    const immediate = view.getUint32(base + kPlaces.immediate, true);
    return {
      id: view.getFloat64(base + kPlaces.id, true),
      status: kStatus[view.getUint8(base + kPlaces.status) as keyof typeof kStatus],
      opcode: receive ? (opcode === "rdma_write_with_imm" ? "recv_rdma_with_imm" : "recv") : opcode,
      byteLength: view.getUint32(base + kPlaces.bytes, true),
      times,
      immediate: (flags & 1) !== 0 ? immediate : undefined,
      invalidatedKey: (flags & 2) !== 0 ? immediate : undefined,
      sourceQpn: (flags & 4) !== 0 ? view.getUint32(base + kPlaces.source_qpn, true) : undefined,
      queuePair,
    };
  }
}
