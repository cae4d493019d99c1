/** Runs a daemon in the foreground, from its file to its exit status. */

import type { EventEmitter } from "node:events";
import { join } from "node:path";
import { WeirError } from "../base/error.js";
import { overlaid } from "../base/overlaid.js";
import { portsOf } from "../device/compose.js";
import { controlDirectory } from "../device/control_client.js";
import { type ControlRequest, ControlServer } from "../device/control_server.js";
import type { Device, DeviceHost } from "../device/device.js";
import type { DaemonPort, DeviceConfig } from "../device/file/load.js";
import type { Health } from "../device/health.js";
import type { InterfaceFacts } from "../host/interface.js";
import { inspectInterface, kernelHasAddress } from "../host/interface.js";
import { loadAddon } from "../native/addon.js";
import { KernelPort } from "../native/kernel_port.js";
import type { NativeAddon, NativeWorker } from "../native/types.js";
import { ProgramBroker } from "../programs/broker.js";
import { type DaemonFile, type DaemonSource, fixedChanges, parseDaemonFile, readDaemonFile } from "./kinds.js";
import { createLog, type Log, type LogSink } from "./log.js";
import { serviceNotifier } from "./notify.js";
import { capabilitiesFor, keepCapabilities } from "./privileges.js";
import { DeviceRunner } from "./runner.js";

/** A daemon as those see it who serve it to others. */
export interface ServedDaemon {
  readonly version: string;
  readonly device: Device;
  readonly worker: Pick<NativeWorker, "worstGap" | "histograms">;
  /** As it is now. */
  config(): DeviceConfig;
  /** What that was made of. */
  file(): DaemonFile;
  /** Until the file is read again. @throws ScenarioError, WeirError: then nothing has changed. */
  change(set: readonly string[]): void;
  /** Undefined before it has started. */
  health(): Health | undefined;
  readonly reloads: { readonly succeeded: number; readonly failed: number };
  warn(fields: object, message: string): void;
}

/** A server of a daemon. */
export interface DaemonService {
  /** Where it listens; and the same with what only some may know, such as a token. */
  readonly address: string;
  readonly url: string;
  /** The device runs. */
  begin?(): void;
  /** The configuration is another one. */
  told?(): void;
  /** Idempotent. */
  close(): void;
}

/** Those that its file may ask for; each listens, or throws a WeirError. */
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
 * Until SIGTERM or SIGINT: 0; or until the worker fails: 1. SIGHUP reads the file again.
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

class Daemon {
  /** The exit status. */
  readonly ended: Promise<number>;
  private end: (status: number) => void = () => {};
  private stopping = false;
  /** Told a second time. */
  private hurried = false;
  private config: DeviceConfig;
  /** What `config` was made of. */
  private source: DaemonFile;
  private readonly log: Log;
  private readonly facts = new Map<string, InterfaceFacts>();
  private readonly reloads = { succeeded: 0, failed: 0 };
  private readonly addon: NativeAddon;
  private readonly notify: (...states: string[]) => void;
  private readonly started = Date.now();
  private runner: DeviceRunner | undefined;
  private ready = false;
  private control: ControlServer | undefined;
  private metrics: DaemonService | undefined;
  private dashboard: DaemonService | undefined;
  private readonly kernelPorts: KernelPort[] = [];
  private programs: ProgramBroker | undefined;
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
    const { config, warnings } = this.#parse(this.source);
    this.config = config;
    this.log = createLog(config.name, host.stderr);
    for (const warning of warnings) this.log.warn(warning);
    this.addon = host.addon ?? loadAddon<NativeAddon>();
    this.notify = serviceNotifier(this.addon, process.env.NOTIFY_SOCKET);
  }

  async start(): Promise<void> {
    const { config, host } = this;
    host.signals.on("SIGHUP", this.onReload).on("SIGTERM", this.onStop).on("SIGINT", this.onStop);
    const path = config.control ?? join(controlDirectory(), `${config.name}.sock`);
    this.control = await ControlServer.open(path, (request) => this.#answer(request));
    const { interface: netdev, namespace } = portsOf(config)[0] as DaemonPort;
    const addresses = config.kind === "nic" ? config.addresses : [];
    const shared = addresses.filter((address) => kernelHasAddress(address, netdev, namespace));
    const answered = addresses.filter((address) => !shared.includes(address));
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
    };
    const runner = new DeviceRunner(this.addon, config, this.log, answered, about, (reason) => this.#fail(reason));
    this.runner = runner;
    runner.interfaces.tell(config);
    for (const address of shared) this.kernelPorts.push(new KernelPort(this.addon, address, namespace));
    // Nothing is sent before all else is in place.
    runner.open();
    const served = this.#served(runner);
    this.metrics = await host.services.metrics(served);
    this.dashboard = await host.services.dashboard(served);
    await runner.begin();
    this.dashboard?.begin?.();
    if (config.kind === "nic" && config.programs !== undefined) {
      const { addon } = this;
      const events = {
        // Not `pid`: that is the daemon's own in its log.
        began: ({ pid, ...of }: { pid: number }) => this.log.info({ program: pid, ...of }, "program began"),
        ended: ({ pid, ...of }: { pid: number }) => this.log.info({ program: pid, ...of }, "program ended"),
      };
      const nic = { addon, worker: runner.worker.forPrograms(), link: runner.link(config.port.mac), events };
      const broker = await ProgramBroker.open(path.replace(/(\.sock)?$/, ".verbs"), config, nic);
      this.programs = broker;
      runner.programs = () => broker.programs();
    }
    const capabilities = this.#limitRights(runner);
    this.ready = true;
    this.notify("READY=1", `MAINPID=${process.pid}`);
    this.log.info(
      {
        control: path,
        metrics: this.metrics?.url ?? "off",
        // Without the token: not everybody who may read logs may change the daemon.
        dashboard: this.dashboard?.address ?? "off",
        ...(this.programs !== undefined && { programs: this.programs.path }),
        ports: runner.ports().length,
        capabilities,
      },
      "started",
    );
  }

  /** Idempotent. */
  close(): void {
    const { signals } = this.host;
    signals.off("SIGHUP", this.onReload).off("SIGTERM", this.onStop).off("SIGINT", this.onStop);
    this.dashboard?.close();
    this.metrics?.close();
    this.runner?.device.close();
    this.programs?.close();
    this.control?.close();
    this.runner?.close();
    for (const port of this.kernelPorts) port.close();
  }

  /** What an interface was like is remembered: it may be away while the file is read again. */
  #parse(source: DaemonFile) {
    return parseDaemonFile(source, (name, namespace) => {
      const key = `${namespace ?? ""}:${name}`;
      const known = this.facts.get(key);
      if (known !== undefined) return known;
      const facts = inspectInterface(name, namespace);
      this.facts.set(key, facts);
      return facts;
    });
  }

  #served(runner: DeviceRunner): ServedDaemon {
    return {
      version: this.host.version,
      device: runner.device,
      worker: runner.worker,
      config: () => this.config,
      file: () => this.source,
      change: (set) => {
        this.#apply(runner, { ...this.source, set: overlaid(this.source.set, set) });
        this.log.info({ set }, "parameters changed from the dashboard, until the file is read again");
      },
      health: () => (this.ready ? runner.health() : undefined),
      reloads: this.reloads,
      warn: (fields, message) => this.log.warn(fields, message),
    };
  }

  /** From now on nothing is opened but ports that come back, and the file. */
  #limitRights(runner: DeviceRunner): string {
    const kept = capabilitiesFor(runner.ports());
    try {
      keepCapabilities(this.addon, kept);
      return kept.join(" ");
    } catch (error) {
      this.log.warn({ error: (error as Error).message }, "capabilities that are needed no more could not be given up");
      return "all";
    }
  }

  /** @throws ScenarioError, WeirError: then nothing has changed. */
  #apply(runner: DeviceRunner, source: DaemonFile): void {
    const { config, warnings } = this.#parse(source);
    const fixed = fixedChanges(this.config, config);
    if (fixed.length > 0) {
      throw new WeirError(`${fixed.join(", ")} cannot change while the daemon runs`, { hint: "restart it" });
    }
    runner.reconfigure(config);
    this.config = config;
    this.source = source;
    for (const warning of warnings) this.log.warn(warning);
  }

  #reload(): void {
    if (this.runner === undefined || this.stopping) return;
    // Microseconds of CLOCK_MONOTONIC, by which systemd matches the READY=1 that follows.
    this.notify("RELOADING=1", `MONOTONIC_USEC=${Math.floor(this.addon.monotonicNow() / 1000)}`);
    try {
      this.#apply(this.runner, readDaemonFile(this.made));
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
      await this.runner?.drain();
      this.log.info({ uptime_s: this.#uptime(), ...this.runner?.outcome() }, "stopped");
    } catch (error) {
      if (this.hurried) return;
      // Stopped while it was still starting, or its worker is gone: there is nothing to wait for.
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
    if (this.runner === undefined || !this.ready) throw new WeirError("the daemon is starting");
    return this.runner.device.answer(asked);
  }

  #uptime(): number {
    return (Date.now() - this.started) / 1000;
  }
}
