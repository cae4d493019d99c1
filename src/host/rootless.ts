/** Labs without root: runs the same command again, as root of a user and network namespace of its own. */
import { spawn, spawnSync } from "node:child_process";
import { closeSync, readFileSync } from "node:fs";
import type { Server } from "node:net";
import { constants } from "node:os";
import type { Writable } from "node:stream";
import { WeirError } from "../base/error.js";
import { hasCapability } from "../native/capabilities.js";
import { missingTool } from "./tools.js";

/** Variable of the child: the pid of the process that waits for it. */
const kMarker = "WEIR_ROOTLESS_PARENT";
/** Variable of the child: names of the listening sockets that it was given, the first of them at this descriptor. */
const kListeners = "WEIR_ROOTLESS_LISTENERS";
const kFirstListener = 4;
/** Variable of the child: the descriptor from which it reads the scenario's text. */
const kText = "WEIR_ROOTLESS_TEXT";
const kTextDescriptor = 3;
const kForwarded = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGWINCH"] as const;
const kUnshare = ["--user", "--map-root-user", "--net"];
/** Capabilities for namespaces, links in them, packet sockets. */
const kNeeded = ["CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_ADMIN"] as const;

/** Things that a process gives to the one that it runs in its place. */
export interface Handed {
  /** Functions that make listening sockets in the host's network: the other process is in another network. */
  listeners?: Readonly<Record<string, () => Promise<Server>>>;
  /** Text of a file that this process has read: the other one could not read a pipe once more. */
  text?: string;
}

/** True in such a child: its user is an ordinary one, although it seems to be root. */
export const inUserNamespace = () => process.env[kMarker] !== undefined;

/** Capabilities that a lab needs and /proc/self/status, given as text, does not have. */
export function missingCapabilities(status: string): string[] {
  return kNeeded.filter((name) => !hasCapability(status, name));
}

/**
 * Returns undefined if this process may build labs itself. Otherwise runs the whole command again in a new user namespace, with
 * this process's arguments and standard streams, and gives its exit status (128 + n if signal n ended it). Signals go on to the
 * child, and however this process ends, the child ends with it. Call it before threads exist.
 * Fails with a WeirError that names the remedy where user namespaces are not allowed.
 */
export async function reexecuteRootless({ listeners = {}, text }: Handed = {}): Promise<number | undefined> {
  const parent = process.env[kMarker];
  // The process that waited for this one is already gone; the kernel tells only of deaths to come.
  if (parent !== undefined && process.ppid !== Number(parent)) return 128 + constants.signals.SIGKILL;
  const missing = missingCapabilities(readFileSync("/proc/self/status", "utf8"));
  if (missing.length === 0) return undefined;
  if (parent !== undefined) throw forbidden(`no ${missing.join(", ")} even in a user namespace`);
  probe();
  const made: [name: string, server: Server][] = [];
  for (const [name, make] of Object.entries(listeners)) made.push([name, await make()]);
  return runInUserNamespace(made, text);
}

/** Descriptor of the listening socket of this name that this process was given by the one that waits for it. */
export function inheritedListener(name: string): number | undefined {
  const place = (process.env[kListeners] ?? "").split(" ").indexOf(name);
  return process.env[kMarker] === undefined || place < 0 ? undefined : kFirstListener + place;
}

/** Returns the text that the process that waits for this one has handed over; it can be had once. */
export function inheritedText(): string | undefined {
  if (process.env[kMarker] === undefined || process.env[kText] === undefined) return undefined;
  const descriptor = Number(process.env[kText]);
  try {
    return readFileSync(descriptor, "utf8");
  } finally {
    closeSync(descriptor);
  }
}

/** Tries unshare alone, so that its failure does not pass for the command's. */
function probe(): void {
  const { status, error, stderr } = spawnSync("unshare", [...kUnshare, "setpriv", "--pdeathsig", "KILL", "true"], {
    encoding: "utf8",
  });
  if (error) throw (error as NodeJS.ErrnoException).code === "ENOENT" ? missingTool("unshare", error) : error;
  if (status === 0) return;
  if (stderr.includes("failed to execute setpriv")) throw missingTool("setpriv");
  throw forbidden(stderr.trim());
}

function runInUserNamespace(listeners: readonly [string, Server][], text: string | undefined): Promise<number> {
  // setpriv comes after unshare, which would clear the signal; the node process keeps it.
  const command = [...kUnshare, "setpriv", "--pdeathsig", "KILL", process.execPath, ...process.execArgv];
  const child = spawn("unshare", [...command, ...process.argv.slice(1)], {
    stdio: [
      ...(["inherit", "inherit", "inherit"] as const),
      text === undefined ? "ignore" : "pipe",
      ...listeners.map(([, server]) => descriptorOf(server)),
    ],
    // The child has a session of its own: a Ctrl-C reaches it once, through us, and not a second time from the terminal.
    detached: true,
    env: {
      ...process.env,
      [kMarker]: String(process.pid),
      [kListeners]: listeners.map(([name]) => name).join(" "),
      ...(text !== undefined && { [kText]: String(kTextDescriptor) }),
    },
  });
  for (const [, server] of listeners) server.close();
  // A child that fails before it reads says why itself.
  (child.stdio[kTextDescriptor] as Writable | null)?.on("error", () => {}).end(text);
  const forward = (signal: NodeJS.Signals) => void child.kill(signal);
  for (const signal of kForwarded) process.on(signal, forward);
  return new Promise<number>((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (status, signal) => resolve(signal === null ? (status ?? 1) : 128 + constants.signals[signal]));
  }).finally(() => {
    for (const signal of kForwarded) process.off(signal, forward);
  });
}

/** Returns the descriptor, which Node does not tell, although a child can be given nothing else (but a stream). */
function descriptorOf(server: Server): number {
  const { fd } = (server as unknown as { _handle: { fd: number } })._handle;
  return fd;
}

function forbidden(reason: string): WeirError {
  return new WeirError(`not root, and no user namespace: ${reason}`, { hint: userNamespaceRemedy(readSetting) });
}

/** Says what to do if `unshare --user --net` fails; `setting` reads one file of /proc/sys, undefined if it is not there. */
export function userNamespaceRemedy(setting: (name: string) => string | undefined): string {
  if (setting("kernel/unprivileged_userns_clone") === "0")
    return "sudo sysctl kernel.unprivileged_userns_clone=1, or run as root";
  if (setting("user/max_user_namespaces") === "0") return "sudo sysctl user.max_user_namespaces=10000, or run as root";
  if (setting("user/max_net_namespaces") === "0") return "sudo sysctl user.max_net_namespaces=10000, or run as root";
  if (setting("kernel/apparmor_restrict_unprivileged_userns") === "1") {
    return "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run as root";
  }
  return "run as root; in a container: docker run --cap-add NET_ADMIN --cap-add NET_RAW --cap-add SYS_ADMIN ...";
}

function readSetting(name: string): string | undefined {
  try {
    return readFileSync(`/proc/sys/${name}`, "utf8").trim();
  } catch {
    return undefined;
  }
}
