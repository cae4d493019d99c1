/**
 * A device plugin of Kubernetes: the kubelet of this node learns of the NICs whose daemons serve programs, and containers that ask
 * for the resource get one. Each NIC is offered as several devices, because programs share it.
 */
import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import {
  credentials,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { probe } from "../../device/control_client.js";
import { programNics, programSocket } from "../programs/device_files.js";
import { allocate } from "./allocation.js";
import { type AllocateRequest, type Device, DevicePlugin, kApiVersion, Registration } from "./api.js";

export const kResource = "rdma/weir";
const kEndpoint = "weir.sock";
const kRegisterMs = 5000;
const kLookMs = 1000;

export interface PluginOptions {
  /** Folder of the kubelet's socket and of those of plugins. */
  kubelet: string;
  /** Folder of the daemons' control sockets. */
  folder: string;
  /** Folder of the libraries, on the node. */
  libraries: string;
  /** Containers that may share a NIC. */
  shares: number;
  log(text: string): void;
}

interface Watcher {
  write(answer: { devices: Device[] }): void;
  end(): void;
  on(event: "cancelled" | "error", listener: () => void): void;
}

/** Serves until `signal` is aborted. */
export async function runDevicePlugin(options: PluginOptions, signal: AbortSignal): Promise<void> {
  const plugin = new Plugin(options);
  try {
    while (!signal.aborted) {
      await plugin.look();
      await pause(kLookMs, signal);
    }
  } finally {
    plugin.close();
  }
}

class Plugin {
  #server: Server | undefined;
  /** The two sockets as they were when the kubelet last accepted the plugin. */
  #registered = "";
  /** The failure that was told last: it is told once. */
  #failure = "";
  #devices: Device[] = [];
  readonly #watchers = new Set<Watcher>();

  constructor(private readonly options: PluginOptions) {}

  /** Looks which NICs answer, and registers with a kubelet that does not know the plugin: one that starts removes all sockets. */
  async look(): Promise<void> {
    const devices = await this.#answering();
    if (JSON.stringify(devices) !== JSON.stringify(this.#devices)) {
      this.#devices = devices;
      for (const watcher of this.#watchers) watcher.write({ devices });
    }
    const sockets = this.#sockets();
    if (sockets !== undefined && sockets === this.#registered) return;
    try {
      await this.#serve();
      await this.#register();
      this.#registered = this.#sockets() ?? "";
      this.#failure = "";
      this.options.log(`registered ${kResource}, ${devices.length} devices`);
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.#failure) this.options.log(`cannot register with the kubelet, and go on trying: ${message}`);
      this.#failure = message;
    }
  }

  close(): void {
    for (const watcher of this.#watchers) watcher.end();
    this.#watchers.clear();
    this.#server?.forceShutdown();
    this.#server = undefined;
    rmSync(this.#path, { force: true });
  }

  get #path(): string {
    return join(this.options.kubelet, kEndpoint);
  }

  /** Tells one pair of sockets from another; undefined: one is not there. */
  #sockets(): string | undefined {
    const found = [this.#path, join(this.options.kubelet, "kubelet.sock")].map((path) =>
      statSync(path, { throwIfNoEntry: false }),
    );
    if (found.includes(undefined)) return undefined;
    return found.map((one) => `${one?.ino} ${one?.ctimeMs}`).join();
  }

  /** A NIC that is gone stays listed, unhealthy: a container may have it. */
  async #answering(): Promise<Device[]> {
    const { folder, shares } = this.options;
    const health = new Map(this.#devices.map(({ ID }) => [nicOf(ID), false]));
    for (const nic of programNics(folder)) {
      const socket = programSocket(folder, nic);
      health.set(nic, socket !== undefined && (await probe(socket)));
    }
    return [...health]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .flatMap(([nic, isHealthy]) =>
        Array.from(
          { length: shares },
          (_, i): Device => ({
            ID: `${nic}.${i}`,
            health: isHealthy ? "Healthy" : "Unhealthy",
          }),
        ),
      );
  }

  async #serve(): Promise<void> {
    this.close();
    const server = new Server();
    this.#server = server;
    server.addService(DevicePlugin.service, {
      GetDevicePluginOptions: (_: unknown, answer: sendUnaryData<object>) => answer(null, {}),
      ListAndWatch: (watcher: Watcher) => {
        this.#watchers.add(watcher);
        for (const event of ["cancelled", "error"] as const) watcher.on(event, () => this.#watchers.delete(watcher));
        watcher.write({ devices: this.#devices });
      },
      Allocate: ({ request }: ServerUnaryCall<AllocateRequest, object>, answer: sendUnaryData<object>) =>
        this.#allocate(request, answer),
    });
    await new Promise<void>((resolve, reject) =>
      server.bindAsync(`unix:${this.#path}`, ServerCredentials.createInsecure(), (error) =>
        error === null ? resolve() : reject(error),
      ),
    );
  }

  #register(): Promise<void> {
    const kubelet = new Registration(
      `unix:${join(this.options.kubelet, "kubelet.sock")}`,
      credentials.createInsecure(),
    );
    const request = { version: kApiVersion, endpoint: kEndpoint, resource_name: kResource, options: {} };
    return new Promise<void>((resolve, reject) =>
      kubelet.Register?.(request, { deadline: Date.now() + kRegisterMs }, (error: Error | null) =>
        error === null ? resolve() : reject(error),
      ),
    ).finally(() => kubelet.close());
  }

  #allocate({ container_requests }: AllocateRequest, answer: sendUnaryData<object>): void {
    const { folder, libraries } = this.options;
    const known = new Set(this.#devices.map(({ ID }) => ID));
    try {
      const container_responses = container_requests.map(({ devices_ids }) => {
        const stranger = devices_ids.find((id) => !known.has(id));
        if (stranger !== undefined) throw new Error(`there is no device ${stranger}`);
        const nics = [...new Set(devices_ids.map(nicOf))].sort();
        const allocation = allocate(folder, libraries, nics);
        if (allocation === undefined) throw new Error(`${nics.join(", ")}: a daemon does not serve programs`);
        return allocation;
      });
      answer(null, { container_responses });
    } catch (error) {
      answer({ code: status.UNAVAILABLE, details: (error as Error).message });
    }
  }
}

const nicOf = (id: string) => id.slice(0, id.lastIndexOf("."));

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}
