/** The socket for programs of a NIC: what libraries ask of verbs and of connections, changed; nothing of it outlives its sender. */
import { once } from "node:events";
import { openSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { ProgramBroker } from "../../../src/daemon/programs/broker.js";
import type { ProgramHost } from "../../../src/daemon/programs/session.js";
import { loadNicDaemon } from "../../../src/device/file/load.js";
import { loadAddon } from "../../../src/native/addon.js";
import type { NativeAddon, NativeIpAddress } from "../../../src/native/types.js";
import { gidOfAddress } from "../../../src/wire/address.js";
import { kIdleDevice } from "../../fixtures/program_device.js";
import { type Input, requireThat } from "../input.js";
import type { Part } from "../protocols.js";

const kMac = 0x02_00_00_00_00_01;
const kPeerMac = 0x02_00_00_00_00_02;
const kPeer = "10.0.0.2";
const kConnectionsHello = 0x6d63_7277;
/** Lengths of librdmacm's commands, by their numbers. */
const kCommandBytes = [
  32, 24, 48, 72, 16, 24, 296, 16, 304, 272, 12, 24, 16, 16, 32, 16, 80, 16, 24, 48, 80, 288, 32, 80,
];
const kMost = 8;
/** Time for an answer, ms; some questions wait for a peer that does not answer. */
const kPatienceMs = 20;
const kEndMs = 30_000;

/** Remembers what programs have. */
class Holdings {
  readonly programs = new Map<number, Set<number>>();
  readonly handles = new Set<number>();
  /** A violation; it is kept here because the broker would answer an exception with an errno. */
  fault: string | undefined;
  #last = 0;
  readonly worker: ProgramHost["worker"];

  constructor(descriptor: number) {
    this.worker = {
      openProgram: () => {
        this.programs.set(++this.#last, new Set());
        return { number: this.#last, memory: descriptor, wake: descriptor, address_handles: 4096, memberships: 256 };
      },
      closeProgram: (_: number, program: number) => {
        this.#must(this.programs.delete(program), "a program that was not open is closed");
      },
      createQueuePair: (_: number, { program = 0 }: { program?: number }) => {
        this.programs.get(program)?.add(++this.#last);
        return this.#last;
      },
      modifyQueuePair: (_: number, qpn: number) => this.#must(this.#has(qpn), "changes a queue pair that is nobody's"),
      destroyQueuePair: (_: number, qpn: number) => {
        this.#must(this.#has(qpn), "destroys a queue pair that is nobody's");
        for (const held of this.programs.values()) held.delete(qpn);
        return true;
      },
      createAddressHandle: () => {
        this.handles.add(++this.#last);
        return this.#last;
      },
      destroyAddressHandle: (_: number, handle: number) =>
        this.#must(this.handles.delete(handle), "destroys an address handle that is nobody's"),
      resolve: async (_: number, __: number, { bytes }: NativeIpAddress) => (bytes.join(".") === kPeer ? kPeerMac : 0),
    } as unknown as ProgramHost["worker"];
  }

  #must(holds: boolean, what: string): boolean {
    if (!holds) this.fault ??= what;
    return holds;
  }

  #has = (qpn: number) => [...this.programs.values()].some((held) => held.has(qpn));
}

export async function openPrograms(folder: string): Promise<Part> {
  const addon = loadAddon<NativeAddon>();
  const holdings = new Holdings(openSync("/dev/null", "r+"));
  const text = `name: roce0\ninterface: eth1\naddress: 10.0.0.1\nprograms: true\n`;
  const inspect = () => ({ mac: kMac, mtu: 1500 });
  const { config } = loadNicDaemon("nic.yaml", { inspect: inspect as never, text });
  const broker = await ProgramBroker.open(join(folder, "roce0.verbs"), config, {
    addon,
    worker: holdings.worker,
    queuePairs: 4096,
    device: kIdleDevice,
    link: {
      mac: kMac,
      send: () => true,
      onFrame: () => () => {},
    },
  });
  const size = addon.programRequestBytes();
  return {
    async run(input) {
      const seen: string[] = [];
      const clients: Socket[] = [];
      const key = BigInt(1 + input.below(3));
      for (let more = 1 + input.below(3); more > 0; more--) {
        const style = input.below(4);
        const client = connect(broker.path);
        clients.push(client);
        await once(client, "connect");
        const words =
          style === 0
            ? verbs(input, size)
            : [connectionsHello(style === 1 ? 0 : 1, key), ...(style === 1 ? [] : commands(input, key))];
        const heard = hear(client);
        for (const word of words) {
          const changed = input.once(8) ? changedBytes(input, word) : word;
          if (client.writable) client.write(changed);
        }
        // A word that is cut leaves the other side waiting for the rest.
        await Promise.race([heard.atLeast(words.length), sleep(kPatienceMs)]);
        seen.push(`${style} ${heard.errors().join(" ")}`);
        if (input.once(4)) client.end();
      }
      for (const client of clients) client.destroy();
      const begun = performance.now();
      while (broker.programs().size > 0 || holdings.programs.size > 0 || holdings.handles.size > 0) {
        requireThat(performance.now() - begun < kEndMs, "what a program had is not given back");
        await nextTurn();
      }
      requireThat(holdings.fault === undefined, holdings.fault ?? "");
      return seen;
    },
    close: () => broker.close(),
  };
}

/** Hears answers of the daemon, whose first words are an errno, or 0. */
function hear(client: Socket) {
  const answers: number[] = [];
  let wake = () => {};
  let ended = false;
  client
    .on("data", (bytes: Buffer) => {
      if (bytes.length >= 4) answers.push(bytes.readUInt32LE(0));
      wake();
    })
    .on("error", () => {})
    .on("close", () => {
      ended = true;
      wake();
    });
  return {
    /** Errors of answers, as far as they came one by one. */
    errors: () => [...answers],
    async atLeast(count: number): Promise<void> {
      while (answers.length < count && !ended) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

/** Requests of a library to a NIC: its hello, and then anything, often about things that it has. */
function verbs(input: Input, size: number): Buffer[] {
  const request = (kind: number) => {
    const bytes = Buffer.alloc(size);
    bytes.writeUInt32LE(size, 0);
    bytes.writeUInt32LE(kind, 4);
    return bytes;
  };
  const asked = [request(0)];
  for (let more = input.below(kMost); more > 0; more--) {
    const next = request(1 + input.below(8));
    next.writeUInt32LE(input.below(16), 8);
    next.writeUInt32LE(input.below(2), 12);
    next.writeUInt32LE(input.below(6), 16);
    next.writeUInt32LE(input.pick([256, 1024, 4096, 3]), 20);
    next.set(gidOfAddress(input.pick([kPeer, "10.0.0.1", "239.1.1.1", "fd00::1", "0.0.0.0"])), 48);
    asked.push(next);
  }
  return asked;
}

function connectionsHello(role: number, key: bigint): Buffer {
  const hello = Buffer.alloc(16);
  hello.writeUInt32LE(kConnectionsHello, 0);
  hello.writeUInt32LE(role, 4);
  hello.writeBigUInt64LE(key, 8);
  return hello;
}

/** Commands of librdmacm, with a few numbers in them. */
function commands(input: Input, key: bigint): Buffer[] {
  const asked: Buffer[] = [];
  for (let more = input.below(kMost); more > 0; more--) {
    const kind = input.below(kCommandBytes.length + 1);
    const bytes = Buffer.alloc(kCommandBytes[kind] ?? 16);
    bytes.writeUInt32LE(kind, 0);
    bytes.writeUInt16LE(bytes.length - 8, 4);
    for (let words = input.below(6); words > 0; words--) {
      bytes.writeUInt16LE(
        input.pick([1, 2, 3, 10, 0x0106, 0x0111, 7471, 100, 0xffff]),
        8 + 2 * input.below((bytes.length - 8) / 2),
      );
    }
    const extra = input.take(input.once(3) ? input.below(16) : 0);
    const header = Buffer.alloc(16);
    header.writeUInt32LE(bytes.length, 0);
    header.writeUInt32LE(extra.length, 4);
    header.writeBigUInt64LE(key, 8);
    asked.push(Buffer.concat([header, bytes, extra]));
  }
  return asked;
}

function changedBytes(input: Input, bytes: Buffer): Buffer {
  const changed = Buffer.from(bytes);
  if (input.once(2)) return changed.subarray(0, input.below(changed.length + 1));
  for (let more = 1 + input.below(3); more > 0; more--) changed[input.below(changed.length)] = input.byte();
  return changed;
}
