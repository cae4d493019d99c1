/** A kubelet, as far as device plugins see one: it takes registrations, follows lists of devices, and allocates. */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { credentials, Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from "@grpc/grpc-js";
import {
  type Allocation,
  type Device,
  DevicePlugin,
  type RegisterRequest,
  Registration,
} from "../../../src/daemon/pods/api.js";

export class Kubelet {
  readonly registrations: RegisterRequest[] = [];
  devices: Device[] = [];
  #plugin: InstanceType<typeof DevicePlugin> | undefined;

  private constructor(
    private readonly folder: string,
    private readonly server: Server,
  ) {}

  /** Starts one. As the kubelet does, it removes the sockets of the plugins that the one before knew. */
  static async start(folder: string): Promise<Kubelet> {
    for (const socket of ["kubelet.sock", "weir.sock"]) rmSync(join(folder, socket), { force: true });
    const server = new Server();
    const kubelet = new Kubelet(folder, server);
    server.addService(Registration.service, {
      Register: ({ request }: ServerUnaryCall<RegisterRequest, object>, answer: sendUnaryData<object>) => {
        kubelet.registrations.push(request);
        kubelet.#follow(request.endpoint);
        answer(null, {});
      },
    });
    await new Promise<void>((resolve, reject) =>
      server.bindAsync(`unix:${join(folder, "kubelet.sock")}`, ServerCredentials.createInsecure(), (error) =>
        error === null ? resolve() : reject(error),
      ),
    );
    return kubelet;
  }

  #follow(endpoint: string): void {
    if (!existsSync(join(this.folder, endpoint))) throw new Error("the plugin does not serve yet");
    this.#plugin = new DevicePlugin(`unix:${join(this.folder, endpoint)}`, credentials.createInsecure());
    this.#plugin
      .ListAndWatch?.({})
      .on("data", ({ devices }: { devices: Device[] }) => {
        this.devices = devices;
      })
      .on("error", () => {});
  }

  allocate(...containers: string[][]): Promise<{ container_responses: Allocation[] }> {
    const container_requests = containers.map((devices_ids) => ({ devices_ids }));
    return new Promise((resolve, reject) =>
      this.#plugin?.Allocate?.({ container_requests }, (error: Error | null, answer: never) =>
        error === null ? resolve(answer) : reject(error),
      ),
    );
  }

  close(): void {
    this.#plugin?.close();
    this.server.forceShutdown();
  }
}
