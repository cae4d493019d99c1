/**
 * Connection management for programs of librdmacm in virtual time: that of a daemon, at each host's NIC, whose messages cross the
 * simulated network and whose timers are virtual. The simulation stops when there is something to hear, and time with it.
 */
import { constants } from "node:os";
import { Duplex } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { WeirError } from "../../base/error.js";
import { Random } from "../../base/random.js";
import { isHello, kHelloBytes, ProgramConnections } from "../../daemon/programs/connections.js";
import { Refusal } from "../../daemon/programs/refusal.js";
import { Shares } from "../../daemon/programs/shares.js";
import type { HostNews, NativeSimulation } from "../../native/simulation_types.js";
import { isGroup, macOfGroup } from "../../wire/address.js";
import type { FrameLink, Resolver } from "../../wire/cm/link.js";
import { VirtualClock } from "./virtual_clock.js";

const kMostMemberships = 4096;
/** Queue pairs 0 and 1 are for management (IBTA volume 1, 3.9). */
const kLastManagementQpn = 1;
/** Programs of a run are one user's. */
const kUser = 0;

/** What is heard of hosts, and said to them. */
type Hosts = Pick<NativeSimulation, "takeNews" | "tellProgram" | "endSession" | "sendFrame" | "programListens">;

/** A program that others wait for until, with it started, something listens at a port of its NIC. */
export interface AwaitedListener {
  /** Its number. */
  program: number;
  nic: number;
  port: number;
}

/** A NIC whose host has programs. */
export interface ConnectedNic {
  /** Its number. */
  nic: number;
  mac: number;
  /** IPv4. */
  address: string;
  /** Largest, bytes. */
  pathMtu: number;
  /** MAC address of the next hop towards an address; undefined: there is no such host. */
  nextHop(address: string): number | undefined;
}

/** A session of a program of librdmacm: what is written is for the program. */
class Session extends Duplex {
  begun = Buffer.alloc(0);

  constructor(
    readonly pid: number,
    private readonly tell: (bytes: Buffer) => void,
    private readonly over: () => void,
  ) {
    super();
    // What is written after its end is for nobody.
    this.on("error", () => {});
  }

  override _read(): void {}

  override _write(bytes: Buffer, _: BufferEncoding, done: () => void): void {
    this.tell(bytes);
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.over();
    done(error);
  }
}

export class SimConnections {
  readonly #clock = new VirtualClock();
  readonly #hosts = new Map<number, HostConnections>();
  /** Things that have been done: more of them may follow. */
  #done = 0;

  constructor(
    private readonly simulation: Hosts,
    nics: readonly ConnectedNic[],
    seed: number,
    private awaited: readonly AwaitedListener[] = [],
  ) {
    const counted: Omit<Hosts, "takeNews" | "programListens"> = {
      tellProgram: (...told) => this.#count(() => simulation.tellProgram(...told)),
      endSession: (...ended) => this.#count(() => simulation.endSession(...ended)),
      sendFrame: (...sent) => this.#count(() => simulation.sendFrame(...sent)),
    };
    for (const nic of nics) {
      const random = new Random(seed, `connections of NIC ${nic.nic}`);
      this.#hosts.set(nic.nic, new HostConnections(counted, nic, this.#clock, () => random.below(2 ** 32)));
    }
  }

  /** When it next wants to act by itself, virtual ns. */
  get due(): number {
    return this.#clock.due;
  }

  /** It is `now`, virtual ns: does all that there is to do, and what follows of it. */
  async attend(now: number): Promise<void> {
    for (let before = -1; before !== this.#done; ) {
      before = this.#done;
      while (this.#clock.advance(now)) this.#done++;
      const news = this.simulation.takeNews();
      for (const one of news) this.#hosts.get(one.nic)?.hear(one);
      this.#done += news.length;
      if (this.#done > before) await turn();
    }
    this.awaited = this.awaited.filter(
      ({ program, nic, port }) => !this.#hosts.get(nic)?.isListenedAt(port) || !this.simulation.programListens(program),
    );
  }

  #count(action: () => void): void {
    this.#done++;
    action();
  }
}

/** Connection management at one NIC. */
class HostConnections {
  readonly #connections: ProgramConnections<Session>;
  readonly #sessions = new Map<number, Session>();
  readonly #listeners = new Set<(frame: Buffer) => void>();

  constructor(
    private readonly port: Omit<Hosts, "takeNews" | "programListens">,
    private readonly own: ConnectedNic,
    clock: VirtualClock,
    random: () => number,
  ) {
    const { nic, mac, address, pathMtu } = own;
    const link: FrameLink = {
      mac,
      send: (frame) => {
        port.sendFrame(nic, frame);
        return true;
      },
      onFrame: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
    };
    const neighbours: Resolver = { resolve: (destination) => this.#resolve(destination) };
    this.#connections = new ProgramConnections<Session>({
      addresses: [{ address, index: 0, neighbours }],
      pathMtu: () => pathMtu,
      link,
      clock,
      random,
      // Switches of a simulation have no groups.
      groups: {
        join: () => {
          throw new Refusal(constants.errno.EOPNOTSUPP);
        },
      },
      memberships: new Shares(kMostMemberships),
      credentials: ({ pid }) => ({ pid, uid: kUser }),
      mayNameQueuePair: (_, qpn) => qpn > kLastManagementQpn,
      budget: () => ({ next: () => Promise.resolve() }),
    });
  }

  isListenedAt(port: number): boolean {
    return this.#connections.isListenedAt(port);
  }

  hear({ kind, session, process, bytes }: HostNews): void {
    const heard = Buffer.from(bytes);
    if (kind === "frame") {
      for (const listener of this.#listeners) listener(heard);
    } else if (kind === "gone") {
      this.#sessions.get(session)?.destroy();
    } else {
      this.#said(this.#sessions.get(session) ?? this.#begin(session, process), heard);
    }
  }

  #begin(number: number, pid: number): Session {
    const { nic } = this.own;
    const tell = (bytes: Buffer) => this.port.tellProgram(nic, number, bytes);
    const session = new Session(pid, tell, () => {
      this.#sessions.delete(number);
      this.port.endSession(nic, number);
    });
    this.#sessions.set(number, session);
    return session;
  }

  #said(session: Session, bytes: Buffer): void {
    if (session.begun.length >= kHelloBytes) return void session.push(bytes);
    session.begun = Buffer.concat([session.begun, bytes]);
    if (session.begun.length < kHelloBytes) return;
    if (isHello(session.begun)) this.#connections.serve(session, session.begun);
    else session.destroy();
  }

  #resolve(destination: string): Promise<number> {
    const mac = isGroup(destination) ? macOfGroup(destination) : this.own.nextHop(destination);
    if (mac !== undefined) return Promise.resolve(mac);
    return Promise.reject(
      new WeirError(`no host has the address ${destination}`, { hint: "name one of the scenario" }),
    );
  }
}
