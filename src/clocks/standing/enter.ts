/** Commands that bring a program onto a host of a lab: into its namespaces, with an environment that leads to its NIC. */
import { join } from "node:path";
import { WeirError } from "../../base/error.js";
import { launcherPath, programEnvironment, programLibraries } from "../../daemon/programs/launch.js";
import { kControlVariable } from "../../host/control_directory.js";
import { runTool, ToolError } from "../../host/tools.js";
import { kOwnFolder, kSystemFolder } from "./place.js";

/** Variables that are set for programs of a lab's hosts. @param lab Folder of the lab. */
export function hostEnvironment(lab: string): Record<string, string> {
  const folder = join(lab, kOwnFolder);
  return { [kControlVariable]: folder, ...nicEnvironment(join(folder, kSystemFolder)) };
}

/** Variables for the libraries; where those were not built, the user was told so when the lab was built. */
function nicEnvironment(files: string): Record<string, string> {
  try {
    return programEnvironment(programLibraries(), files);
  } catch (error) {
    if (error instanceof WeirError) return {};
    throw error;
  }
}

/**
 * Has programs of a host see its NIC under /sys and /dev, where the mounts of its process 1 are. Returns why they do not; where the
 * libraries were not built, the user was told so when the lab was built.
 */
export async function showDevices(pid: number, folder: string): Promise<string | undefined> {
  try {
    const launcher = [launcherPath(), "--here", "weir lab up", join(folder, kSystemFolder)];
    await runTool("nsenter", ["--target", String(pid), "--mount", "--pid", "--", ...launcher]);
    return undefined;
  } catch (error) {
    if (error instanceof ToolError) return error.message;
    if (error instanceof WeirError) return undefined;
    throw error;
  }
}

/**
 * The command that runs `command` on a host, in `folder` where the host has that.
 * @param pid Process 1 of the host.
 * @param userNamespace The host is in another user namespace than this process.
 */
export function enterHost(
  { pid, userNamespace }: { pid: number; userNamespace: boolean },
  environment: Readonly<Record<string, string>>,
  command: readonly string[],
  folder: string,
): [string, ...string[]] {
  const namespaces = [
    ...["--target", String(pid), "--net", "--uts", "--ipc", "--mount", "--pid"],
    ...(userNamespace ? ["--user", "--preserve-credentials"] : []),
  ];
  // Entering mounts leads to their root. The variables are set there: nsenter and the shell are none of the programs that need them.
  const inside = ["sh", "-c", 'cd "$0" 2> /dev/null; exec env "$@"', folder];
  const settings = Object.entries(environment).map(([key, value]) => `${key}=${value}`);
  return ["nsenter", ...namespaces, "--", ...inside, ...settings, ...command];
}
