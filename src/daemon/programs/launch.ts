/** Prepares programs that use the NICs of this host: environment, and files in which libibverbs looks for devices. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { WeirError } from "../../base/error.js";
import { probe } from "../../device/control_client.js";
import { controlDirectory } from "../../host/control_directory.js";
import { whyNotBuilt } from "../../host/verbs_libraries.js";
import { addonFile } from "../../native/addon.js";
import { programNics, programSocket, writeSystemFiles } from "./device_files.js";

/** Value of $IBV_DRIVERS, and the file that libibverbs makes of it by its provider ABI. */
const kProvider = { driver: "libweir", file: "libweir-rdmav34.so" };
const kPreload = "libweir-preload.so";
/** Program by which others see the devices of a folder. */
const kLauncher = "weir-launch";

export interface Launch {
  nics: string[];
  /** Variables to set; LD_PRELOAD keeps its earlier value. */
  environment: Record<string, string>;
  /** Folder for $SYSFS_PATH; a caller that asked for a temporary one removes it. */
  files: string;
  /** Words in front of a program that has it see the devices, with the variables. @param name Begins warnings. */
  before(name: string): string[];
}

/**
 * @param nics Names; none: all that run here and serve programs.
 * @param options `lasting`: the files stay, under the folder of control sockets; `folder`: that folder.
 * @throws WeirError when there is no such NIC, it does not answer, or the libraries were not built.
 */
export async function prepareLaunch(
  nics: readonly string[],
  { lasting = false, folder = controlDirectory() }: { lasting?: boolean; folder?: string } = {},
): Promise<Launch> {
  const running = programNics(folder);
  const chosen = nics.length > 0 ? [...nics] : await answering(folder, running);
  if (chosen.length === 0) {
    throw new WeirError("no NIC of this host serves programs", {
      hint: "start one: weir nic -c nic.yaml, with `programs: true` in its file",
    });
  }
  for (const nic of chosen) {
    const socket = programSocket(folder, nic);
    if (socket === undefined) {
      throw new WeirError(`no NIC ${nic} serves programs`, {
        hint: running.length > 0 ? `there is ${running.join(", ")}` : "start it with `programs: true` in its file",
      });
    }
    if (!(await probe(socket))) {
      throw new WeirError(`NIC ${nic} does not answer at ${socket}`, {
        hint: "start it, as whoever may open its socket",
      });
    }
  }
  const libraries = programLibraries();
  const files = writeSystemFiles(folder, chosen, lasting ? join(folder, "rdma", chosen.join("+")) : undefined);
  const environment = programEnvironment(libraries, files);
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const before = (name: string) => [join(libraries, kLauncher), name, files, ...variables];
  return { nics: chosen, environment, files, before };
}

/** Path of the program by which others see devices. @throws WeirError where it was not built. */
export const launcherPath = () => join(programLibraries(), kLauncher);

/** Folder of the libraries that programs load. @throws WeirError where they were not built. */
export function programLibraries(): string {
  const libraries = dirname(addonFile());
  for (const file of [kProvider.file, kPreload, kLauncher]) {
    if (existsSync(join(libraries, file))) continue;
    const { why, remedy } = whyNotBuilt(libraries);
    throw new WeirError(`${join(libraries, file)} was not built: ${why}`, { hint: remedy });
  }
  return libraries;
}

/** Variables for programs that find the NICs of `files`; LD_PRELOAD keeps its earlier value. */
export function programEnvironment(libraries: string, files: string): Record<string, string> {
  // A program that is started by one with the library needs it once.
  const before = (process.env.LD_PRELOAD ?? "")
    .split(":")
    .filter((part) => part !== "" && part !== join(libraries, kPreload));
  const preload = [join(libraries, kPreload), ...before].join(":");
  return { SYSFS_PATH: files, IBV_DRIVERS: join(libraries, kProvider.driver), LD_PRELOAD: preload };
}

async function answering(folder: string, nics: readonly string[]): Promise<string[]> {
  const alive = await Promise.all(
    nics.map(async (nic) => {
      const socket = programSocket(folder, nic);
      return socket !== undefined && (await probe(socket));
    }),
  );
  return nics.filter((_, i) => alive[i]);
}
