/** The device plugin, and a kubelet that knows its API. */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { installLibraries } from "../../../src/daemon/pods/allocation.js";
import { DevicePlugin, Registration } from "../../../src/daemon/pods/api.js";
import { kResource, runDevicePlugin } from "../../../src/daemon/pods/device_plugin.js";
import { DeviceFiles } from "../../../src/daemon/programs/device_files.js";
import { eventually } from "../../patience.js";
import { Kubelet } from "./kubelet.js";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "weir-test-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Files and socket of a daemon's NIC; returns how it ends. */
async function startNic(control: string, name: string): Promise<() => void> {
  const socket = join(control, `${name}.verbs`);
  const files = new DeviceFiles(join(control, `${name}.rdma`), {
    ...{ name, interface: "eth1", mac: 0x02_00_00_00_00_01, rate: 25e9, socket },
  });
  files.write({ up: true, gids: ["10.0.0.5"], counters: {} });
  const server = createServer((connection) => connection.destroy());
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  const end = () => {
    server.close();
    files.remove();
  };
  onTestFinished(end);
  return end;
}

/** A plugin of two containers for each NIC; `told` is its log. */
function startPlugin(kubelet: string, control: string): { told: string[]; stop(): Promise<void> } {
  const told: string[] = [];
  const abort = new AbortController();
  const options = {
    kubelet,
    folder: control,
    libraries: "/var/lib/weir",
    shares: 2,
    log: (text: string) => told.push(text),
  };
  const ended = runDevicePlugin(options, abort.signal);
  const stop = () => {
    abort.abort();
    return ended;
  };
  onTestFinished(stop);
  return { told, stop };
}

async function startKubelet(path: string): Promise<Kubelet> {
  const kubelet = await Kubelet.start(path);
  onTestFinished(() => kubelet.close());
  return kubelet;
}

const listed = (...devices: [string, string][]) => devices.map(([ID, health]) => ({ ID, health }));

it("registers, lists NICs as they come and go, and registers again with a kubelet that has started anew", async () => {
  const [path, control] = [folder(), folder()];
  const plugin = startPlugin(path, control);
  await eventually(() => expect(plugin.told).toEqual([expect.stringMatching(/^cannot register with the kubelet/)]));
  const first = await startKubelet(path);
  await eventually(() => expect(first.registrations).toHaveLength(1));
  expect(first.registrations).toMatchObject([{ version: "v1beta1", endpoint: "weir.sock", resource_name: kResource }]);

  const end = await startNic(control, "roce0");
  await eventually(() => expect(first.devices).toEqual(listed(["roce0.0", "Healthy"], ["roce0.1", "Healthy"])));
  end();
  await eventually(() => expect(first.devices).toEqual(listed(["roce0.0", "Unhealthy"], ["roce0.1", "Unhealthy"])));
  await expect(first.allocate(["roce0.0"])).rejects.toThrow("a daemon does not serve programs");

  first.close();
  await startNic(control, "roce1");
  const second = await startKubelet(path);
  await eventually(() => expect(second.registrations).toHaveLength(1));
  await eventually(() => expect(second.devices.filter(({ health }) => health === "Healthy")).toHaveLength(2));
  await plugin.stop();
  expect(existsSync(join(path, "weir.sock"))).toBe(false);
});

it("gives a container files, socket, libraries and variables of its NIC, and not the daemon's control socket", async () => {
  const [path, control] = [folder(), folder()];
  await startNic(control, "roce0");
  await startNic(control, "roce1");
  writeFileSync(join(control, "roce0.sock"), "");
  startPlugin(path, control);
  const kubelet = await startKubelet(path);
  await eventually(() => expect(kubelet.devices).toHaveLength(4));
  const { container_responses } = await kubelet.allocate(["roce0.1", "roce0.0"], ["roce1.0", "roce0.0"]);
  const [one, two] = container_responses;
  const files = one?.envs.SYSFS_PATH ?? "";
  expect(one).toEqual({
    envs: {
      SYSFS_PATH: expect.stringContaining(join(control, "pods/roce0.")),
      IBV_DRIVERS: "/var/lib/weir/libweir",
      LD_PRELOAD: expect.stringMatching(/^\/var\/lib\/weir\/libweir-preload\.so/),
    },
    mounts: [
      ["/var/lib/weir", true],
      [files, true],
      [join(control, "roce0.rdma"), true],
      [join(control, "roce0.verbs"), false],
    ].map(([file, read_only]) => ({ container_path: file, host_path: file, read_only })),
  });
  expect(readFileSync(join(files, "class/infiniband_verbs/uverbs0/ibdev"), "utf8")).toBe("roce0\n");
  expect(two?.mounts).toHaveLength(6);
  // A folder that a container has is not made anew for the next one.
  const { ino } = statSync(files);
  const again = await kubelet.allocate(["roce0.1"]);
  expect(again.container_responses[0]?.envs.SYSFS_PATH).toBe(files);
  expect(statSync(files).ino).toBe(ino);
  await expect(kubelet.allocate(["roce7.0"])).rejects.toThrow("there is no device roce7.0");
});

it("brings libraries to the node, and replaces those of an older version", () => {
  const [from, to] = [folder(), join(folder(), "weir")];
  for (const file of ["libweir-preload.so", "libweir-rdmav34.so", "weir.node"]) writeFileSync(join(from, file), "new");
  for (let i = 0; i < 2; i++) installLibraries(from, to);
  expect(statSync(join(to, "libweir-rdmav34.so")).mode & 0o777).toBe(0o755);
  expect(readFileSync(join(to, "libweir-preload.so"), "utf8")).toBe("new");
  expect(existsSync(join(to, "weir.node"))).toBe(false);
});

/** Bytes worked out by hand from numbers of the published API: a kubelet reads these, whatever our names are. */
it("puts fields where the API has them", () => {
  const register = Registration.service.Register?.requestSerialize;
  expect(register?.({ version: "v1", endpoint: "e", resource_name: "r" }).toString("hex")).toBe("0a0276311201651a0172");
  const { ListAndWatch, Allocate } = DevicePlugin.service;
  expect(ListAndWatch?.path).toBe("/v1beta1.DevicePlugin/ListAndWatch");
  expect(ListAndWatch?.responseSerialize({ devices: [{ ID: "a", health: "b" }] }).toString("hex")).toBe(
    "0a060a0161120162",
  );
  expect(Allocate?.requestDeserialize(Buffer.from("0a030a0161", "hex"))).toEqual({
    container_requests: [{ devices_ids: ["a"] }],
  });
  const mounts = [{ container_path: "c", host_path: "h", read_only: true }];
  expect(Allocate?.responseSerialize({ container_responses: [{ envs: { k: "v" }, mounts }] }).toString("hex")).toBe(
    "0a120a060a016b12017612080a01631201681801",
  );
});
