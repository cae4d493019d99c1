/** Requests to a process that has several devices, a lab or a daemon: each names its device. */
import { WeirError } from "../base/error.js";
import type { ControlRequest } from "./control_server.js";
import type { Device } from "./device.js";

/**
 * @param who Name of the process in messages.
 * @param whole Requests that are for all of them, and name none.
 * @throws WeirError where no device is named, or one that does not exist; and as that device does.
 */
export function answerAmong(
  devices: ReadonlyMap<string, Device>,
  asked: ControlRequest,
  who: string,
  whole: Readonly<Record<string, () => unknown>>,
): unknown {
  const { device: name, ...own } = asked;
  const names = [...devices.keys()].join(", ");
  if (name === undefined) {
    if (Object.hasOwn(whole, own.request)) return whole[own.request]?.();
    throw new WeirError(`${who} has several devices, and ${own.request} is for one`, {
      hint: `add "device": ${names}`,
    });
  }
  const device = devices.get(String(name));
  if (device === undefined) throw new WeirError(`${who} has no device ${name}`, { hint: `it has ${names}` });
  return device.answer(own as ControlRequest);
}
