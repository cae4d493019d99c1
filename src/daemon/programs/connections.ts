/**
 * Serves programs of librdmacm at the socket of their NIC. A program has two kinds of connection there: one for each channel of
 * events (which it takes for /dev/infiniband/rdma_cm; native/verbs/connection_channels.cc), and one for its commands, which name
 * the channel by its key. Both begin with the same hello; all numbers are in the host's order of bytes.
 *
 *     hello    u32 kHello, u32 role (0 channel, 1 commands), u64 key of the channel; answer: u32 errno
 *     command  u32 length of the command, u32 length of the data it points to, u64 key, both; answer: u32 errno, u32 length, u32
 *     taken, 0, bytes channel  a byte for each event that waits
 */
import { randomInt } from "node:crypto";
import type { Socket } from "node:net";
import { constants } from "node:os";
import type { Duplex } from "node:stream";
import { guidOfMac } from "../../wire/address.js";
import { ConnectionManager } from "../../wire/cm/connection_manager.js";
import type { GroupReports } from "../../wire/cm/group_reports.js";
import { type Clock, type FrameLink, type Resolver, systemClock } from "../../wire/cm/link.js";
import type { PathMtu } from "../../wire/cm/messages.js";
import { readEthernet } from "../../wire/ethernet.js";
import type { NicAddress } from "./nic_address.js";
import { type ChannelHost, type CommandAnswer, type Program, ProgramChannel } from "./program_channel.js";
import { ProgramListeners } from "./program_listeners.js";
import { PortSpace } from "./program_ports.js";
import { Refusal } from "./refusal.js";
import { RequestBudget } from "./request_budget.js";
import { Shares } from "./shares.js";
import { isKnown, kPortSpace, readCommand } from "./ucma.js";

const { EBADF, EEXIST, EINVAL, EIO, EMFILE, ENOMEM, EOPNOTSUPP, EPROTO } = constants.errno;
/** Differs from any length of a request of native/endpoint/program_protocol.h, which begins with its own. */
const kHello = 0x6d63_7277;
const kRole = { channel: 0, commands: 1 };
export const kHelloBytes = 16;
const kCommandHeader = 16;
const kMostCommand = 512;
const kMostExtra = 512;
/** Bytes of commands that may wait: no more are read. */
const kMostPending = 64 * 1024;
/** Ids of one program; librdmacm knows numbers of ids up to 65535. */
const kMostIds = 4096;
const kMostChannels = 4096;
/** Memberships of one program in multicast groups. */
const kMostMemberships = 256;
const kMostNumbers = 65_535;
/** How often it is looked whether ids have lost addresses still. */
const kLookMs = 1000;

/** An address of the NIC, and its index in the table of GIDs. */
export interface OwnAddress {
  address: string;
  index: number;
  neighbours: Resolver;
}

/** One at which connections are served, or were before the NIC lost it. */
interface ServedAddress extends NicAddress {
  index: number;
  manager: ConnectionManager;
  listeners: ProgramListeners;
}

/** `S`: what comes of programs. */
export interface ConnectionHost<S extends Duplex = Socket> {
  /** At the beginning. */
  addresses: readonly OwnAddress[];
  pathMtu(): number;
  link: FrameLink;
  /** Groups that the link's switches are told of. */
  groups: Pick<GroupReports, "join">;
  /** Memberships of all users in groups: those of queue pairs count, too. */
  memberships: Shares;
  credentials(socket: S): { pid: number; uid: number };
  /** Tells whether a program of this user may name the queue pair to a peer. */
  mayNameQueuePair(uid: number, qpn: number): boolean;
  clock?: Clock;
  /** Returns 32 random bits. */
  random?: () => number;
  /** Limits the rate of one connection's commands. */
  budget?: () => Pick<RequestBudget, "next">;
}

/** Tells whether the first bytes of a program are meant for `ProgramConnections`. */
export function isHello(bytes: Buffer): boolean {
  return bytes.length >= 4 && bytes.readUInt32LE(0) === kHello;
}

export class ProgramConnections<S extends Duplex = Socket> implements ChannelHost {
  readonly guid: Buffer;
  readonly clock: Clock;
  readonly random: () => number;
  readonly groups: Pick<GroupReports, "join">;
  readonly ports: Readonly<Record<number, PortSpace>> = {
    [kPortSpace.tcp]: new PortSpace(),
    [kPortSpace.udp]: new PortSpace(),
  };
  readonly #channels = new Map<bigint, ProgramChannel>();
  /** Numbers of ids that are in use, and how many a program has. */
  readonly #numbers = new Set<number>();
  readonly #counts = new Map<number, number>();
  readonly #shares = new Shares(kMostNumbers);
  /** Memberships of each program in multicast groups. */
  readonly #memberships = new Map<number, number>();
  #lastNumber = 0;
  readonly #link: FrameLink;
  /** In the order of the table of GIDs. */
  #addresses: readonly ServedAddress[] = [];
  /** Addresses that the NIC has lost, and ids have: their connections go on. */
  #lost: readonly ServedAddress[] = [];
  #cancelLook = () => {};

  constructor(private readonly host: ConnectionHost<S>) {
    this.guid = guidOfMac(host.link.mac);
    this.groups = host.groups;
    const clock = host.clock ?? systemClock;
    this.clock = clock;
    this.random = host.random ?? (() => randomInt(2 ** 32));
    this.#link = withLoopback(host.link);
    this.takeAddresses(host.addresses);
  }

  get addresses(): readonly NicAddress[] {
    return this.#addresses;
  }

  get pathMtu(): PathMtu {
    return this.host.pathMtu() as PathMtu;
  }

  /** Tells whether a program listens at the port, for connections or datagrams. */
  isListenedAt(port: number): boolean {
    return Object.values(this.ports).some((space) => space.isListenedAt(port));
  }

  /** Takes the addresses that the NIC has now. */
  takeAddresses(all: readonly OwnAddress[]): void {
    const before = this.#addresses;
    const isSame = (one: NicAddress) =>
      all.some(({ address, index }) => address === one.address && index === one.index);
    const stay = before.filter(isSame);
    const went = before.filter((one) => !stay.includes(one));
    const known = [...this.#lost, ...went];
    const came = all
      .filter(({ address }) => !stay.some((one) => one.address === address))
      .map((one) => {
        const again = known.find(({ address }) => address === one.address);
        return again === undefined ? this.#served(one) : Object.assign(again, { index: one.index });
      });
    this.#addresses = [...stay, ...came].sort((a, b) => a.index - b.index);
    this.#lost = known.filter((one) => !came.includes(one));
    for (const channel of this.#channels.values()) channel.takeAddresses(came, went);
    this.#cancelLook();
    this.#endUnused();
  }

  #served({ address, index, neighbours }: OwnAddress): ServedAddress {
    const { clock, random } = this;
    const manager = new ConnectionManager({ link: this.#link, neighbours, address, clock, random });
    const find = (peer: string) => neighbours.resolve(peer);
    return { address, index, manager, listeners: new ProgramListeners(manager, clock), find };
  }

  /** Ends what serves lost addresses that no id has any more. */
  #endUnused(): void {
    const isUsed = (one: NicAddress) => [...this.#channels.values()].some((channel) => channel.has(one));
    const unused = this.#lost.filter((one) => !isUsed(one));
    this.#lost = this.#lost.filter((one) => !unused.includes(one));
    end(unused);
    if (this.#lost.length > 0) this.#cancelLook = this.clock.after(kLookMs, () => this.#endUnused());
  }

  /** Takes a connection over, whose end others handle; `first` has the bytes so far, at least a whole hello. */
  serve(socket: S, first: Buffer): void {
    const role = first.readUInt32LE(4);
    const key = first.readBigUInt64LE(8);
    const error = role === kRole.channel ? this.#open(socket, key) : role === kRole.commands ? 0 : EPROTO;
    socket.write(words(error));
    const more = first.subarray(kHelloBytes);
    if (error !== 0) socket.destroy();
    else if (role === kRole.commands) this.#takeCommands(socket, this.host.credentials(socket).uid, more);
    // A program that goes on to talk on a channel is cut off.
    else if (more.length > 0) socket.destroy();
    else socket.on("data", () => socket.destroy());
  }

  mayNameQueuePair(uid: number, qpn: number): boolean {
    return this.host.mayNameQueuePair(uid, qpn);
  }

  channel(key: bigint, uid: number): ProgramChannel | undefined {
    const channel = this.#channels.get(key);
    return channel?.uid === uid ? channel : undefined;
  }

  newNumber({ pid, uid }: Program): number {
    const count = this.#counts.get(pid) ?? 0;
    if (count >= kMostIds || !this.#shares.take(uid)) throw new Refusal(ENOMEM);
    do {
      this.#lastNumber = (this.#lastNumber % kMostNumbers) + 1;
    } while (this.#numbers.has(this.#lastNumber));
    this.#counts.set(pid, count + 1);
    this.#numbers.add(this.#lastNumber);
    return this.#lastNumber;
  }

  freeNumber(number: number, { pid, uid }: Program): void {
    const count = this.#counts.get(pid) ?? 0;
    if (!this.#numbers.delete(number)) return;
    this.#shares.give(uid);
    if (count > 1) this.#counts.set(pid, count - 1);
    else this.#counts.delete(pid);
  }

  countMembership({ pid, uid }: Program, change: 1 | -1): void {
    const count = (this.#memberships.get(pid) ?? 0) + change;
    const { memberships } = this.host;
    if (count > kMostMemberships || (change > 0 && !memberships.take(uid))) throw new Refusal(ENOMEM);
    if (change < 0) memberships.give(uid);
    if (count > 0) this.#memberships.set(pid, count);
    else this.#memberships.delete(pid);
  }

  /** Tells peers. Idempotent. */
  close(): void {
    for (const { listeners } of this.#addresses) listeners.close();
    for (const channel of this.#channels.values()) channel.close();
    this.#channels.clear();
    this.#cancelLook();
    end([...this.#addresses, ...this.#lost]);
    this.#addresses = this.#lost = [];
  }

  #open(socket: S, key: bigint): number {
    const { pid, uid } = this.host.credentials(socket);
    if (this.#channels.has(key)) return EEXIST;
    let held = 0;
    for (const channel of this.#channels.values()) if (channel.pid === pid) held++;
    if (held >= kMostChannels) return EMFILE;
    const channel = new ProgramChannel(this, socket, pid, uid);
    this.#channels.set(key, channel);
    socket.on("close", () => {
      this.#channels.delete(key);
      channel.close();
    });
    return 0;
  }

  /** Runs commands in their order, as fast as the connection's budget allows. Malformed ones end the connection. */
  #takeCommands(socket: S, uid: number, first: Buffer): void {
    const budget = this.host.budget?.() ?? new RequestBudget();
    let pending = Buffer.alloc(0);
    let working = false;
    let wake = () => {};
    const work = async () => {
      if (working) return;
      working = true;
      for (let bytes = whole(pending); bytes !== 0 && !socket.destroyed; bytes = whole(pending)) {
        if (bytes === undefined) {
          socket.destroy();
          return;
        }
        await budget.next();
        if (socket.destroyed) return;
        const one = pending.subarray(0, bytes);
        pending = pending.subarray(bytes);
        if (pending.length < kMostPending) socket.resume();
        socket.write(this.#answer(uid, one));
        // A program that does not read its answers is not heard.
        if (socket.writableNeedDrain && !socket.destroyed) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
      working = false;
    };
    const receive = (bytes: Buffer) => {
      pending = Buffer.concat([pending, bytes]);
      if (pending.length >= kMostPending) socket.pause();
      void work();
    };
    socket
      .on("data", receive)
      .on("drain", () => wake())
      .on("close", () => wake());
    receive(first);
  }

  /** @param bytes A whole command. */
  #answer(uid: number, bytes: Buffer): Buffer {
    const more = bytes.readUInt32LE(4);
    const command = bytes.subarray(kCommandHeader, bytes.length - more);
    const [error, answer] = this.#run(bytes.readBigUInt64LE(8), uid, command, bytes.subarray(bytes.length - more));
    return Buffer.concat([words(error, answer.bytes.length, answer.taken, 0), answer.bytes]);
  }

  #run(key: bigint, uid: number, bytes: Buffer, extra: Buffer): [number, CommandAnswer] {
    const none = { bytes: Buffer.alloc(0), taken: 0 };
    const channel = this.channel(key, uid);
    if (channel === undefined) return [EBADF, none];
    const command = readCommand(bytes, Buffer.from(extra));
    if (command === undefined) return [isKnown(bytes) ? EINVAL : EOPNOTSUPP, none];
    try {
      return [0, channel.run(command)];
    } catch (error) {
      return [error instanceof Refusal ? error.errno : EIO, none];
    }
  }
}

function end(addresses: readonly ServedAddress[]): void {
  for (const { listeners, manager } of addresses) {
    listeners.close();
    manager.close();
  }
}

/** Programs on one NIC reach each other, too: frames for the NIC itself come back. */
function withLoopback(link: FrameLink): FrameLink {
  const listeners = new Set<(frame: Buffer) => void>();
  return {
    mac: link.mac,
    send: (frame) => {
      const bytes = Buffer.from(frame);
      if (readEthernet(bytes)?.destination !== link.mac) return link.send(frame);
      setImmediate(() => {
        for (const listener of listeners) listener(bytes);
      });
      return true;
    },
    onFrame: (listener) => {
      listeners.add(listener);
      const end = link.onFrame(listener);
      return () => {
        listeners.delete(listener);
        end();
      };
    },
  };
}

/** Number of bytes of the first command; 0: it is not there as a whole. Undefined: it is too long. */
function whole(bytes: Buffer): number | undefined {
  if (bytes.length < kCommandHeader) return 0;
  const [length, more] = [bytes.readUInt32LE(0), bytes.readUInt32LE(4)];
  if (length > kMostCommand || more > kMostExtra) return undefined;
  const end = kCommandHeader + length + more;
  return bytes.length < end ? 0 : end;
}

function words(...values: number[]): Buffer {
  const out = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => {
    out.writeUInt32LE(value, 4 * i);
  });
  return out;
}
