/** Opens devices. */
import { WeirError } from "../base/error.js";
import type { Device } from "./device.js";
import { InterfaceDevice, type InterfaceOptions } from "./interface_device.js";
import { NicDevice, type NicOptions } from "./nic_device.js";

export type DeviceOptions = InterfaceOptions | NicOptions;

/** Opens an interface, or a NIC that a daemon has. @throws WeirError when options are wrong, or the host or the daemon refuses. */
export async function openDevice(options: DeviceOptions): Promise<Device> {
  if ("nic" in options && options.nic !== undefined) return openNic(options);
  if (!("interface" in options) || options.interface === undefined) {
    throw new WeirError("interface: a device is on an interface, or on a NIC that weir nic has", {
      field: "interface",
      hint: 'give either: { interface: "eth0", address: "10.0.0.2/24" }, or { nic: "roce0" }',
    });
  }
  const device = new InterfaceDevice(options);
  try {
    await device.start();
    return device;
  } catch (error) {
    device.close();
    throw error;
  }
}

async function openNic(options: NicOptions): Promise<Device> {
  if (typeof options.nic !== "string" || options.nic === "") {
    throw new WeirError(`nic: ${String(options.nic)} is no name of a NIC`, {
      field: "nic",
      hint: "weir show lists NICs",
    });
  }
  for (const name of Object.keys(options)) {
    if (name === "nic" || options[name as keyof NicOptions] === undefined) continue;
    throw new WeirError(`${name}: not with nic: what the daemon's NIC is, its file says`, {
      field: name,
      hint: `set it in the file of weir nic, or open an interface instead of the NIC ${options.nic}`,
    });
  }
  return NicDevice.open(options.nic);
}
