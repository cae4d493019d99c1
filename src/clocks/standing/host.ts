/** A host of a lab that stays: programs live there, and the kernel's stack, which sends and receives through the host's NIC. */
import { join } from "node:path";
import { ProgramBroker } from "../../daemon/programs/broker.js";
import { writeSystemFiles } from "../../daemon/programs/device_files.js";
import type { ProgramNicConfig } from "../../daemon/programs/session.js";
import { ControlServer } from "../../device/control_server.js";
import type { Device } from "../../device/device.js";
import type { ProgramIdentity } from "../../device/protocol.js";
import type { NetworkNamespace } from "../../host/namespace.js";
import { ToolError } from "../../host/tools.js";
import type { NativeAddon, NativeWorker } from "../../native/types.js";
import { programWorker } from "../../native/workers.js";
import type { FrameLink } from "../../wire/cm/link.js";
import { untaggedFrame } from "../../wire/ethernet.js";
import { kProgramQueuePairs } from "../lab/compose.js";
import { kNicInterface } from "../lab/devices.js";
import { kSystemFolder } from "./place.js";

/** Bytes beside a frame on the link that the kernel does not count: FCS, preamble and gap. */
const kUncounted = 24;
/** Time that packets of the kernel may wait for the link. */
const kQueueMs = 20;
/** Bytes that may leave at once: a frame of 9 KB, and a millisecond's worth for the kernel's timers. */
const kLeastBurst = 9_216;

export interface HostPlace {
  name: string;
  /** Position at the NICs' worker. */
  index: number;
  /** Folder of the host; the lab's folder is the one above it. */
  folder: string;
  /** Configuration of the NIC; `port.rate` is that on this host. */
  nic: ProgramNicConfig;
}

/** A program that uses a NIC. Its pid has another name here, because `pid` in the lab's log is that of the lab. */
export interface ToldProgram extends Omit<ProgramIdentity, "pid"> {
  host: string;
  program: number;
}

export interface HostEvents {
  began(program: ToldProgram): void;
  ended(program: ToldProgram): void;
}

export class InhabitedHost {
  readonly #listeners = new Set<(frame: Buffer) => void>();
  #broker: ProgramBroker | undefined;
  #control: ControlServer | undefined;
  #closed = false;

  constructor(
    readonly place: HostPlace,
    private readonly addon: NativeAddon,
    private readonly worker: NativeWorker,
  ) {}

  /** Serves programs from now on. @throws WeirError where a socket cannot be made. */
  async serve(device: Device, events: HostEvents): Promise<void> {
    const { name: host, folder, index, nic } = this.place;
    const told = ({ pid, uid, command }: ProgramIdentity) => ({ host, program: pid, uid, command });
    this.#broker = await ProgramBroker.open(join(folder, `${nic.name}.verbs`), nic, {
      addon: this.addon,
      worker: programWorker(this.worker, index),
      link: this.#link(),
      device,
      queuePairs: kProgramQueuePairs,
      events: { began: (one) => events.began(told(one)), ended: (one) => events.ended(told(one)) },
    });
    writeSystemFiles(folder, [nic.name], join(folder, kSystemFolder), () => true);
    this.#control = await ControlServer.open(join(folder, `${nic.name}.sock`), (asked) => device.answer(asked));
  }

  programs(): Map<number, ProgramIdentity> {
    return this.#broker?.programs() ?? new Map();
  }

  /** Tells whether a program of librdmacm listens at the port of its NIC. */
  isListenedAt(port: number): boolean {
    return this.#broker?.isListenedAt(port) ?? false;
  }

  /** Takes a frame that is not for queue pairs. */
  take(bytes: Buffer): void {
    const frame = untaggedFrame(bytes);
    for (const listener of this.#listeners) listener(frame);
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#broker?.close();
    this.#control?.close();
  }

  #link(): FrameLink {
    const { index, nic } = this.place;
    return {
      mac: nic.port.mac,
      send: (frame) => !this.#closed && this.worker.inject(index, 0, frame),
      onFrame: (listener) => {
        this.#listeners.add(listener);
        return () => void this.#listeners.delete(listener);
      },
    };
  }
}

/**
 * @param rate bit/s; 0: unlimited.
 *
 * Lets the kernel's packets come to the NIC at the rate of the link, in frames: programs wait where an Ethernet card would have them wait.
 * Returns the reason where that cannot be had.
 */
export async function shapeKernel(machine: Pick<NetworkNamespace, "run">, rate: number): Promise<string | undefined> {
  const shaper = [
    ...["qdisc", "add", "dev", kNicInterface, "root", "handle", "1:"],
    ...["stab", "overhead", String(kUncounted), "linklayer", "ethernet"],
    ...[
      "tbf",
      "rate",
      `${rate}bit`,
      "burst",
      `${kLeastBurst + Math.ceil(rate / 8 / 1000)}b`,
      "latency",
      `${kQueueMs}ms`,
    ],
  ];
  try {
    await machine.run("ip", ["link", "set", "dev", kNicInterface, "gso_max_segs", "1"]);
    if (rate > 0) await machine.run("tc", shaper);
    return undefined;
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    return error.message;
  }
}
