/**
 * Serves the programs that use a NIC: who they are, their queue pairs, where their peers are. What a program asks is in
 * native/endpoint/program_protocol.h; its transport runs in its own process.
 */
import { rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { constants } from "node:os";
import { dirname } from "node:path";
import { WeirError } from "../base/error.js";
import { makeFolder } from "../base/folder.js";
import type { FrameLink } from "../cm/link.js";
import { Neighbours } from "../cm/neighbour.js";
import { kEct0, udpSourcePort } from "../device/behaviour.js";
import { probe } from "../device/control_client.js";
import type { NicDaemonConfig } from "../device/file/load.js";
import type { NativeAddon, NativePath, ProgramAnswer, ProgramRequest } from "../native/types.js";
import type { ProgramWorker } from "../native/workers.js";
import { dscpOf } from "../scenario/resolve.js";
import { addressBytes, addressOfGid } from "../wire/address.js";
import { kFilesSuffix, writeDeviceFiles } from "./device_files.js";

const { ENOMEM, EINVAL, EHOSTUNREACH, EPROTO, ENOENT, EIO } = constants.errno;
const kStates = ["reset", "init", "rtr", "rts", "error"] as const;
const kPathMtus = [4096, 2048, 1024, 512, 256];
/** Headers below the payload, as Linux counts them. */
const kRoceOverhead = 80;
const kOwnerOnly = 0o177;
/** Of one program. */
const kMostHandles = 4096;
/** Requests of ProgramRequest::Kind. */
const kKind = {
  hello: 0,
  createQueuePair: 1,
  modifyQueuePair: 2,
  destroyQueuePair: 3,
  createHandle: 4,
  destroyHandle: 5,
};

/** The NIC as far as programs are concerned. */
export interface ProgramHost {
  addon: Pick<NativeAddon, "peerCredentials" | "programRequestBytes" | "readProgramRequest" | "answerProgram">;
  worker: ProgramWorker;
  /** Where frames that are not for queue pairs come and go. */
  link: FrameLink;
}

export interface Program {
  pid: number;
  uid: number;
  queuePairs: number;
}

export class ProgramBroker {
  readonly #connections = new Set<Connection>();
  readonly #neighbours: Neighbours;
  readonly #files: string;
  readonly #onExit = () => this.#removeFiles();

  private constructor(
    readonly host: ProgramHost,
    readonly config: NicDaemonConfig,
    private readonly server: Server,
    readonly path: string,
  ) {
    // Who asks for the NIC's address is answered elsewhere.
    this.#neighbours = new Neighbours({ link: host.link, address: config.address, answers: false });
    this.#files = path.replace(/\.verbs$/, "") + kFilesSuffix;
  }

  /** Listens at `path`, which only its owner may open. @throws WeirError when another daemon does, or the socket cannot be made. */
  static async open(path: string, config: NicDaemonConfig, host: ProgramHost): Promise<ProgramBroker> {
    makeFolder(dirname(path), 0o755);
    if (await probe(path)) throw new WeirError(`another daemon serves programs at ${path}`, { hint: "stop it first" });
    rmSync(path, { force: true });
    const server = createServer();
    const broker = new ProgramBroker(host, config, server, path);
    server.on("connection", (socket) => broker.#serve(socket));
    const umask = process.umask(kOwnerOnly);
    try {
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject).listen(path, resolve);
      });
    } catch (error) {
      broker.#neighbours.close();
      throw new WeirError(`socket for programs ${path}: ${(error as NodeJS.ErrnoException).code}`, {
        cause: error,
        hint: "run as root, or set `control` to a path that you may write",
      });
    } finally {
      process.umask(umask);
    }
    // A connection that could not be accepted (no descriptors left) is the program's to repeat.
    server.on("error", () => {});
    const { port, name, address } = config;
    writeDeviceFiles(broker.#files, {
      name,
      address,
      interface: port.interface,
      mac: port.mac,
      rate: port.rate,
      socket: path,
    });
    process.on("exit", broker.#onExit);
    return broker;
  }

  /** Those that are connected and have said hello. */
  programs(): Program[] {
    return [...this.#connections].flatMap((connection) => connection.program ?? []);
  }

  /** Programs hear that the NIC is gone. Idempotent. */
  close(): void {
    process.off("exit", this.#onExit);
    this.#removeFiles();
    this.server.close();
    for (const connection of this.#connections) connection.close();
    this.#neighbours.close();
  }

  /** bytes */
  get largestPathMtu(): number {
    return kPathMtus.find((mtu) => mtu + kRoceOverhead <= this.config.port.mtu) ?? 256;
  }

  /** The way to a peer, with its priority. @throws WeirError when nobody answers there. */
  async wayTo(request: ProgramRequest, order: number): Promise<{ path: NativePath; priority: number }> {
    const { config } = this;
    const address = addressOfGid(Uint8Array.from(request.gid));
    const dscp = request.traffic_class >> 2 || dscpOf(config.classes.dscp_map, config.programs?.priority ?? 0);
    const path = {
      ...this.nowhere(),
      destination_mac: await this.#neighbours.resolve(address),
      destination_ip: addressBytes(address),
      dscp,
      udp_source_port: udpSourcePort(order),
    };
    return { path, priority: config.classes.dscp_map[dscp] ?? 0 };
  }

  /** The path of a queue pair that has no peer yet. */
  nowhere(): NativePath {
    return {
      destination_mac: 0,
      source_mac: this.config.port.mac,
      tagged: false,
      vlan_tci: 0,
      ip_version: 4,
      source_ip: addressBytes(this.config.address),
      destination_ip: Uint8Array.of(0, 0, 0, 0),
      dscp: 0,
      ecn: kEct0,
      udp_source_port: 0,
    };
  }

  #serve(socket: Socket): void {
    const connection = new Connection(this, socket);
    this.#connections.add(connection);
    socket.on("close", () => {
      this.#connections.delete(connection);
      connection.close();
    });
  }

  #removeFiles(): void {
    rmSync(this.#files, { recursive: true, force: true });
    rmSync(this.path, { force: true });
  }
}

/** One program, from its first word to its end. */
class Connection {
  program: Program | undefined;
  #number = 0;
  #pending = Buffer.alloc(0);
  #working = false;
  #closed = false;
  readonly #queuePairs = new Map<number, { datagram: boolean }>();
  readonly #handles = new Set<number>();
  readonly #descriptor: number;

  constructor(
    private readonly broker: ProgramBroker,
    private readonly socket: Socket,
  ) {
    // Node.js has no other way to send descriptors along.
    this.#descriptor = (socket as unknown as { _handle: { fd: number } })._handle.fd;
    socket.on("error", () => {});
    socket.on("data", (bytes: Buffer) => {
      this.#pending = Buffer.concat([this.#pending, bytes]);
      void this.#work();
    });
  }

  /** Its queue pairs end. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    const { worker } = this.broker.host;
    if (this.#number !== 0) worker.closeProgram(0, this.#number);
    for (const handle of this.#handles) worker.destroyAddressHandle(0, handle);
    this.socket.destroy();
  }

  /** Requests in their order, each answered before the next. */
  async #work(): Promise<void> {
    if (this.#working) return;
    this.#working = true;
    const { addon } = this.broker.host;
    const size = addon.programRequestBytes();
    while (this.#pending.length >= size && !this.#closed) {
      const request = addon.readProgramRequest(this.#pending.subarray(0, size));
      this.#pending = this.#pending.subarray(size);
      const answer = await this.#answer(request, size).catch((error) => ({ error: errnoOf(error) }));
      if (this.#closed) break;
      const { descriptors = [], ...told } = answer as ProgramAnswer & { descriptors?: number[] };
      if (!addon.answerProgram(this.#descriptor, told, descriptors)) this.close();
    }
    this.#working = false;
  }

  async #answer(request: ProgramRequest, size: number): Promise<ProgramAnswer & { descriptors?: number[] }> {
    const { worker } = this.broker.host;
    if (request.bytes !== size) return { error: EPROTO };
    if (request.kind === kKind.hello) return this.#hello();
    if (this.#number === 0) return { error: EPROTO };
    const held = this.#queuePairs.get(request.object);
    switch (request.kind) {
      case kKind.createQueuePair: {
        const datagram = request.datagram === 1;
        const unreliable = request.unreliable === 1;
        const program = this.#number;
        const qpn = worker.createQueuePair(0, { datagram, unreliable, send_depth: 1, receive_depth: 1, program });
        this.#queuePairs.set(qpn, { datagram });
        this.#tell();
        return { object: qpn };
      }
      case kKind.modifyQueuePair:
        return held === undefined ? { error: ENOENT } : this.#modify(request, held);
      case kKind.destroyQueuePair:
        if (held === undefined) return { error: ENOENT };
        this.#queuePairs.delete(request.object);
        worker.destroyQueuePair(0, request.object);
        this.#tell();
        return {};
      case kKind.createHandle: {
        if (this.#handles.size >= kMostHandles) return { error: ENOMEM };
        const { path } = await this.broker.wayTo(request, this.#number);
        if (this.#closed) return { error: EIO };
        const handle = worker.createAddressHandle(0, path);
        this.#handles.add(handle);
        return { object: handle };
      }
      case kKind.destroyHandle:
        if (!this.#handles.delete(request.object)) return { error: ENOENT };
        worker.destroyAddressHandle(0, request.object);
        return {};
      default:
        return { error: EPROTO };
    }
  }

  #hello(): ProgramAnswer & { descriptors?: number[] } {
    const { host, config, largestPathMtu } = this.broker;
    if (this.#number !== 0) return { error: EPROTO };
    const { pid, uid } = host.addon.peerCredentials(this.#descriptor);
    const { number, memory, wake } = host.worker.openProgram(0);
    this.#number = number;
    this.program = { pid, uid, queuePairs: 0 };
    const { mac, rate } = config.port;
    return { mac, rate, path_mtu: largestPathMtu, descriptors: [memory, wake] };
  }

  async #modify(request: ProgramRequest, { datagram }: { datagram: boolean }): Promise<ProgramAnswer> {
    const { broker } = this;
    const state = kStates[request.state];
    const mtu = request.path_mtu;
    if (state === undefined || !kPathMtus.includes(mtu) || mtu > broker.largestPathMtu) return { error: EINVAL };
    if (request.remote_qpn > 0xff_ffff || request.partition_key > 0xffff) return { error: EINVAL };
    const connects = state === "rtr" && !datagram;
    const way = connects
      ? await broker.wayTo(request, request.object)
      : { path: broker.nowhere(), priority: broker.config.programs?.priority ?? 0 };
    // It may have ended while its peer was looked for.
    if (!this.#queuePairs.has(request.object) || this.#closed) return { error: ENOENT };
    broker.host.worker.modifyQueuePair(0, request.object, {
      state,
      path_mtu: mtu,
      remote_qpn: request.remote_qpn,
      partition_key: request.partition_key,
      // What concerns the transport alone is the program's own.
      timeout: 0,
      retry_count: 0,
      recovery: "go-back-n",
      window: 256,
      rate_cap: 0,
      ...way,
    });
    return {};
  }

  #tell(): void {
    if (this.program !== undefined) this.program.queuePairs = this.#queuePairs.size;
  }
}

function errnoOf(error: unknown): number {
  const { code } = error as { code?: string };
  if (code === "NO_RESOURCES") return ENOMEM;
  if (code?.startsWith("INVALID") === true) return EINVAL;
  if (error instanceof RangeError) return EINVAL;
  return error instanceof WeirError ? EHOSTUNREACH : EIO;
}
