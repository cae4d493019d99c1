/** `weir clear`: counters of running daemons and labs start afresh; those that Prometheus scrapes go on. */
import { Argument } from "commander";
import { WeirError } from "../base/error.js";
import { askDevice, findDevices } from "../device/running.js";
import type { AddVerb } from "./context.js";
import { socketOption } from "./socket_option.js";

export const addClear: AddVerb = (parent, context) => {
  parent
    .command("clear")
    .description("let `weir show` count from now on")
    .addArgument(new Argument("<what>").choices(["counters"]))
    .argument("[name]", "daemon, lab, or a lab's device; needed when several run")
    .addOption(socketOption())
    .addHelpText("after", "\nWatermarks stay, and metrics for Prometheus never go back.\n")
    .action(async (_: string, name: string | undefined, options: { socket?: string }) => {
      const devices = await findDevices({ name, socket: options.socket });
      const owners = [...new Set(devices.map((device) => device.owner ?? device.name))];
      if (owners.length > 1) {
        throw new WeirError(`several daemons and labs are running: ${owners.join(", ")}`, { hint: "name one of them" });
      }
      const answers = await Promise.all(devices.map((device) => askDevice(device, "clear")));
      context.stdout.write(`counters cleared at ${answers.at(-1)?.cleared}\n`);
    });
};
