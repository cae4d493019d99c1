/** The options of verbs that have a soft NIC of their own in the process: which interface, which address. */
import { type Command, Option } from "commander";
import { WeirError } from "../base/error.js";
import { ownAddresses } from "../host/interface.js";
import type { Device } from "../verbs/device.js";
import type { DeviceOptions } from "../verbs/open.js";
import { parsePrefix } from "../wire/prefix.js";
import { asUsage, collect, UsageError } from "./context.js";

export interface DeviceChoice {
  device?: string;
  nic?: string;
  address?: string[];
}

/** Opens a soft NIC; tests give their own. */
export type OpenDevice = (options: DeviceOptions) => Promise<Device>;

/** The native core is loaded when needed: help works without it. */
export const openRealDevice: OpenDevice = async (options) => (await import("../verbs/open.js")).openDevice(options);

export function addDeviceOptions(command: Command): Command {
  return command
    .option("-d, --device <interface>", "network interface to use")
    .addOption(
      new Option("--nic <name>", "NIC of a running weir nic instead, or the path of its control socket").conflicts([
        "device",
        "address",
      ]),
    )
    .option(
      "--address <address/prefix>",
      "own address, such as 10.0.0.9/24; repeatable, one for each IP version (default: the interface's)",
      (text: string, before: readonly string[] | undefined) => {
        prefixOption(text);
        return collect(text, before);
      },
    );
}

/** The message of parsePrefix() begins with its field, which has the name of the option. */
function prefixOption(text: string): void {
  try {
    parsePrefix(text);
  } catch (error) {
    if (!(error instanceof WeirError)) throw error;
    throw new UsageError(`--${error.message}`, { cause: error, hint: error.hint });
  }
}

/** Runs `action` on a device that is closed afterwards, or as soon as `signal` says so. */
export async function withDevice(
  open: OpenDevice,
  choice: DeviceChoice,
  signal: AbortSignal,
  action: (device: Device) => Promise<number>,
): Promise<number> {
  const device = await open(optionsOf(choice));
  const close = () => device.close();
  signal.addEventListener("abort", close, { once: true });
  try {
    signal.throwIfAborted();
    return await action(device);
  } finally {
    signal.removeEventListener("abort", close);
    close();
  }
}

function optionsOf({ device, nic, address }: DeviceChoice): DeviceOptions {
  if (nic !== undefined) return { nic };
  if (device === undefined) {
    throw new UsageError("no device", { hint: "-d INTERFACE, or --nic NAME of a running weir nic" });
  }
  return { interface: device, address: address ?? addressesOf(device) };
}

/** Addresses that the kernel has there: the first global one of each IP version. */
export function addressesOf(name: string): string[] {
  const all = asUsage(() => ownAddresses(name));
  const firsts = [":", "."].flatMap((mark) => all.find((address) => address.includes(mark)) ?? []).reverse();
  if (firsts.length > 0) return firsts;
  throw new UsageError(`${name} has no address`, { hint: "give one with --address, such as --address 10.0.0.9/24" });
}

/** A whole number for a commander option. */
export function integer(option: string, least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new UsageError(`${option} ${text}: not a number from ${least} to ${most}`);
  };
}
