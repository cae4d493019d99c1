/** A NIC of a daemon of this host, weir nic: neither an interface nor a privilege is needed, only leave to open its socket. */
import { readdirSync, readFileSync } from "node:fs";
import { isIPv6 } from "node:net";
import { basename, dirname, join } from "node:path";
import { asWeirError, WeirError } from "../base/error.js";
import { kFilesSuffix, programNics, programSocket } from "../daemon/programs/device_files.js";
import { probe } from "../device/control_client.js";
import { controlDirectory, kSystemControlDirectory } from "../host/control_directory.js";
import { loadAddon } from "../native/addon.js";
import type {
  NativeAddon,
  NativeDaemonNic,
  NativeQueueAttributes,
  ProgramWay,
  QueuePairState,
  VerbsWorker,
} from "../native/types.js";
import { addressOfGid, gidOfAddress } from "../wire/address.js";
import { AddressHandle } from "./address_handle.js";
import type { Connector } from "./connector.js";
import { DaemonConnections } from "./daemon_connections.js";
import { Device } from "./device.js";
import type { QueuePairAttributes } from "./types.js";

export interface NicOptions {
  /** Name of a NIC that `weir nic` of this host serves to programs; or the path of its control socket. */
  nic: string;
}

const kGone = "the daemon of the NIC is gone";

export class NicDevice extends Device {
  readonly interface: string;
  readonly mac: number;
  /** Undefined, since the daemon tags the frames. */
  readonly vlan = undefined;
  readonly largestPathMtu: number;
  readonly rate: number;
  /** Defaults; zeros mean the values of the daemon's file. */
  readonly defaults: Pick<QueuePairAttributes, "pathMtu" | "priority" | "dscp">;
  readonly native: { addon: NativeAddon; worker: VerbsWorker };
  readonly #nic: NativeDaemonNic;
  #connections: DaemonConnections | undefined;

  static async open(nic: string): Promise<NicDevice> {
    const { socket, files } = await serving(nic);
    const device = asWeirError(() => new NicDevice(socket, files));
    try {
      device.#connections = await DaemonConnections.open(socket, device.addresses[0] ?? "");
      return device;
    } catch (cause) {
      device.close();
      if (cause instanceof WeirError) throw cause;
      throw new WeirError(`NIC ${nic}: its daemon manages no connections for this program`, {
        cause,
        hint: "see its log",
      });
    }
  }

  private constructor(
    socket: string,
    private readonly files: NicFiles,
  ) {
    super();
    const addon = loadAddon<NativeAddon>();
    this.#nic = new addon.DaemonNic(socket, () => this.#onDoorbell());
    const { mac = 0, rate = 0, path_mtu: pathMtu = 0 } = this.#nic.hello();
    this.interface = files.interface;
    this.mac = mac;
    this.rate = rate;
    this.largestPathMtu = pathMtu;
    this.defaults = { pathMtu, priority: 0, dscp: 0 };
    this.native = { addon, worker: this.#worker() };
  }

  get addresses(): string[] {
    return this.files.gids.filter((address) => address !== undefined);
  }

  async resolve(address: string): Promise<number> {
    const { object = 0, mac = 0 } = await this.#handleTo(address, 0);
    if (this.works) this.#nic.destroyAddressHandle(object);
    return mac;
  }

  async createAddressHandle(address: string, { dscp = 0 }: { dscp?: number } = {}): Promise<AddressHandle> {
    const { object = 0 } = await this.#handleTo(address, dscp);
    return new AddressHandle(this.native.worker, object, () => this.works);
  }

  managerFor(address: string): Connector {
    this.requireOpen();
    const connections = this.#connections as DaemonConnections;
    if (isIPv6(connections.address) === isIPv6(address)) return connections;
    throw new WeirError(`${address} cannot be reached from ${connections.address}`, {
      hint: "RDMA CM of a NIC uses the first address of its file: let that be one of the same IP version",
    });
  }
  get managers(): Connector[] {
    return this.#connections === undefined ? [] : [this.#connections];
  }

  sourceFor(address: string): string {
    return this.files.gids[this.#indexFor(address)] as string;
  }

  /** Counters of its own queue pairs' transports; all others the NIC counts for everybody. */
  counters(): Map<string, number> {
    return new Map(this.works ? Object.entries(this.#nic.counters()) : []);
  }

  queuePairStates(): QueuePairState[] {
    return [];
  }

  readRecords(): void {}

  protected end(): void {
    this.#connections?.close();
  }
  protected release(): void {
    this.#nic.close();
  }

  #onDoorbell(): void {
    if (this.closed) return;
    // If the daemon is gone, completions come first: posted work was flushed.
    const over = this.#nic.over();
    this.drain();
    if (over && !this.closed) this.fail(kGone);
  }

  async #handleTo(address: string, dscp: number) {
    this.requireOpen();
    const way = this.#wayTo(gidOfAddress(address), this.#indexFor(address), dscp, 0);
    try {
      return await this.#nic.createAddressHandle(way);
    } catch (cause) {
      const { code, message, hint } = cause as { code?: string; message: string; hint?: string };
      throw new WeirError(code === "UNREACHABLE" ? `${address}: ${message}` : message, { cause, hint });
    }
  }

  #indexFor(address: string): number {
    const index = this.files.gids.findIndex((own) => own !== undefined && isIPv6(own) === isIPv6(address));
    if (index >= 0) return index;
    throw new WeirError(`${address} cannot be reached from ${this.addresses.join(" or ")}`, {
      hint: `give the NIC an ${isIPv6(address) ? "IPv6" : "IPv4"} address too, in the file of weir nic`,
    });
  }

  #wayTo(gid: Uint8Array, index: number, dscp: number, priority: number): ProgramWay {
    return { gid: [...gid], source_index: index, traffic_class: dscp << 2, service_level: priority };
  }

  /** The NIC as queue pairs and memory regions see it. */
  #worker(): VerbsWorker {
    const nic = this.#nic;
    return {
      registerMemory: (_, memory, access, domain) => nic.registerMemory(memory, access, domain),
      deregisterMemory: (_, key) => nic.deregisterMemory(key),
      createQueuePair: (_, options) => nic.createQueuePair(options),
      destroyQueuePair: (_, qpn) => nic.destroyQueuePair(qpn),
      modifyQueuePair: (_, qpn, attributes) => this.#modify(qpn, attributes),
      destroyAddressHandle: (_, handle) => {
        nic.destroyAddressHandle(handle);
        return true;
      },
      post: (_, words, count) => nic.post(words, count),
      drainCompletions: (_, words) => nic.drainCompletions(words),
      progress: (_, words) => nic.progress(words),
      rest: () => nic.rest(),
    };
  }

  #modify(qpn: number, { path, priority, rate_cap: rateCap, ...attributes }: NativeQueueAttributes): void {
    if (rateCap !== 0) throw notHere("rateCap", "the daemon paces by congestion control and the NIC's rate");
    if (attributes.recovery === "selective-repeat") throw notHere("recovery", "programs recover by go-back-n");
    const peer = path.destination_ip.some((byte) => byte !== 0) ? addressOfGid(path.destination_ip) : undefined;
    const gid = peer === undefined ? new Uint8Array(16) : gidOfAddress(peer);
    const way = this.#wayTo(gid, peer === undefined ? 0 : this.#indexFor(peer), path.dscp, priority);
    this.#nic.modifyQueuePair(qpn, { ...attributes, way });
  }
}

function notHere(field: string, reason: string): WeirError {
  return new WeirError(`${field}: not on a daemon's NIC: ${reason}`, { field, hint: "open an interface for it" });
}

/** @throws WeirError when there is no such NIC, or it does not answer. */
async function serving(nic: string) {
  const isPath = nic.includes("/");
  const name = isPath ? basename(nic, ".sock") : nic;
  const folders = isPath ? [dirname(nic)] : [...new Set([ownFolder(), kSystemControlDirectory])];
  for (const folder of folders) {
    const socket = programSocket(folder, name);
    if (socket === undefined) continue;
    let why = "";
    const answers = await probe(socket, (code) => {
      why = code;
    });
    if (answers) return { socket, files: readFiles(join(folder, name + kFilesSuffix)) };
    if (why === "EACCES" || why === "EPERM") {
      throw new WeirError(`NIC ${name}: this user may not open ${socket}`, {
        field: "nic",
        hint: "let a group do so: `programs: { group: ... }` in the file of weir nic",
      });
    }
    throw new WeirError(`NIC ${name} does not run: nobody answers at ${socket}`, {
      field: "nic",
      hint: `start it: weir nic -c ${name}.yaml, with \`programs: true\` in the file`,
    });
  }
  const running = folders.flatMap((folder) => programNics(folder));
  throw new WeirError(`no NIC ${name} serves programs on this host`, {
    field: "nic",
    hint:
      running.length > 0
        ? `there is ${running.join(", ")}`
        : "start it: weir nic -c FILE, with `programs: true` in the file",
  });
}

function ownFolder(): string {
  try {
    return controlDirectory();
  } catch {
    return kSystemControlDirectory;
  }
}

/** The daemon's files about its NIC, as they were when the device was opened. */
interface NicFiles {
  interface: string;
  /** Addresses of the table of GIDs; undefined: none at this place. */
  gids: (string | undefined)[];
}

function readFiles(folder: string): NicFiles {
  const read = (path: string) => readFileSync(join(folder, "ports/1", path), "utf8").trim();
  const gids = readdirSync(join(folder, "ports/1/gids"))
    .filter((index) => /^\d+$/.test(index))
    .sort((a, b) => Number(a) - Number(b))
    .map((index) => Buffer.from(read(`gids/${index}`).replaceAll(":", ""), "hex"))
    .map((gid) => (gid.some((byte) => byte !== 0) ? addressOfGid(gid) : undefined));
  return { interface: read("gid_attrs/ndevs/0"), gids };
}
