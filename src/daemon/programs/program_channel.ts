/**
 * A channel of events, for which a program of librdmacm has opened /dev/infiniband/rdma_cm, and the ids whose events come by it.
 * Each event that waits is a byte on the channel's socket, so that the program can poll for it.
 */
import { constants } from "node:os";
import type { Duplex } from "node:stream";
import type { IdHost } from "./id_host.js";
import type { NicAddress } from "./nic_address.js";
import { type IdOwner, ProgramId } from "./program_id.js";
import { Refusal } from "./refusal.js";
import { type Command, type ConnectionEvent, eventAnswer, kCommand, type SocketAddress, wordAnswer } from "./ucma.js";

const { EAGAIN, EBADF, EINVAL, ENOENT, EPROTONOSUPPORT } = constants.errno;
/** Most bytes that are written at once. */
const kMostBytes = 4096;

interface Waiting {
  /** Id that the event belongs to; for a request the listener. */
  id: ProgramId;
  event: ConnectionEvent;
  /** Id of the new connection, for a request. */
  asked?: ProgramId;
  /** Membership that the event belongs to as well. */
  membership?: Membership;
}

/** Membership of an id in a multicast group. */
interface Membership {
  id: ProgramId;
  number: number;
  /** The program's name of it. */
  uid: bigint;
  /** Number of events that the program has had. */
  reported: number;
  leave(): void;
}

/** The program that a channel belongs to. */
export interface Program {
  readonly pid: number;
  readonly uid: number;
}

/** All channels of a NIC, with the numbers and limits that they share. */
export interface ChannelHost extends IdHost {
  /** Returns a number for one more id of the program. @throws Refusal when it or its user has too many. */
  newNumber(program: Program): number;
  freeNumber(number: number, program: Program): void;
  /** Counts one membership more, or less, in a multicast group. @throws Refusal when it has too many. */
  countMembership(program: Program, change: 1 | -1): void;
  mayNameQueuePair(uid: number, qpn: number): boolean;
  channel(key: bigint, uid: number): ProgramChannel | undefined;
}

/** Answer to a command, and how many bytes of the channel's socket have no event any more. */
export interface CommandAnswer {
  bytes: Buffer;
  taken: number;
}

export class ProgramChannel implements IdOwner {
  readonly #ids = new Map<number, ProgramId>();
  /** Number of events of each id that the program has had. */
  readonly #reported = new Map<ProgramId, number>();
  /** Memberships by their numbers, which are no ids'. */
  readonly #memberships = new Map<number, Membership>();
  #waiting: Waiting[] = [];
  /** Bytes that are still to be written: a program need not read them. */
  #owed = 0;
  #writing = false;

  constructor(
    private readonly host: ChannelHost,
    private readonly socket: Duplex,
    readonly pid: number,
    readonly uid: number,
  ) {}

  get ids(): number {
    return this.#ids.size;
  }

  /** @throws Refusal */
  run(command: Command): CommandAnswer {
    if (command.kind === kCommand.getEvent) return answered(this.#nextEvent());
    if (command.kind === kCommand.createId)
      return answered(wordAnswer(this.#create(command.space, command.uid).number));
    if (command.kind === kCommand.migrateId) return this.#take(command.id, command.from);
    if (command.kind === kCommand.leaveGroup) return this.#leave(command.id);
    const id = this.#ids.get(command.id);
    if (id === undefined) throw new Refusal(ENOENT);
    switch (command.kind) {
      case kCommand.destroyId:
        return this.#destroy(id);
      case kCommand.bindIp:
        id.bind(command.address);
        break;
      case kCommand.resolveIp:
        id.resolveAddress(command.source, command.destination, command.timeoutMs);
        break;
      case kCommand.resolveRoute:
        id.resolveRoute();
        break;
      case kCommand.queryRoute:
        return answered(id.route());
      case kCommand.connect:
        id.connect(command.parameters);
        break;
      case kCommand.listen:
        id.listen(command.backlog);
        break;
      case kCommand.accept:
        id.accept(command.uid, command.parameters);
        break;
      case kCommand.reject:
        id.reject(command.privateData, command.reason);
        break;
      case kCommand.disconnect:
        id.disconnect();
        break;
      case kCommand.initQpAttr:
        return answered(id.attributes(command.state));
      case kCommand.setOption:
        id.setOption(command.level, command.name, command.value);
        break;
      case kCommand.joinGroup:
        return answered(wordAnswer(this.#join(id, command.uid, command.address).number));
      case kCommand.notify:
        id.notify(command.event);
        break;
    }
    return answered(Buffer.alloc(0));
  }

  event(id: ProgramId, event: ConnectionEvent): void {
    this.#push({ id, event });
  }

  connectRequest(listener: ProgramId, event: ConnectionEvent): ProgramId {
    const asked = this.#create(listener.space, 0n);
    this.#push({ id: listener, event, asked });
    return asked;
  }

  mayNameQueuePair(qpn: number): boolean {
    return this.host.mayNameQueuePair(this.uid, qpn);
  }

  /** The NIC has other addresses. */
  takeAddresses(came: readonly NicAddress[], went: readonly NicAddress[]): void {
    for (const id of this.#ids.values()) id.takeAddresses(came, went);
  }

  /** Tells whether any of its ids has this address. */
  has(address: NicAddress): boolean {
    return [...this.#ids.values()].some((id) => id.has(address));
  }

  /** Ends all ids, and tells peers. Idempotent. */
  close(): void {
    this.#waiting = [];
    for (const id of this.#ids.values()) this.#forget(id);
  }

  #create(space: number, uid: bigint): ProgramId {
    if (this.host.ports[space] === undefined) throw new Refusal(EPROTONOSUPPORT);
    const number = this.host.newNumber(this);
    const id = new ProgramId(this.host, this, number, space, uid);
    this.#ids.set(number, id);
    return id;
  }

  #push(waiting: Waiting): void {
    this.#waiting.push(waiting);
    this.#owed++;
    this.#write();
  }

  #write(): void {
    if (this.#writing || this.#owed === 0) return;
    const bytes = Buffer.alloc(Math.min(this.#owed, kMostBytes));
    this.#owed -= bytes.length;
    this.#writing = true;
    this.socket.write(bytes, () => {
      this.#writing = false;
      this.#write();
    });
  }

  /** Takes events away; `written` of their bytes are on their way to the program. */
  #withdraw(isOf: (waiting: Waiting) => boolean): { events: Waiting[]; written: number } {
    const events = this.#waiting.filter(isOf);
    this.#waiting = this.#waiting.filter((waiting) => !isOf(waiting));
    const unwritten = Math.min(this.#owed, events.length);
    this.#owed -= unwritten;
    return { events, written: events.length - unwritten };
  }

  #nextEvent(): Buffer {
    const waiting = this.#waiting.shift();
    if (waiting === undefined) throw new Refusal(EAGAIN);
    const { id, event, asked, membership } = waiting;
    this.#reported.set(id, (this.#reported.get(id) ?? 0) + 1);
    if (asked !== undefined) id.backlog++;
    if (membership !== undefined) membership.reported++;
    return eventAnswer((membership ?? id).uid, (membership ?? asked ?? id).number, event, id.isDatagram);
  }

  #destroy(id: ProgramId): CommandAnswer {
    const { events, written } = this.#withdraw((waiting) => waiting.id === id);
    const reported = this.#reported.get(id) ?? 0;
    this.#forget(id);
    for (const { asked } of events) if (asked !== undefined) this.#forget(asked);
    return { bytes: wordAnswer(reported), taken: written };
  }

  #join(id: ProgramId, uid: bigint, group: SocketAddress | undefined): Membership {
    const number = this.host.newNumber(this);
    let counted = false;
    try {
      this.host.countMembership(this, 1);
      counted = true;
      const { event, leave } = id.joinGroup(group);
      const membership = { id, number, uid, reported: 0, leave };
      this.#memberships.set(number, membership);
      this.#push({ id, event, membership });
      return membership;
    } catch (error) {
      if (counted) this.host.countMembership(this, -1);
      this.host.freeNumber(number, this);
      throw error;
    }
  }

  #leave(number: number): CommandAnswer {
    const membership = this.#memberships.get(number);
    if (membership === undefined) throw new Refusal(ENOENT);
    const { written } = this.#withdraw((waiting) => waiting.membership === membership);
    this.#end(membership);
    return { bytes: wordAnswer(membership.reported), taken: written };
  }

  #end(membership: Membership): void {
    this.#memberships.delete(membership.number);
    membership.leave();
    this.host.countMembership(this, -1);
    this.host.freeNumber(membership.number, this);
  }

  #forget(id: ProgramId): void {
    for (const membership of this.#memberships.values()) if (membership.id === id) this.#end(membership);
    this.#ids.delete(id.number);
    this.#reported.delete(id);
    id.destroy();
    this.host.freeNumber(id.number, this);
  }

  /** Makes an id of another channel one of this, with its events. */
  #take(number: number, from: bigint): CommandAnswer {
    const other = this.host.channel(from, this.uid);
    if (other === undefined) throw new Refusal(EBADF);
    const id = other.#ids.get(number);
    if (id === undefined) throw new Refusal(ENOENT);
    if (other.pid !== this.pid) throw new Refusal(EINVAL);
    const reported = other.#reported.get(id) ?? 0;
    if (other === this) return answered(wordAnswer(reported));
    const { events, written } = other.#withdraw((waiting) => waiting.id === id);
    for (const membership of other.#memberships.values()) {
      if (membership.id !== id) continue;
      other.#memberships.delete(membership.number);
      this.#memberships.set(membership.number, membership);
    }
    other.#ids.delete(number);
    other.#reported.delete(id);
    this.#ids.set(number, id);
    this.#reported.set(id, reported);
    id.owner = this;
    for (const waiting of events) {
      // Requests for connections come along with their listener.
      if (waiting.asked !== undefined) {
        other.#ids.delete(waiting.asked.number);
        this.#ids.set(waiting.asked.number, waiting.asked);
        waiting.asked.owner = this;
      }
      this.#push(waiting);
    }
    return { bytes: wordAnswer(reported), taken: written };
  }
}

const answered = (bytes: Buffer): CommandAnswer => ({ bytes, taken: 0 });
