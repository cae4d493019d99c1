/**
 * A peer that sends what it likes: frames built byte by byte in TypeScript, out of the port of a NIC that knows no connection. It
 * hears answers to its queue pair 1.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { composeNicWorker } from "../../src/device/compose.js";
import { loadNicDaemon } from "../../src/device/file/load.js";
import { inspectInterface } from "../../src/host/interface.js";
import { loadAddon } from "../../src/native/addon.js";
import type { NativeAddon, NativeWorker, WorkerConfig } from "../../src/native/types.js";
import { addressBytes } from "../../src/wire/address.js";
import { icrc, internetChecksum } from "../../src/wire/checksum.js";
import { buildEthernet } from "../../src/wire/ethernet.js";
import { kEtherType } from "../../src/wire/headers.js";

export const kPeerMac = 0x02_57_00_00_00_09;
export function macText(mac: number): string {
  return mac
    .toString(16)
    .padStart(12, "0")
    .replace(/..(?=.)/g, "$&:");
}

/** Queue pair to which answers have to go in order to be heard. */
export const kPeerQpn = 1;

export const kOpcode = {
  sendFirst: 0x00,
  sendMiddle: 0x01,
  sendLast: 0x02,
  sendOnly: 0x04,
  writeFirst: 0x06,
  writeMiddle: 0x07,
  writeLast: 0x08,
  writeOnly: 0x0a,
  readRequest: 0x0c,
  readResponseOnly: 0x10,
  acknowledge: 0x11,
  atomicAcknowledge: 0x12,
  compareSwap: 0x13,
  fetchAdd: 0x14,
  sendOnlyInvalidate: 0x17,
  reserved: 0x1f,
  ucWriteOnly: 0x2a,
  udSendOnly: 0x64,
  cnp: 0x81,
} as const;

/** MAC address and IP address of the victim, and the address from which frames claim to come. */
export interface Route {
  mac: number;
  source: string;
  destination: string;
}

/** A RoCEv2 packet; fields that are left out are as they should be. */
export interface Packet {
  opcode: number;
  qpn: number;
  psn: number;
  /** Extension headers: RETH, AETH ... */
  extension?: Buffer;
  payload?: Buffer;
  partitionKey?: number;
  transportVersion?: number;
  migration?: boolean;
  /** Gives it a wrong ICRC. */
  corrupt?: boolean;
}

/** An Ethernet frame. */
export function roceFrame({ mac, source, destination }: Route, packet: Packet): Buffer {
  const payload = packet.payload ?? Buffer.alloc(0);
  const pad = -payload.length & 3;
  const bth = Buffer.alloc(12);
  bth[0] = packet.opcode;
  bth[1] = (packet.migration ? 0x40 : 0) | (pad << 4) | (packet.transportVersion ?? 0);
  bth.writeUInt16BE(packet.partitionKey ?? 0xffff, 2);
  bth.writeUInt32BE(packet.qpn, 4);
  bth.writeUInt32BE((0x8000_0000 | packet.psn) >>> 0, 8); // asks for an acknowledgement
  const body = Buffer.concat([bth, packet.extension ?? Buffer.alloc(0), payload, Buffer.alloc(pad + 4)]);
  const udp = Buffer.alloc(8);
  udp.writeUInt16BE(0xc123, 0);
  udp.writeUInt16BE(4791, 2);
  udp.writeUInt16BE(8 + body.length, 4);
  const ip = ipHeader(source, destination, 17, 8 + body.length);
  const bytes = Buffer.concat([ip, udp, body]);
  bytes.writeUInt32LE((icrc(bytes) ^ (packet.corrupt ? 1 : 0)) >>> 0, bytes.length - 4);
  return ethernet(mac, source.includes(":") ? kEtherType.ipv6 : kEtherType.ipv4, bytes);
}

/** A frame that is padded no further than to Ethernet's least length. */
export function ethernet(mac: number, type: number, payload: Buffer): Buffer {
  return buildEthernet(mac, kPeerMac, type, payload);
}

function ipHeader(source: string, destination: string, protocol: number, length: number): Buffer {
  const [from, to] = [addressBytes(source), addressBytes(destination)];
  if (from.length === 16) {
    const header = Buffer.alloc(40);
    header[0] = 0x60;
    header.writeUInt16BE(length, 4);
    header.set([protocol, 64, ...from, ...to], 6);
    return header;
  }
  const header = Buffer.alloc(20);
  header[0] = 0x45;
  header.writeUInt16BE(20 + length, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(0x4000, 6);
  header.set([64, protocol, 0, 0, ...from, ...to], 8);
  header.writeUInt16BE(internetChecksum(header), 10);
  return header;
}

export function reth(address: bigint, key: number, length: number): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeBigUInt64BE(BigInt.asUintN(64, address), 0);
  bytes.writeUInt32BE(key, 8);
  bytes.writeUInt32BE(length, 12);
  return bytes;
}

/** AtomicETH. */
export function atomic(address: bigint, key: number, swapOrAdd: bigint, compare = 0n): Buffer {
  const bytes = Buffer.alloc(28);
  bytes.writeBigUInt64BE(address, 0);
  bytes.writeUInt32BE(key, 8);
  bytes.writeBigUInt64BE(swapOrAdd, 12);
  bytes.writeBigUInt64BE(compare, 20);
  return bytes;
}

export function word(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => {
    bytes.writeUInt32BE(value >>> 0, 4 * i);
  });
  return bytes;
}

/** A response of the victim's, over IPv4. */
export interface Answer {
  opcode: number;
  psn: number;
  /** Syndrome of an answer with an AETH. */
  syndrome?: number;
  /** Bytes behind the AETH. */
  rest: Buffer;
}

/** Returns undefined for anything but a RoCEv2 packet over IPv4 to our queue pair. @throws Error when its ICRC is wrong. */
function readAnswer(frame: Buffer): Answer | undefined {
  if (frame.readUInt16BE(12) !== kEtherType.ipv4 || frame[23] !== 17 || frame.readUInt16BE(36) !== 4791) return;
  const ip = frame.subarray(14, 14 + frame.readUInt16BE(16));
  if (ip.readUInt32LE(ip.length - 4) !== icrc(ip)) throw new Error("an answer with a wrong ICRC");
  const bth = ip.subarray(28, -4);
  const opcode = bth.readUInt8(0);
  const hasAeth = opcode >= 0x0d && opcode <= 0x12 && opcode !== 0x0e;
  return {
    opcode,
    psn: bth.readUInt32BE(8) & 0xff_ffff,
    ...(hasAeth && { syndrome: bth.readUInt8(12) }),
    rest: bth.subarray(hasAeth ? 16 : 12),
  };
}

export class BadPeer {
  /** All that came to our slow path: answers, ARP, neighbour discovery. */
  readonly heard: Buffer[] = [];
  readonly #worker: NativeWorker;
  #closed = false;

  private constructor(
    private readonly addon: NativeAddon,
    composed: WorkerConfig,
  ) {
    this.#worker = new addon.Worker(composed, () => {
      if (!this.#closed) this.heard.push(...this.#worker.drainPunted().map(({ bytes }) => bytes));
    });
  }

  /** Makes one on an interface in the namespace of this path; `address` is IPv4. */
  static async create(place: { interface: string; namespace: string }, address: string): Promise<BadPeer> {
    const mac = kPeerMac
      .toString(16)
      .padStart(12, "0")
      .replace(/..(?=.)/g, "$&:");
    const options = { inspect: inspectInterface };
    const { config } = loadNicDaemon("bad peer", { ...options, text: JSON.stringify({ ...place, mac, address }) });
    const composed = composeNicWorker(config);
    // It hears what a NIC would take for itself.
    const own = { verbs_queue_pairs: 1, memory_regions: 1, neighbours: undefined };
    for (const nic of composed.nics) Object.assign(nic, own);
    const peer = new BadPeer(loadAddon<NativeAddon>(), composed);
    try {
      peer.#worker.open();
      peer.#worker.begin(peer.addon.monotonicNow());
      while (peer.#worker.manifest() === undefined) await sleep(1);
      return peer;
    } catch (error) {
      peer.close();
      throw error;
    }
  }

  /** Answers that have been heard, from number `from` on. */
  answers(from: number): Answer[] {
    return this.heard.slice(from).flatMap((frame) => readAnswer(frame) ?? []);
  }

  /** Sends frames in this order. */
  async send(...frames: Buffer[]): Promise<void> {
    for (const frame of frames) while (!this.#worker.inject(0, 0, frame)) await sleep(1);
  }

  close(): void {
    this.#closed = true;
    this.#worker.close();
  }
}
