/** The switches and NICs that can be asked: a daemon is one or has one for each port, a lab has several. */
import { join } from "node:path";
import { WeirError } from "../base/error.js";
import { controlDirectory } from "../host/control_directory.js";
import { knownHost } from "../scenario/host_names.js";
import { ask, controlSockets, kLabSuffix, NoAnswer } from "./control_client.js";
import type { ControlRequests, Status } from "./protocol.js";

export interface ControlledDevice {
  /** Name: "sw0" of a daemon, "roce_1" of one with several, "incast-4to1.h1" of a lab. */
  name: string;
  /** Kind of the device; undefined: it has not told. */
  kind: Status["kind"] | undefined;
  socket: string;
  /** Name of the device in a lab, or in a daemon with several. A lab without is one that does not tell which it has. */
  device: string | undefined;
  /** The lab, or the daemon with several, that it belongs to. */
  owner: string | undefined;
}

export interface DeviceChoice {
  /** Name of a daemon, a lab, or a lab's device; "h1" for "incast-4to1.h1" where only one lab has an h1. */
  name?: string | undefined;
  socket?: string | undefined;
}

/** Error of a name that nothing has that runs. */
export class NotRunning extends WeirError {}

export async function askDevice<Name extends keyof ControlRequests>(
  { socket, device }: ControlledDevice,
  request: Name,
  more: object = {},
): Promise<ControlRequests[Name]> {
  return ask(socket, request, { ...more, ...(device !== undefined && { device }) });
}

/** All devices that run, in the order of their names; a lab's in the order of its scenario. */
export async function runningDevices(folder: string): Promise<ControlledDevice[]> {
  const names = await controlSockets(folder);
  return (await Promise.all(names.map((name) => devicesAt(join(folder, `${name}.sock`))))).flat();
}

async function devicesAt(socket: string): Promise<ControlledDevice[]> {
  const file = socket.slice(socket.lastIndexOf("/") + 1);
  if (!file.endsWith(kLabSuffix)) {
    const name = file.replace(/\.sock$/, "");
    return ask(socket, "status").then(
      (status) => devicesOf({ ...status, name }, socket),
      () => [{ name, kind: undefined, socket, device: undefined, owner: undefined }],
    );
  }
  const lab = file.slice(0, -kLabSuffix.length);
  const devices = await ask(socket, "lab").then(
    (report) => report.devices,
    (error) => {
      if (error instanceof NoAnswer) return undefined;
      // A lab that refuses is being built, or taken down.
      return [];
    },
  );
  if (devices === undefined) return [{ name: lab, kind: undefined, socket, device: undefined, owner: lab }];
  return devices.map(({ name, kind }) => ({ name: `${lab}.${name}`, kind, socket, device: name, owner: lab }));
}

/** Devices of a daemon. */
function devicesOf({ name, kind, devices }: Status, socket: string): ControlledDevice[] {
  if (devices === undefined) return [{ name, kind, socket, device: undefined, owner: undefined }];
  return devices.map((device) => ({ name: device, kind, socket, device, owner: name }));
}

/**
 * Finds the devices of `choice`: one device, all of a lab, or all that run.
 * @throws WeirError when there is none, NotRunning when nothing has the name, NoAnswer when the lab that it may be in says nothing.
 */
export async function findDevices(
  { name, socket }: DeviceChoice,
  directory: () => string = controlDirectory,
): Promise<ControlledDevice[]> {
  if (socket !== undefined) return atSocket(socket, name);
  const folder = directory();
  const running = await runningDevices(folder);
  const silent = running.find(({ owner, device }) => owner !== undefined && device === undefined);
  if (silent !== undefined && (name === undefined || name === silent.name || name.startsWith(`${silent.name}.`)))
    throw new NoAnswer(`the lab ${silent.name}`);
  if (name === undefined) {
    if (running.length > 0) return running;
    throw new WeirError("no daemon or lab is running", {
      hint: `start one: weir switch -c switch.yaml; looked in ${folder}, --socket names another place`,
    });
  }
  return named(running, name) ?? refuse(name, running, folder);
}

function named(running: readonly ControlledDevice[], wanted: string): ControlledDevice[] | undefined {
  const name = knownHost(wanted, (one) => running.some((device) => device.name === one || device.device === one));
  const exact = running.filter((device) => device.name === name);
  if (exact.length > 0) return exact;
  const owned = running.filter(({ owner }) => owner === name);
  if (owned.length > 0) return owned;
  const short = running.filter(({ device }) => device === name);
  return short.length === 1 ? short : undefined;
}

function refuse(name: string, running: readonly ControlledDevice[], folder: string): never {
  const names = running.map((device) => device.name);
  const several = running.filter(({ device }) => device === name).map((device) => device.name);
  if (several.length > 0)
    throw new WeirError(`several labs have a ${name}`, { hint: `name one: ${several.join(", ")}` });
  throw new NotRunning(`no daemon or lab called ${name} is running`, {
    hint: names.length === 0 ? `none is running in ${folder}` : `running: ${names.join(", ")}`,
  });
}

/** Devices at a socket. A daemon goes by the name that it tells; in a lab, `name` may choose a device. */
async function atSocket(socket: string, name: string | undefined): Promise<ControlledDevice[]> {
  const devices = socket.endsWith(kLabSuffix)
    ? await devicesAt(socket)
    : devicesOf(await ask(socket, "status"), socket);
  return name === undefined ? devices : (named(devices, name) ?? refuse(name, devices, socket));
}
