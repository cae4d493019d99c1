/** The devices of a daemon: a switch, a NIC, or a NIC of each port; each by itself, and all together. */
import { dirname, join } from "node:path";
import { kProgramQueuePairs, portsOf } from "../device/compose.js";
import type { ControlRequest } from "../device/control_server.js";
import type { Device, DeviceHost, DevicePort } from "../device/device.js";
import type { DaemonPort, DeviceConfig } from "../device/file/load.js";
import { assessHealth, type Health } from "../device/health.js";
import { hindranceToPaths } from "../device/lending.js";
import type { Status } from "../device/protocol.js";
import { answerAmong } from "../device/several.js";
import { kernelAddresses } from "../host/interface.js";
import { KernelPort } from "../native/kernel_port.js";
import type { NativeAddon, NativeWorker } from "../native/types.js";
import type { Log } from "./log.js";
import { ProgramBroker } from "./programs/broker.js";
import { DeviceRunner } from "./runner.js";

/** A device as its servers see it. */
export interface ServedDevice {
  readonly device: Device;
  readonly worker: Pick<NativeWorker, "worstGap" | "histograms">;
  /** Returns the present configuration. */
  config(): DeviceConfig;
}

/** Configurations of one device or more. */
export type DeviceConfigs = readonly [DeviceConfig, ...DeviceConfig[]];

interface One extends ServedDevice {
  readonly runner: DeviceRunner;
  readonly log: Log;
  configuration: DeviceConfig;
  /** Addresses that the kernel has, too, and how its port is held there once the device is open. */
  shared: ReadonlyMap<string, KernelPort | undefined>;
  broker: ProgramBroker | undefined;
}

export class DaemonDevices {
  readonly #all: readonly [One, ...One[]];

  /** @param onFailure Called when a worker has ended by itself. */
  constructor(
    private readonly addon: NativeAddon,
    private readonly name: string,
    configs: DeviceConfigs,
    log: Log,
    host: DeviceHost,
    onFailure: (reason: string) => void,
  ) {
    const make = (config: DeviceConfig): One => {
      const own = configs.length === 1 ? log : log.child({ device: config.name });
      const shared = new Map(sharedAddresses(config).map((address) => [address, undefined]));
      const answered = addressesOf(config).filter((address) => !shared.has(address));
      const runner = new DeviceRunner(addon, config, own, answered, host, onFailure);
      const one: One = {
        runner,
        log: own,
        configuration: config,
        shared,
        broker: undefined,
        device: runner.device,
        worker: runner.worker,
        config: () => one.configuration,
      };
      return one;
    };
    const [first, ...others] = configs;
    this.#all = [make(first), ...others.map(make)];
    for (const { runner, configuration } of this.#all) runner.interfaces.tell(configuration);
  }

  get served(): readonly [ServedDevice, ...ServedDevice[]] {
    return this.#all;
  }

  get configs(): DeviceConfigs {
    const [first, ...others] = this.#all.map(({ configuration }) => configuration);
    return [first as DeviceConfig, ...others];
  }

  /** Ports of all devices. */
  ports(): DevicePort[] {
    return this.#all.flatMap(({ runner }) => runner.ports());
  }

  /** Paths of the sockets at which programs are served. */
  get programs(): string[] {
    return this.#all.flatMap(({ broker }) => broker?.path ?? []);
  }

  /** Opens the ports; nothing is received or sent yet. @throws WeirError when that fails. */
  open(): void {
    for (const one of this.#all) one.shared = this.#hold(one, [...one.shared.keys()]);
    for (const { runner } of this.#all) runner.open();
  }

  /** @throws WeirError when one of them does not begin. */
  async begin(): Promise<void> {
    await Promise.all(this.#all.map(({ runner }) => runner.begin()));
  }

  /** Serves programs at NICs whose file says so, once they have begun. @param control Path of the daemon's control socket. */
  async servePrograms(control: string): Promise<void> {
    const several = this.#all.length > 1;
    for (const one of this.#all) {
      const { runner, configuration, log } = one;
      if (configuration.kind === "switch" || configuration.programs === undefined) continue;
      const path = several
        ? join(dirname(control), `${configuration.name}.verbs`)
        : control.replace(/(\.sock)?$/, ".verbs");
      const events = {
        // The field is not called `pid`: that is the daemon's own in its log.
        began: ({ pid, ...of }: { pid: number }) => log.info({ program: pid, ...of }, "program began"),
        ended: ({ pid, ...of }: { pid: number }) => log.info({ program: pid, ...of }, "program ended"),
      };
      const link = runner.link(configuration.port.mac);
      const worker = runner.worker.forPrograms();
      const { device } = runner;
      const lends = () =>
        one.configuration.kind === "nic" &&
        hindranceToPaths(one.configuration) === undefined &&
        device.faults.list().length === 0;
      const nic = { addon: this.addon, worker, link, events, device, lends, queuePairs: kProgramQueuePairs };
      const broker = await ProgramBroker.open(path, configuration, nic);
      one.broker = broker;
      runner.programs = () => broker.programs();
      runner.lent = () => broker.lent();
    }
  }

  /** Changes all of them, or none. @param configs As many as there are. @throws WeirError when one cannot be had without a new start. */
  reconfigure(configs: DeviceConfigs): void {
    const changed: One[] = [];
    const held: One["shared"][] = [];
    try {
      this.#all.forEach((one, i) => {
        const config = configs[i] as DeviceConfig;
        const shared = this.#hold(
          one,
          isSame(config, one.configuration) ? [...one.shared.keys()] : sharedAddresses(config),
        );
        held.push(shared);
        one.runner.reconfigure(
          config,
          addressesOf(config).filter((address) => !shared.has(address)),
        );
        changed.push(one);
      });
    } catch (error) {
      held.forEach((shared, i) => {
        letGo(shared, this.#all[i]?.shared);
      });
      for (const { runner, configuration, shared } of changed) {
        runner.reconfigure(
          configuration,
          addressesOf(configuration).filter((address) => !shared.has(address)),
        );
      }
      throw error;
    }
    this.#all.forEach((one, i) => {
      const config = configs[i] as DeviceConfig;
      const shared = held[i] ?? one.shared;
      letGo(one.shared, shared);
      Object.assign(one, { configuration: config, shared });
      if (config.kind === "nic") one.broker?.reconfigure(config);
    });
  }

  /** Holds the kernel's port at all of these addresses; those that the device has are as they are. @throws WeirError: none is new then. */
  #hold({ shared, configuration }: One, addresses: readonly string[]): One["shared"] {
    const { namespace } = portsOf(configuration)[0] as DaemonPort;
    const held = new Map<string, KernelPort | undefined>();
    try {
      for (const address of addresses) {
        held.set(address, shared.get(address) ?? new KernelPort(this.addon, address, namespace));
      }
      return held;
    } catch (error) {
      letGo(held, shared);
      throw error;
    }
  }

  answer(asked: ControlRequest): unknown {
    const [first, ...others] = this.#all;
    if (others.length === 0) return first.device.answer(asked);
    const devices = new Map(this.#all.map(({ device }) => [device.name, device]));
    const status = (): Status => ({ ...first.device.status(), name: this.name, devices: [...devices.keys()] });
    return answerAmong(devices, asked, this.name, { status });
  }

  health(): Health {
    const facts = this.#all.map(({ runner }) => runner.healthFacts());
    const [first] = facts;
    if (first === undefined || facts.length === 1) return assessHealth(first as NonNullable<typeof first>);
    return assessHealth({
      name: this.name,
      failure: facts.find(({ failure }) => failure !== undefined)?.failure,
      silence: Math.max(...facts.map(({ silence }) => silence)),
      gap: Math.max(...facts.map(({ gap }) => gap)),
      ports: facts.flatMap(({ name, ports }) => ports.map((port) => ({ ...port, name: `${name}:${port.name}` }))),
    });
  }

  async drain(): Promise<void> {
    await Promise.all(this.#all.map(({ runner }) => runner.drain()));
  }

  /** Stops; then tells what the host did to the workers; if there are several, by the names of their devices. */
  outcome(): object {
    const outcomes = this.#all.map(({ runner, device }) => [device.name, runner.outcome()] as const);
    return outcomes.length === 1 ? (outcomes[0]?.[1] ?? {}) : { devices: Object.fromEntries(outcomes) };
  }

  /** Ends captures. Idempotent, like close(). */
  closeDevices(): void {
    for (const { device } of this.#all) device.close();
    for (const { broker } of this.#all) broker?.close();
  }

  close(): void {
    this.closeDevices();
    for (const { runner } of this.#all) runner.close();
    for (const { shared } of this.#all) letGo(shared);
  }
}

const addressesOf = (config: DeviceConfig): readonly string[] => (config.kind === "nic" ? config.addresses : []);

const isSame = (one: DeviceConfig, other: DeviceConfig) => addressesOf(one).join() === addressesOf(other).join();

/** Its addresses that the kernel has, too. */
function sharedAddresses(config: DeviceConfig): string[] {
  const { interface: netdev, namespace } = portsOf(config)[0] as DaemonPort;
  const addresses = addressesOf(config);
  return addresses.length === 0 ? [] : kernelAddresses(addresses, netdev, namespace);
}

/** Gives the kernel's port back at all addresses but those that stay. */
function letGo(ports: One["shared"], stay: One["shared"] = new Map()): void {
  for (const [address, port] of ports) if (stay.get(address) !== port) port?.close();
}
