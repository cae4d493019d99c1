/** What a container is given so that its programs find NICs of the node's daemons: files, sockets, libraries, and variables. */
import { chmodSync, copyFileSync, existsSync, readdirSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { makeFolder } from "../../base/folder.js";
import { kFilesSuffix, programSocket, writeSystemFiles } from "../programs/device_files.js";
import { programEnvironment } from "../programs/launch.js";
import type { Allocation, Mount } from "./api.js";

const kLibrary = /^libweir-.*\.so$/;
const kReadable = 0o755;

/** Copies the libraries that programs load to a folder of the node; a program that has an old one open keeps it. */
export function installLibraries(from: string, to: string): void {
  makeFolder(to, kReadable);
  for (const file of readdirSync(from).filter((name) => kLibrary.test(name))) {
    const fresh = join(to, `${file}~`);
    copyFileSync(join(from, file), fresh);
    chmodSync(fresh, kReadable);
    renameSync(fresh, join(to, file));
  }
}

/**
 * Each path is the same on the node, in the plugin and in the container. The daemon's control socket is not among them.
 * @param folder The folder of control sockets. @returns undefined where one of the NICs does not serve programs.
 */
export function allocate(folder: string, libraries: string, nics: readonly string[]): Allocation | undefined {
  const sockets = nics.map((nic) => programSocket(folder, nic));
  if (!sockets.every((socket) => socket !== undefined)) return undefined;
  const files = systemFiles(folder, nics);
  return {
    envs: programEnvironment(libraries, files),
    mounts: [
      mount(libraries, true),
      mount(files, true),
      ...nics.map((nic) => mount(join(folder, nic + kFilesSuffix), true)),
      // Who connects to a socket writes to it.
      ...sockets.map((socket) => mount(socket, false)),
    ],
  };
}

const mount = (path: string, readOnly: boolean): Mount => ({
  container_path: path,
  host_path: path,
  read_only: readOnly,
});

/** Containers share the folder of the same NICs, and a daemon that was started again has another one: a mounted folder is never replaced. */
function systemFiles(folder: string, nics: readonly string[]): string {
  const starts = nics.map((nic) => `${nic}.${statSync(join(folder, nic + kFilesSuffix)).ino}`);
  const files = join(folder, "pods", starts.join("+"));
  // The interfaces are the node's, not the container's.
  return existsSync(files) ? files : writeSystemFiles(folder, nics, files, () => false);
}
