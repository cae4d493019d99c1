/** Folder where daemons and labs of this user have their control sockets, and labs that stay their files. */
import { accessSync, constants, lstatSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileReason, WeirError } from "../base/error.js";
import { inUserNamespace } from "./rootless.js";

/** Variable that names another place: on a host of a lab, that of its NIC. */
export const kControlVariable = "WEIR_CONTROL_DIRECTORY";

/** Place of root, and of the systemd units. */
export const kSystemControlDirectory = "/run/weir";

export interface ControlPlace {
  path: string;
  /** Says why this place was chosen. */
  by: "variable" | "root" | "session" | "fallback";
}

/** @param fallbacks The folder in which an ordinary user's own one is made if there is no other place. */
export function controlPlace(fallbacks = "/tmp"): ControlPlace {
  const named = process.env[kControlVariable];
  if (named !== undefined && named !== "") return { path: named, by: "variable" };
  const user = userOutside();
  if (user === 0) return { path: kSystemControlDirectory, by: "root" };
  const runtime = process.env.XDG_RUNTIME_DIR;
  // After `su` the variable may still name the folder of the user before.
  if (runtime !== undefined && runtime !== "" && mayWrite(join(runtime, "weir"))) {
    return { path: join(runtime, "weir"), by: "session" };
  }
  return { path: join(fallbacks, `weir-${user}`), by: "fallback" };
}

/**
 * Returns the folder, and makes it if it is the user's own in /tmp: anybody could put one there before.
 * @throws WeirError when that is not the user's alone
 */
export function controlDirectory(fallbacks?: string): string {
  const { path, by } = controlPlace(fallbacks);
  if (by !== "fallback") return path;
  const problem = makeOwnFolder(path) ?? controlPlaceProblem({ path, by });
  if (problem === undefined) return path;
  throw new WeirError(`no place for control sockets: XDG_RUNTIME_DIR names none, and ${problem}`, {
    hint: kControlPlaceRemedy,
  });
}

export const kControlPlaceRemedy = 'set it to a folder of your own: export XDG_RUNTIME_DIR="$HOME/.weir"';

/** Says why sockets in the user's own folder in /tmp would not be safe; undefined where it is fit, or not there yet. */
export function controlPlaceProblem({ path, by }: ControlPlace): string | undefined {
  if (by !== "fallback") return undefined;
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  if (found.isSymbolicLink()) return `${path} is a symbolic link`;
  if (!found.isDirectory()) return `${path} is not a folder`;
  if (found.uid !== process.geteuid?.()) return `${path} belongs to another user`;
  if ((found.mode & 0o077) !== 0) return `${path} may be opened by other users: its mode should be 0700`;
  return undefined;
}

function makeOwnFolder(path: string): string | undefined {
  try {
    mkdirSync(path, 0o700);
    return undefined;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === "EEXIST" ? undefined : `${path} cannot be made: ${fileReason(error) ?? message}`;
  }
}

/** Root of a lab's user namespace is the user who began the lab. */
function userOutside(): number {
  const here = process.geteuid?.() ?? 0;
  if (!inUserNamespace()) return here;
  const [first = 0, outside = here] = readFileSync("/proc/self/uid_map", "utf8").trim().split(/\s+/).map(Number);
  return outside + here - first;
}

/** Checks the folder, or, where it is not there yet, the one in which it would be made. */
function mayWrite(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" && dirname(folder) !== folder && mayWrite(dirname(folder));
  }
}
