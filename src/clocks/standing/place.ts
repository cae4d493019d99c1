/** Files of a lab that stays: they are in NAME.lab beside its control socket, where each host has a folder of its own. */
import { readdirSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { controlSockets, kLabSuffix } from "../../device/control_client.js";

const kFolderSuffix = kLabSuffix.replace(/\.sock$/, "");

export const labSocket = (directory: string, name: string) => join(directory, name + kLabSuffix);
export const labFolder = (directory: string, name: string) => join(directory, name + kFolderSuffix);

/** Name of the log in a lab's folder, written while it runs in the background. */
export const kLogFile = "log";
/** Folder in a lab's folder as which every host sees its own: variables that name it mean the same on all, as MPI hands them from one to another. */
export const kOwnFolder = ".host";
/** Folder in a host's folder with the files of its NIC for $SYSFS_PATH. */
export const kSystemFolder = "sys";

/** The lab to which the folder of a host belongs: where its control sockets are, and its name. Undefined: it is no host's folder. */
export function labAround(folder: string): { directory: string; name: string } | undefined {
  const lab = dirname(folder);
  if (!lab.endsWith(kFolderSuffix)) return undefined;
  return { directory: dirname(lab), name: basename(lab, kFolderSuffix) };
}

/** Names of the labs that answer, those of `weir lab run` too. Leftovers of labs that were killed are removed on the way. */
export async function answeringLabs(directory: string): Promise<string[]> {
  const suffix = kLabSuffix.replace(/\.sock$/, "");
  const sockets = await controlSockets(directory);
  const names = sockets.filter((name) => name.endsWith(suffix)).map((name) => name.slice(0, -suffix.length));
  removeLeft(directory, names);
  return names;
}

/** Time after its folder was made in which a lab may be about to have its socket. */
const kStartingMs = 10_000;

function removeLeft(directory: string, alive: readonly string[]): void {
  let files: string[];
  try {
    files = readdirSync(directory);
  } catch {
    return;
  }
  for (const file of files.filter((name) => name.endsWith(kFolderSuffix))) {
    const name = file.slice(0, -kFolderSuffix.length);
    if (alive.includes(name) || files.includes(name + kLabSuffix)) continue;
    const folder = join(directory, file);
    const { mtimeMs } = statSync(folder, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() };
    if (Date.now() - mtimeMs > kStartingMs) rmSync(folder, { recursive: true, force: true });
  }
}
