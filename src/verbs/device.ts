/**
 * A device on which applications make queue pairs: a soft NIC of this process (interface_device.ts), or one of a daemon (nic_device.ts).
 */
import { WeirError } from "../base/error.js";
import type { NativeAddon, QueuePairState, VerbsWorker } from "../native/types.js";
import type { AddressHandle } from "./address_handle.js";
import type { Connector } from "./connector.js";
import { ProtectionDomain } from "./protection_domain.js";
import { CompletionQueue, type CompletionQueueOptions, type DeviceCore, type QueuePair } from "./queue_pair.js";
import type { QueuePairAttributes } from "./types.js";
import { CompletionBuffer, WorkBuffer } from "./work.js";

const kNoWords = new BigUint64Array(0);

export abstract class Device implements DeviceCore {
  /** Name of the network interface. */
  abstract readonly interface: string;
  /** 48-bit number. */
  abstract readonly mac: number;
  abstract readonly vlan: number | undefined;
  /** Largest path MTU, bytes: the part of the interface's MTU that is left for a RoCEv2 payload, a power of two. */
  abstract readonly largestPathMtu: number;
  /** bit/s */
  abstract readonly rate: number;
  /** Attributes that queue pairs use unless told otherwise. */
  abstract readonly defaults: Pick<QueuePairAttributes, "pathMtu" | "priority" | "dscp">;
  /** The native core, for the other parts of this module. */
  abstract readonly native: { addon: NativeAddon; worker: VerbsWorker };
  readonly work = new WorkBuffer();
  readonly #completions = new CompletionBuffer();
  readonly #queuePairs = new Map<number, QueuePair>();
  readonly #queues = new Set<CompletionQueue>();
  readonly #onFailed = new Set<(error: WeirError) => void>();
  #domains = 0;
  #draining = false;
  #closed = false;
  #failure: string | undefined;

  /** Own addresses, without prefix lengths. */
  abstract get addresses(): string[];
  /** Finds the MAC address of the next hop to an IP address. @throws WeirError when nobody answers. */
  abstract resolve(address: string): Promise<number>;
  /**
   * The way to a receiver of datagrams. @throws WeirError when its address is not resolved, or the device has no more handles.
   */
  abstract createAddressHandle(address: string, options?: { dscp?: number }): Promise<AddressHandle>;
  /** Connection management for own addresses of the same IP version as `address`. */
  abstract managerFor(address: string): Connector;
  abstract get managers(): Connector[];
  /** Own address of the same IP version. @throws WeirError when there is none. */
  abstract sourceFor(address: string): string;
  /**
   * Counts since the device was opened, by name; those by priority are summed. Those of connection management are named `cm_` and
   * their name there.
   */
  abstract counters(): Map<string, number>;
  /** Rates, DCQCN's state and counters of the existing queue pairs. For a daemon's NIC `weir show qp` tells them. */
  abstract queuePairStates(): QueuePairState[];
  /** Notices when the poll thread has failed. Queue pairs that wait for it call this. */
  abstract readRecords(): void;
  /** Tells peers, before the device is closed. */
  protected abstract end(): void;
  /** Gives up everything that is native. */
  protected abstract release(): void;

  get closed(): boolean {
    return this.#closed;
  }
  /** True once its poll thread has ended by itself, or its daemon is gone: nothing but close() is of use. */
  get failed(): boolean {
    return this.#failure !== undefined;
  }
  /** True while it is neither closed nor failed. */
  get works(): boolean {
    return !this.#closed && this.#failure === undefined;
  }
  protected get failure(): string | undefined {
    return this.#failure;
  }

  allocateProtectionDomain(): ProtectionDomain {
    this.requireOpen();
    return new ProtectionDomain(this, ++this.#domains);
  }

  createCompletionQueue(options: CompletionQueueOptions = {}): CompletionQueue {
    this.requireOpen();
    const queue = new CompletionQueue(this, options);
    this.#queues.add(queue);
    return queue;
  }

  /** Calls back once, when the device fails: its poll thread has ended by itself, or its daemon is gone. */
  onFailed(callback: (error: WeirError) => void): void {
    this.#onFailed.add(callback);
  }

  /** Everything made on the device is void afterwards; peers are told that connections end. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.end();
    this.#closed = true;
    this.release();
    for (const queue of this.#queues) queue.wake();
  }

  /**
   * Moves the NIC along in the caller's thread, which waits for something and polls for it: completions, or memory that a peer
   * writes to. No other thread has to be woken for packets that come, and a short message would wait for that. Returns whether
   * anything has come or gone. A caller that then goes to sleep calls rest() before.
   */
  progress(): boolean {
    if (!this.works) return false;
    // In a callback for a completion those behind it are still to be read.
    const words = this.#draining ? kNoWords : this.#completions.words;
    const count = this.native.worker.progress(0, words);
    if (count > 0) this.#deliver(count);
    return count >= 0;
  }
  /** To be called after progress(): the device's own thread takes over at once instead of within some 3 ms. */
  rest(): void {
    if (this.works) this.native.worker.rest();
  }

  /** Brings completions to their queues. Completion queues call this. */
  drain(): void {
    if (!this.works || this.#draining) return;
    const count = this.native.worker.drainCompletions(0, this.#completions.words);
    if (count > 0) this.#deliver(count);
  }

  /** Delivers `count` records of completions that have been read, and those that still wait. */
  #deliver(count: number): void {
    const found = this.#completions;
    this.#draining = true;
    try {
      for (let read = count; ; read = this.native.worker.drainCompletions(0, found.words)) {
        for (let i = 0; i < read; i++) {
          const pair = this.#queuePairs.get(found.qpn(i));
          if (pair === undefined) continue;
          const times = found.times(i);
          const step = pair.joins(found.receive(i)) ? times : 1;
          for (let told = 0; told < times; told += step) {
            try {
              pair.take(found.read(i, pair, step), found.receive(i), found.retired(i) * step);
            } catch (error) {
              // The application's callback failed: the application hears of that, and its other completions are not lost.
              process.nextTick(() => {
                throw error;
              });
            }
            if (this.#closed) return;
          }
        }
        if (read < CompletionBuffer.kCompletions) return;
      }
    } finally {
      this.#draining = false;
    }
  }

  /** Adds a queue pair; queue pairs call this. */
  attach(pair: QueuePair): void {
    this.#queuePairs.set(pair.qpn, pair);
  }
  detach(pair: QueuePair): void {
    this.#queuePairs.delete(pair.qpn);
  }

  /** @throws WeirError when the device is closed or its worker has failed. */
  requireOpen(): void {
    if (this.#failure !== undefined) throw this.#error();
    if (this.#closed) throw new WeirError("the device is closed");
  }

  protected fail(reason: string): void {
    if (this.#failure !== undefined) return;
    this.#failure = reason;
    for (const queue of this.#queues) queue.wake();
    const error = this.#error();
    for (const callback of this.#onFailed) callback(error);
  }

  #error(): WeirError {
    return new WeirError(`the device has failed: ${this.#failure}`, { hint: "close it, and open another" });
  }
}
