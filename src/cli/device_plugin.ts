/** `weir device-plugin`: offers this node's NICs to the pods of Kubernetes. */

import { installLibraries } from "../daemon/pods/allocation.js";
import { kResource, runDevicePlugin } from "../daemon/pods/device_plugin.js";
import { programLibraries } from "../daemon/programs/launch.js";
import { controlDirectory } from "../host/control_directory.js";
import { type AddVerb, kExit } from "./context.js";
import { integer } from "./device_options.js";
import { untilSignal } from "./stop_signals.js";

interface Choice {
  kubelet: string;
  libraries: string;
  shares: number;
}

const kMostShares = 256;

export const addDevicePlugin: AddVerb = (parent, context, done) => {
  parent
    .command("device-plugin")
    .description(`offer this node's NICs to the pods of Kubernetes, as ${kResource}`)
    .option("--kubelet <folder>", "folder of the kubelet's socket", "/var/lib/kubelet/device-plugins")
    .option("--libraries <folder>", "folder of the node for the libraries that pods load", "/var/lib/weir")
    .option("--shares <n>", "containers that may share a NIC", integer("--shares", 1, kMostShares), 16)
    .action(async (choice: Choice) => {
      installLibraries(programLibraries(), choice.libraries);
      const log = (text: string) => void context.stderr.write(`weir device-plugin: ${text}\n`);
      const options = { ...choice, folder: controlDirectory(), log };
      done(
        await untilSignal(context, async (signal) => {
          await runDevicePlugin(options, signal);
          return kExit.ok;
        }),
      );
    });
};
