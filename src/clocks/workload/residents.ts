/** Residents of a lab's hosts whose traffic is, in part, that of programs and kernels. */
import { rmSync } from "node:fs";
import { packageVersion } from "../../base/package_version.js";
import { formatTime } from "../../base/units.js";
import type { LabNetwork } from "../../host/veth.js";
import type { NativeAddon } from "../../native/types.js";
import { awaitsPrograms } from "../../scenario/programs.js";
import type { Scenario } from "../../scenario/types.js";
import type { LabAccess, OpenLab } from "../lab/access.js";
import { labDevices } from "../lab/devices.js";
import type { Residents, ResidentsResult } from "../lab/residents.js";
import { LabHosts } from "../standing/lab_hosts.js";
import { standingScale } from "../standing/scale.js";
import { Programs } from "./programs.js";
import { TcpStreamRun } from "./tcp_stream.js";

export interface ResidentsOptions {
  /** Folder for sockets and such of the hosts; it is removed with them. */
  folder: string;
  /** Folder of the run's files. */
  results: string;
  warn(text: string): void;
}

const kNobody = { began: () => {}, ended: () => {} };

export class LabResidents implements Residents {
  readonly scale: number;
  #failure: string | undefined;
  #lab: LabAccess | undefined;
  #programs: Programs | undefined;
  readonly #streams: TcpStreamRun[] = [];
  #hosts: LabHosts | undefined;
  #over = false;
  #closed = false;

  private constructor(
    private readonly addon: NativeAddon,
    private readonly scenario: Scenario,
    private readonly options: ResidentsOptions,
  ) {
    this.scale = standingScale(scenario);
  }

  /** @throws WeirError where the hosts cannot be had: then nothing is left. */
  static async build(addon: NativeAddon, scenario: Scenario, options: ResidentsOptions): Promise<LabResidents> {
    const residents = new LabResidents(addon, scenario, options);
    try {
      residents.#hosts = await LabHosts.build(scenario, options.folder, {
        failed: (reason) => {
          residents.#failure = reason;
        },
        warn: (message, fields) => options.warn([message, ...Object.values(fields ?? {})].join(": ")),
      });
      await residents.#living.shape(residents.scale);
      return residents;
    } catch (error) {
      residents.close();
      throw error;
    }
  }

  get network(): LabNetwork {
    return this.#living.network;
  }

  opened({ nics, scale }: OpenLab): void {
    this.#living.open(this.addon, nics.worker, scale);
  }

  async settle(lab: LabAccess): Promise<void> {
    this.#lab = lab;
    const hosts = this.#living;
    const { scenario, scale } = lab;
    const running = {
      ...{ scenario, scale, switches: lab.switches, nics: lab.nics },
      now: () => lab.now(),
      programs: (host: number) => hosts.programs(host),
    };
    const devices = labDevices(running, { version: packageVersion(), metrics: null, control: "" });
    await hosts.serve(new Map(devices.map((device) => [device.name, device])), kNobody);
    const now = () => lab.now();
    const placeOf = (host: string) => ({
      pid: hosts.machine(host).pid,
      environment: hosts.environment,
      folder: this.options.results,
      now,
      isListenedAt: (port: number) => hosts.isListenedAt(host, port),
      counters: () => {
        lab.nics.counters.refresh();
        return lab.nics.counters.at({ device: host, qpn: undefined }).byName();
      },
    });
    this.#programs = new Programs(scenario.programs, placeOf, now);
    const endOf = (host: string) => ({
      index: scenario.hosts.findIndex(({ name }) => name === host),
      namespace: hosts.machine(host).path,
    });
    for (const stream of scenario.tcp) {
      const place = { sender: endOf(stream.from), receiver: endOf(stream.to), scale, now };
      this.#streams.push(new TcpStreamRun(this.addon, stream, place));
    }
  }

  looked(): void {
    if (this.#lab === undefined || this.#lab.now() < 0 || this.#over) return;
    this.#programs?.look();
    for (const stream of this.#streams) stream.look();
  }

  take(host: number, bytes: Buffer): void {
    if (!this.#closed) this.#living.take(host, bytes);
  }

  done(): boolean {
    const waitedFor = awaitsPrograms(this.scenario) || this.#streams.some(({ ends }) => ends);
    return waitedFor && (this.#programs?.done ?? false) && this.#streams.every((one) => one.done || !one.ends);
  }

  failure(): string | undefined {
    return this.#closed ? undefined : this.#failure;
  }

  async end(): Promise<void> {
    this.#over = true;
    const at = formatTime(Math.min(this.#lab?.now() ?? 0, this.scenario.duration), 4);
    for (const stream of this.#streams) stream.end();
    this.#programs?.over(`still ran when the run ended, at ${at}`);
    // Programs that do not end when they are told to are killed.
    for (const signal of ["SIGTERM", "SIGKILL"] as const) await this.#living.endPrograms(signal);
    await this.#programs?.settled();
  }

  result({ scenario: { warmup, probes } }: LabAccess, end: number): ResidentsResult {
    const times = Array.from({ length: Math.floor(end / probes.interval) + 1 }, (_, i) => (i * probes.interval) / 1e9);
    return {
      flows: this.#streams.map((stream) => stream.result(warmup, end)),
      series: Object.fromEntries(this.scenario.tcp.map(({ id }, i) => [id, this.#streams[i]?.series(times) ?? {}])),
      ...(this.scenario.programs.length > 0 && { programs: this.#programs?.results() ?? {} }),
    };
  }

  ended(): void {
    for (const stream of this.#streams) stream.end();
    this.#programs?.close();
    this.#hosts?.close();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#hosts?.close();
    this.#hosts?.leave();
    rmSync(this.options.folder, { recursive: true, force: true });
  }

  get #living(): LabHosts {
    return this.#hosts as LabHosts;
  }
}
