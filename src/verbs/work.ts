/** Work requests and completions in the rings of the native core. */
import { kStatus, type ReceiveRequest, type SendRequest, type Slice, type WorkCompletion } from "./types.js";

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

const kReceive = 1;
const kSignaled = 1;
const kSolicited = 2;
const kFence = 4;
/** Words of 64 bits of a work request and of a completion; native/addon/verbs.cc has the same picture. */
export const kWorkWords = 10;
export const kCompletionWords = 4;
/** Bytes of a message. */
const kMostMessage = 2 ** 30;
const kAtomicBytes = 8;
const kNothing: { address: number; length: number; key: number } = { address: 0, length: 0, key: 0 };

/** A few work requests on their way down. */
export class WorkBuffer {
  static readonly kRequests = 64;
  readonly words = new BigUint64Array(WorkBuffer.kRequests * kWorkWords);
  readonly #halves = new Uint32Array(this.words.buffer);
  readonly #numbers = new Float64Array(this.words.buffer);

  /**
   * Writes request number `at`. @throws RangeError for a slice outside of its region, or longer than a message may be, or an
   * opcode that there is not.
   */
  writeSend(at: number, qpn: number, request: SendRequest): void {
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
    this.#writeHead(at, qpn, (number << 8) | (flags << 16), request.id ?? 0, slice);
    const word = at * kWorkWords;
    if ("remote" in request) {
      this.words[word + 4] = BigInt.asUintN(64, request.remote.address);
      this.#halves[2 * (word + 5)] = request.remote.key;
    }
    if ("immediate" in request) this.#halves[2 * (word + 5) + 1] = request.immediate;
    if (opcode === "send_with_inv") this.#halves[2 * (word + 5)] = request.invalidateKey;
    if (opcode === "atomic_cmp_and_swp") {
      this.words[word + 6] = BigInt.asUintN(64, request.compare);
      this.words[word + 7] = BigInt.asUintN(64, request.swap);
    }
    if (opcode === "atomic_fetch_and_add") this.words[word + 7] = BigInt.asUintN(64, request.add);
    if ("to" in request && request.to !== undefined) {
      this.#halves[2 * (word + 8)] = request.to.address.handle;
      this.#halves[2 * (word + 8) + 1] = request.to.qpn;
      this.#halves[2 * (word + 9)] = request.to.queueKey;
    }
  }

  writeReceive(at: number, qpn: number, { id = 0, local }: ReceiveRequest): void {
    const { address, length, key } = local === undefined ? kNothing : resolveSlice(local);
    // No message fills more, and the field holds no more.
    this.#writeHead(at, qpn, kReceive, id, { address, length: Math.min(length, kMostMessage), key });
  }

  #writeHead(at: number, qpn: number, kind: number, id: number, { address, length, key }: typeof kNothing): void {
    const word = at * kWorkWords;
    this.#halves[2 * word] = qpn;
    this.#halves[2 * word + 1] = kind;
    this.#numbers[word + 1] = id;
    this.#numbers[word + 2] = address;
    this.#halves[2 * (word + 3)] = length;
    this.#halves[2 * (word + 3) + 1] = key;
  }
}

function resolveSlice({ region, offset = 0, length: wanted }: Slice, usual?: number) {
  const length = wanted ?? usual ?? region.byteLength - offset;
  if (!(offset >= 0 && length >= 0 && offset + length <= region.byteLength)) {
    throw new RangeError(`bytes ${offset} to ${offset + length} are not within a region of ${region.byteLength} bytes`);
  }
  return { address: region.start + offset, length, key: region.key };
}

/** What a completion says, before it is known whose it is. */
export interface RawCompletion {
  qpn: number;
  receive: boolean;
  /** Work requests that are done with, unsignaled ones before it too; 0: an event of the queue pair. */
  retired: number;
  completion: Omit<WorkCompletion, "queuePair">;
}

/** Completions on their way up. */
export class CompletionBuffer {
  static readonly kCompletions = 256;
  readonly words = new BigUint64Array(CompletionBuffer.kCompletions * kCompletionWords);
  readonly #halves = new Uint32Array(this.words.buffer);
  readonly #numbers = new Float64Array(this.words.buffer);

  read(at: number): RawCompletion {
    const word = at * kCompletionWords;
    const half = (n: number) => this.#halves[2 * word + n] as number;
    const kind = half(3);
    const receive = ((kind >> 8) & 0xff) === 1;
    const opcode = kOpcodes[(kind >> 16) & 0xff] as (typeof kOpcodes)[number];
    const flags = kind >>> 24;
    return {
      qpn: half(2),
      receive,
      retired: half(7),
      completion: {
        id: this.#numbers[word] as number,
        status: kStatus[(kind & 0xff) as keyof typeof kStatus],
        opcode: receive ? (opcode === "rdma_write_with_imm" ? "recv_rdma_with_imm" : "recv") : opcode,
        byteLength: half(4),
        ...((flags & 1) !== 0 && { immediate: half(5) }),
        ...((flags & 2) !== 0 && { invalidatedKey: half(5) }),
        ...((flags & 4) !== 0 && { sourceQpn: half(6) }),
      },
    };
  }
}
