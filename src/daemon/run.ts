/** Runs a daemon in the foreground, from its file to its exit status. */

import type { EventEmitter } from "node:events";
import { isIPv4 } from "node:net";
import { join } from "node:path";
import { WeirError } from "../base/error.js";
import { overlaid } from "../base/overlaid.js";
import { type ControlRequest, ControlServer } from "../device/control_server.js";
import type { DeviceHost } from "../device/device.js";
import type { Health } from "../device/health.js";
import { controlDirectory } from "../host/control_directory.js";
import type { InterfaceFacts } from "../host/interface.js";
import { inspectInterface } from "../host/interface.js";
import { loadAddon } from "../native/addon.js";
import type { NativeAddon } from "../native/types.js";
import { DaemonDevices, type ServedDevice } from "./devices.js";
import { AddressFollower } from "./following.js";
import {
  type DaemonFile,
  type DaemonSource,
  fixedChanges,
  type NicAddresses,
  type ParsedDaemon,
  parseDaemonFile,
  readDaemonFile,
} from "./kinds.js";
import { createLog, type Log, type LogSink } from "./log.js";
import { serviceNotifier } from "./notify.js";
import { capabilitiesFor, keepCapabilities } from "./privileges.js";

/** A daemon as its servers see it. */
export interface ServedDaemon {
  readonly version: string;
  readonly name: string;
  readonly devices: readonly [ServedDevice, ...ServedDevice[]];
  /** Returns the file that the devices were made of. */
  file(): DaemonFile;
  /** Makes changes that last until the file is read again. @throws ScenarioError, WeirError: then nothing has changed. */
  change(set: readonly string[]): void;
  /** Returns undefined before it has started. */
  health(): Health | undefined;
  readonly reloads: { readonly succeeded: number; readonly failed: number };
  warn(fields: object, message: string): void;
}

/** A server of a daemon. */
export interface DaemonService {
  /** Address at which it listens; `url` may have more, such as a token, which only some may know. */
  readonly address: string;
  readonly url: string;
  /** Called when the device runs. */
  begin?(): void;
  /** Called when the configuration is another one, or something else has happened: then with words for it. */
  told?(what?: readonly string[]): void;
  /** Idempotent. */
  close(): void;
}

/** Services that a file may ask for; each listens, or throws a WeirError. */
export type DaemonServices = Record<
  "metrics" | "dashboard",
  (daemon: ServedDaemon) => Promise<DaemonService | undefined>
>;

export interface DaemonHost {
  stderr: LogSink;
  /** Emits SIGHUP, SIGTERM and SIGINT. */
  signals: EventEmitter;
  version: string;
  services: DaemonServices;
  /** The native core; the installed one if left out. */
  addon?: NativeAddon;
}

/**
 * Runs until SIGTERM or SIGINT: 0; or until the worker fails: 1. SIGHUP reads the file again.
 * @throws ScenarioError for a bad file, WeirError when the daemon cannot start.
 */
export async function runDaemon(source: DaemonSource, host: DaemonHost): Promise<number> {
  const daemon = new Daemon(source, host);
  try {
    await daemon.start();
    return await daemon.ended;
  } finally {
    daemon.close();
  }
}

/** Time for an answer to leave, ms. */
const kAnswerMs = 50;

class Daemon {
  /** The exit status. */
  readonly ended: Promise<number>;
  private end: (status: number) => void = () => {};
  private stopping = false;
  /** Set once it was told to stop a second time. */
  private hurried = false;
  private readonly parsed: ParsedDaemon;
  /** The file that its devices are made of. */
  private source: DaemonFile;
  private readonly log: Log;
  private readonly facts = new Map<string, InterfaceFacts>();
  private readonly reloads = { succeeded: 0, failed: 0 };
  private readonly addon: NativeAddon;
  private readonly notify: (...states: string[]) => void;
  private readonly started = Date.now();
  private devices: DaemonDevices | undefined;
  /** Addresses that the kernel has; undefined: those of the file hold. */
  private found: NicAddresses | undefined;
  private follower: AddressFollower | undefined;
  private ready = false;
  private control: ControlServer | undefined;
  private metrics: DaemonService | undefined;
  private dashboard: DaemonService | undefined;
  private failure: string | undefined;
  private readonly onReload = () => this.#reload();
  private readonly onStop = (signal: NodeJS.Signals) => void this.#stop(signal);

  constructor(
    private readonly made: DaemonSource,
    private readonly host: DaemonHost,
  ) {
    this.ended = new Promise((resolve) => {
      this.end = resolve;
    });
    this.source = readDaemonFile(made);
    this.parsed = this.#parse(this.source);
    this.log = createLog(this.parsed.name, host.stderr);
    for (const warning of this.parsed.warnings) this.log.warn(warning);
    this.addon = host.addon ?? loadAddon<NativeAddon>();
    this.notify = serviceNotifier(this.addon, process.env.NOTIFY_SOCKET);
  }

  async start(): Promise<void> {
    const { parsed, host } = this;
    const [{ control }] = parsed.devices;
    host.signals.on("SIGHUP", this.onReload).on("SIGTERM", this.onStop).on("SIGINT", this.onStop);
    const path = control ?? join(controlDirectory(), `${parsed.name}.sock`);
    this.control = await ControlServer.open(path, (request) => this.#answer(request));
    const about: DeviceHost = {
      version: host.version,
      status: () => ({
        uptime_s: this.#uptime(),
        control: path,
        metrics: this.metrics?.url ?? null,
        dashboard: this.dashboard?.url ?? null,
      }),
      captures: {
        began: (ports) => this.log.info({ ports }, "capture began"),
        ended: (ports, { captured, dropped }) => this.log.info({ ports, captured, dropped }, "capture ended"),
      },
      faulted: (what) => {
        this.log.warn({ fault: what }, "fault on purpose");
        this.dashboard?.told?.([what]);
      },
      kill: (after) => {
        this.log.warn({ after_s: after / 1e3 }, "is to die, by weir fault");
        // The answer leaves first.
        setTimeout(() => process.kill(process.pid, "SIGKILL"), Math.max(after, kAnswerMs));
      },
    };
    const { name, devices: configs } = parsed;
    const devices = new DaemonDevices(this.addon, name, configs, this.log, about, (reason) => this.#fail(reason));
    this.devices = devices;
    // Devices send nothing before all else is in place.
    devices.open();
    const served = this.#served(devices);
    this.metrics = await host.services.metrics(served);
    this.dashboard = await host.services.dashboard(served);
    await devices.begin();
    this.dashboard?.begin?.();
    await devices.servePrograms(path);
    this.#follow(devices);
    const capabilities = this.#limitRights(devices);
    const { programs } = devices;
    this.ready = true;
    this.notify("READY=1", `MAINPID=${process.pid}`);
    this.log.info(
      {
        control: path,
        metrics: this.metrics?.url ?? "off",
        // The address has no token: not everybody who may read logs may change the daemon.
        dashboard: this.dashboard?.address ?? "off",
        ...(programs.length > 0 && { programs: programs.join(" ") }),
        ports: devices.ports().length,
        capabilities,
      },
      "started",
    );
  }

  /** Idempotent. */
  close(): void {
    const { signals } = this.host;
    signals.off("SIGHUP", this.onReload).off("SIGTERM", this.onStop).off("SIGINT", this.onStop);
    this.follower?.close();
    this.dashboard?.close();
    this.metrics?.close();
    this.devices?.closeDevices();
    this.control?.close();
    this.devices?.close();
  }

  /** From now on the NIC has the addresses that the kernel has, if its source says so. */
  #follow(devices: DaemonDevices): void {
    const { follow } = this.made;
    const [config, ...others] = devices.configs;
    if (follow === undefined || config.kind !== "nic" || others.length > 0 || config.queue_pairs.length > 0) return;
    const { addresses, gateways } = config;
    const isXdp = devices.ports()[0]?.receive === "af_xdp";
    const read = () => {
      const found = follow();
      // Neighbour discovery does not come in by AF_XDP, which is settled at the start.
      return isXdp ? { ...found, addresses: found.addresses.filter(isIPv4) } : found;
    };
    const take = (found: NicAddresses) => {
      const before = this.found;
      this.found = found;
      try {
        this.#apply(devices, this.source);
      } catch (error) {
        this.found = before;
        throw error;
      }
      this.log.info({ addresses: found.addresses }, "the interface has other addresses, the NIC has them, too");
    };
    this.follower = new AddressFollower(this.addon, read, { addresses, gateways }, take, this.log);
    this.follower.begin();
  }

  /** Parses with remembered facts of interfaces: one may be away while the file is read again. */
  #parse(source: DaemonFile): ParsedDaemon {
    const parsed = this.#parseFile(source);
    const [config] = parsed.devices;
    if (this.found === undefined || config.kind !== "nic") return parsed;
    return { ...parsed, devices: [{ ...config, ...this.found, address: this.found.addresses[0] ?? "" }] };
  }

  #parseFile(source: DaemonFile): ParsedDaemon {
    return parseDaemonFile(source, (name, namespace) => {
      const key = `${namespace ?? ""}:${name}`;
      const known = this.facts.get(key);
      if (known !== undefined) return known;
      const facts = inspectInterface(name, namespace);
      this.facts.set(key, facts);
      return facts;
    });
  }

  #served(devices: DaemonDevices): ServedDaemon {
    return {
      version: this.host.version,
      name: this.parsed.name,
      devices: devices.served,
      file: () => this.source,
      change: (set) => {
        this.#apply(devices, { ...this.source, set: overlaid(this.source.set, set) });
        this.log.info({ set }, "parameters changed from the dashboard, until the file is read again");
      },
      health: () => (this.ready ? devices.health() : undefined),
      reloads: this.reloads,
      warn: (fields, message) => this.log.warn(fields, message),
    };
  }

  /** Gives up rights: from now on nothing is opened but ports that come back, and the file. */
  #limitRights(devices: DaemonDevices): string {
    const kept = capabilitiesFor(devices.ports());
    try {
      keepCapabilities(this.addon, kept);
      return kept.join(" ");
    } catch (error) {
      this.log.warn({ error: (error as Error).message }, "capabilities that are needed no more could not be given up");
      return "all";
    }
  }

  /** @throws ScenarioError, WeirError; then nothing has changed. */
  #apply(devices: DaemonDevices, source: DaemonFile): void {
    const { name, devices: configs, warnings } = this.#parse(source);
    const fixed = [...(name === this.parsed.name ? [] : ["name"]), ...fixedChanges(devices.configs, configs)];
    if (fixed.length > 0) {
      throw new WeirError(`${[...new Set(fixed)].join(", ")} cannot change while the daemon runs`, {
        hint: "restart it",
      });
    }
    devices.reconfigure(configs);
    this.source = source;
    for (const warning of warnings) this.log.warn(warning);
  }

  #reload(): void {
    if (this.devices === undefined || this.stopping) return;
    // systemd matches the READY=1 that follows by this time, in microseconds of CLOCK_MONOTONIC.
    this.notify("RELOADING=1", `MONOTONIC_USEC=${Math.floor(this.addon.monotonicNow() / 1000)}`);
    try {
      this.#apply(this.devices, readDaemonFile(this.made));
      this.dashboard?.told?.();
      this.reloads.succeeded++;
      this.log.info({ file: this.made.path }, "reloaded");
    } catch (error) {
      this.reloads.failed++;
      const { message, hint } = error as Error & { hint?: string };
      this.log.error({ file: this.made.path, error: message, hint }, "not reloaded, the old configuration stays");
    }
    this.notify("READY=1");
  }

  async #stop(signal: NodeJS.Signals): Promise<void> {
    if (this.stopping) {
      this.hurried = true;
      this.log.info({ signal }, "stopping at once");
      return this.end(0);
    }
    this.stopping = true;
    this.notify("STOPPING=1");
    this.log.info({ signal }, "stopping");
    try {
      await this.devices?.drain();
      this.log.info({ uptime_s: this.#uptime(), ...this.devices?.outcome() }, "stopped");
    } catch (error) {
      if (this.hurried) return;
      // There is nothing to wait for if it was stopped while it was still starting, or its worker is gone.
      this.log.warn({ error: (error as Error).message }, "stopped without draining");
    }
    this.end(this.failure === undefined ? 0 : 1);
  }

  #fail(reason: string): void {
    this.failure = reason;
    this.log.fatal({ reason }, "the worker failed");
    this.end(1);
  }

  #answer(asked: ControlRequest): unknown {
    if (this.devices === undefined || !this.ready) throw new WeirError("the daemon is starting");
    return this.devices.answer(asked);
  }

  #uptime(): number {
    return (Date.now() - this.started) / 1000;
  }
}
