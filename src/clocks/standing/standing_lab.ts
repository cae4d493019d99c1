/** A lab that stays: the network of a scenario, on whose hosts people run their own programs. */
import { setTimeout as sleep } from "node:timers/promises";
import { asWeirError, WeirError } from "../../base/error.js";
import { makeFolder } from "../../base/folder.js";
import { macText } from "../../base/mac.js";
import type { StandingReport } from "../../device/protocol.js";
import { inUserNamespace } from "../../host/rootless.js";
import { loadAddon } from "../../native/addon.js";
import { CounterTable } from "../../native/counters.js";
import { kRecordWords, type NativeAddon, type NativeWorker, RecordKind } from "../../native/types.js";
import { hostMac } from "../../scenario/addresses.js";
import { Fabric } from "../../scenario/fabric.js";
import { Share } from "../../scenario/parts.js";
import type { HostConfig, Scenario } from "../../scenario/types.js";
import type { LabWorker } from "../lab/access.js";
import { composeLab, hostAddresses, labEnds, stackMtu } from "../lab/compose.js";
import { LabControl } from "../lab/control.js";
import { kNicInterface } from "../lab/devices.js";
import { openCarrier } from "../lab/parts/part_run.js";
import { Entrance } from "./entrance.js";
import type { HostEvents } from "./host.js";
import { LabHosts, type LabHostsEvents } from "./lab_hosts.js";
import { labFolder } from "./place.js";
import { standingScale } from "./scale.js";

const kStartMs = 5000;
const kStepMs = 10;
/** Time from the last worker's opening to the first packet, wall ns: both threads must be waiting by then. */
const kLeadNs = 20e6;

export interface StandingOptions {
  name: string;
  /** Path of the scenario, which the lab tells when asked. */
  file: string;
  version: string;
  /** Folder of control sockets. */
  directory: string;
  /** Events of the lab; `failed` is also called when a thread has ended. */
  events: HostEvents &
    LabHostsEvents & {
      /** Is called when somebody asks for the end; the answer says that it comes. */
      down(): void;
    };
}

export class StandingLab {
  readonly scale: number;
  readonly folder: string;
  readonly #workers: NativeWorker[] = [];
  readonly #words = new Float64Array(kRecordWords * 64);
  readonly #started = Date.now();
  #counted: [LabWorker, LabWorker] | [] = [];
  #hosts: LabHosts | undefined;
  #control: LabControl | undefined;
  #entrance: Entrance | undefined;
  #closed = false;
  #serves = false;

  private constructor(
    private readonly scenario: Scenario,
    private readonly options: StandingOptions,
    private readonly addon: NativeAddon,
  ) {
    this.scale = standingScale(scenario);
    this.folder = labFolder(options.directory, options.name);
  }

  /** Opens the lab. @throws WeirError where it cannot be: then nothing is left. */
  static async open(scenario: Scenario, options: StandingOptions): Promise<StandingLab> {
    const lab = new StandingLab({ ...scenario, flows: [], changes: [] }, options, loadAddon<NativeAddon>());
    try {
      await lab.#open();
      return lab;
    } catch (error) {
      lab.close();
      throw error;
    }
  }

  /** Tells programs to end, and kills those that do not. */
  async end(): Promise<void> {
    // Interactive shells ignore SIGTERM, so they get SIGHUP, too.
    await this.#hosts?.endPrograms("SIGTERM", "SIGHUP");
    this.close();
  }

  /** Kills whatever runs on its hosts. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#control?.ended();
    this.#entrance?.close();
    this.#hosts?.close();
    for (const worker of this.#workers) worker.stop();
    for (const worker of this.#workers) worker.close();
    this.#hosts?.leave();
    this.#control?.close();
  }

  report(): StandingReport {
    const { name, file, version } = this.options;
    const { switches, hosts } = this.scenario;
    const share = new Share(this.scenario);
    const fabric = new Fabric(this.scenario);
    const processes = this.#hosts?.processes();
    return {
      name,
      version,
      pid: process.pid,
      file,
      scale: this.scale,
      uptime_s: (Date.now() - this.#started) / 1000,
      folder: this.folder,
      user_namespace: inUserNamespace(),
      switches: share.switches.map((i) => switches[i]?.name as string),
      hosts: share.hosts.map((i) => {
        const host = hosts[i] as HostConfig;
        const { link, neighbour } = fabric.attachment(i);
        return {
          name: host.name,
          addresses: hostAddresses(i),
          mac: macText(hostMac(i)),
          interface: kNicInterface,
          mtu: stackMtu(this.scenario, i),
          switch: neighbour.name,
          rate: link.rate,
          pid: this.#hosts?.machine(host.name).pid ?? 0,
          processes: processes?.get(host.name) ?? [],
        };
      }),
      fidelity: {
        longest_gap_us: Math.max(0, ...this.#workers.map((worker) => worker.recentGap())) / 1000,
        lost_frames: this.#counted.reduce((sum, one) => sum + lostFrames(one.counters), 0),
      },
    };
  }

  async #open(): Promise<void> {
    const { addon, scenario, scale, options } = this;
    const { name, version, directory, events } = options;
    this.#control = await LabControl.open(name, directory, {
      version,
      metrics: null,
      standing: {
        // Until programs find their NICs the lab is not up.
        standing: () => {
          if (!this.#serves) throw new WeirError(`${name} is being built`, { hint: "ask again in a moment" });
          return this.report();
        },
        down: () => {
          events.down();
          return { pid: process.pid };
        },
      },
    });
    for (const crossing of new Share(scenario).crossings) openCarrier(scenario, crossing, events);
    makeFolder(this.folder, 0o755);
    const hosts = await LabHosts.build(scenario, this.folder, events);
    this.#hosts = hosts;
    await hosts.shape(scale);
    const end = labEnds(scenario, hosts.network);
    const cpus = { switches: -1, nics: -1 };
    for (const config of composeLab(scenario, { scale, end, cpus, inhabited: true, prompt: true, unsampled: true })) {
      const worker: NativeWorker = new addon.Worker(config, () => this.#onDoorbell(worker));
      this.#workers.push(worker);
      asWeirError(() => worker.open());
    }
    const [switches, nics] = this.#workers as [NativeWorker, NativeWorker];
    hosts.open(addon, nics, scale);
    const begin = addon.monotonicNow() + kLeadNs;
    for (const worker of this.#workers) worker.begin(begin);
    for (let waited = 0; this.#workers.some((worker) => worker.manifest() === undefined); waited += kStepMs) {
      if (waited >= kStartMs)
        throw new WeirError("the lab's threads did not start", { hint: "is the host very busy?" });
      await sleep(kStepMs);
    }
    this.#counted = [counting(switches), counting(nics)];
    this.#control.begun({
      scenario,
      scale,
      switches: this.#counted[0],
      nics: this.#counted[1],
      now: () => (addon.monotonicNow() - begin) / scale,
      programs: (host) => hosts.programs(host),
    });
    await hosts.serve(this.#control.devices, events);
    this.#entrance = await Entrance.open(this.folder, { addon, hostPid: (name) => hosts.pidOf(name) });
    this.#serves = true;
  }

  #onDoorbell(worker: NativeWorker): void {
    if (this.#closed) return;
    for (;;) {
      const count = worker.drainRecords(this.#words);
      for (let i = 0; i < count; i++)
        this.#take(worker, this.#words.subarray(i * kRecordWords, (i + 1) * kRecordWords));
      if (count * kRecordWords < this.#words.length) break;
    }
    for (const { device, bytes } of worker.drainPunted()) {
      if (worker === this.#workers[1]) this.#hosts?.take(device, bytes);
    }
  }

  #take(worker: NativeWorker, [, kind, , , value]: Float64Array): void {
    if (kind !== RecordKind.ended || value !== 1) return;
    this.options.events.failed(`a worker failed: ${worker.outcome().failure ?? "unknown reason"}`);
  }
}

/** Counters as they are when they are looked at. */
function counting(worker: NativeWorker): LabWorker {
  const counters = new CounterTable(worker);
  return {
    worker,
    get counters() {
      counters.refresh();
      return counters;
    },
  };
}

/** Frames that did not reach a device, or not the link, because of the machine. */
const lostFrames = (counters: CounterTable) => counters.of("overrun", "refused", "thrown").sum();
