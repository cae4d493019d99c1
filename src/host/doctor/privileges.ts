/** Checks what this process may do: capabilities, user namespaces, limits. */

import { type Capability, hasCapability } from "../../native/capabilities.js";
import { type ControlPlace, kControlPlaceRemedy, kControlVariable } from "../control_directory.js";
import { userNamespaceRemedy } from "../rootless.js";
import { about, type Check } from "./report.js";
import type { System } from "./system.js";

/** Capabilities, each with its use, and what happens without it. */
const kUses = [
  ["CAP_NET_RAW", "packet and raw sockets", "weir switch, weir nic and weir probe do not run"],
  ["CAP_NET_ADMIN", "links of labs, large socket buffers", "labs need a user namespace"],
  [
    "CAP_SYS_ADMIN",
    "namespaces of labs, ports in other namespaces",
    "labs need a user namespace; no `namespace:` of a port",
  ],
  ["CAP_SYS_NICE", "priority of poll threads", "poll threads compete with all other threads"],
  ["CAP_IPC_LOCK", "locking packet memory", "packet memory may be paged out"],
] as const satisfies readonly (readonly [Capability, string, string])[];

interface Rights {
  uid: number;
  has: (name: Capability) => boolean;
  /** Root of a user namespace is root of nothing that existed before it. */
  inUserNamespace: boolean;
  /** Soft and hard limit; Infinity: none. */
  limit: (name: string) => number;
}

export function checkPrivileges(system: System): Check[] {
  const rights = readRights(system);
  return [
    checkUser(rights),
    ...kUses.map((use) => checkCapability(rights, use)),
    checkUserNamespaces(system, rights),
    checkLockedMemory(rights),
    checkOpenFiles(rights),
    checkControlSockets(system),
  ];
}

function readRights(system: System): Rights {
  const status = system.readText("/proc/self/status") ?? "";
  const limits = system.readText("/proc/self/limits") ?? "";
  const map = system.readText("/proc/self/uid_map")?.trim().split(/\s+/).join(" ");
  return {
    uid: system.uid,
    has: (name) => hasCapability(status, name),
    inUserNamespace: map !== undefined && map !== "0 0 4294967295",
    limit(name) {
      const soft = new RegExp(`^${name}\\s+(\\S+)`, "m").exec(limits)?.[1];
      return soft === undefined || soft === "unlimited" ? Number.POSITIVE_INFINITY : Number(soft);
    },
  };
}

function checkUser({ uid, inUserNamespace }: Rights): Check {
  const check = about("privileges", "user", "user");
  if (!inUserNamespace) return check.ok(uid === 0 ? "root" : `uid ${uid}`);
  return check.ok(`uid ${uid} of a user namespace`, "its capabilities hold for networks made in this namespace only");
}

function checkCapability(rights: Rights, [name, use, without]: (typeof kUses)[number]): Check {
  const check = about("privileges", name.toLowerCase().replaceAll("_", "-"), name);
  if (rights.has(name)) return check.ok(`there, for ${use}`);
  // Limits may give the same: RLIMIT_NICE is 20 - nice, 40 for -20.
  if (name === "CAP_SYS_NICE" && rights.limit("Max nice priority") >= 40) {
    const labs = rights.limit("Max realtime priority") >= 1 ? "" : "; that of labs' threads takes RLIMIT_RTPRIO";
    return check.ok(`not there, but RLIMIT_NICE allows nice -20${labs}`);
  }
  if (name === "CAP_IPC_LOCK" && rights.limit("Max locked memory") === Number.POSITIVE_INFINITY) {
    return check.ok("not there, but RLIMIT_MEMLOCK is unlimited");
  }
  return check.warning(`not there; it is for ${use}`, without, remedyFor(rights, name));
}

function remedyFor({ uid }: Rights, name: Capability): string {
  if (uid === 0)
    return `start the container or service with ${name} (docker run --cap-add ${name.slice("CAP_".length)})`;
  if (name === "CAP_NET_RAW") return "sudo, the systemd units, or sudo setcap cap_net_raw+ep on the node binary";
  return "sudo";
}

function checkUserNamespaces(system: System, rights: Rights): Check {
  const check = about("privileges", "user-namespaces", "user namespaces");
  const tried = system.run("unshare", ["--user", "--map-root-user", "--net", "true"]);
  if (tried?.status === 0) return check.ok("allowed: labs run without root");
  const reason = tried === undefined ? "unshare not found" : tried.stderr.trim();
  if (rights.has("CAP_NET_RAW") && rights.has("CAP_NET_ADMIN") && rights.has("CAP_SYS_ADMIN")) {
    return check.ok(`not allowed (${reason}), and not needed with these capabilities`);
  }
  const remedy = userNamespaceRemedy((name) => system.readText(`/proc/sys/${name}`)?.trim());
  return check.fail(`not allowed: ${reason}`, "weir lab does not run", remedy);
}

/** Memory that a lab of a few dozen links locks. */
const kLockedBytes = 64 << 20;

function checkLockedMemory(rights: Rights): Check {
  const check = about("privileges", "rlimit-memlock", "RLIMIT_MEMLOCK");
  const limit = rights.limit("Max locked memory");
  const found = limit === Number.POSITIVE_INFINITY ? "unlimited" : `${Math.floor(limit / 1024)} KiB`;
  if (rights.has("CAP_IPC_LOCK")) return check.ok(`${found}, does not bind with CAP_IPC_LOCK`);
  if (limit >= kLockedBytes) return check.ok(found);
  const impact = "packet memory beyond it may be paged out, and a page fault stops a poll thread";
  return check.warning(found, impact, "ulimit -l unlimited, or CAP_IPC_LOCK");
}

/** Node raises the soft limit to the hard one when it starts. A link of a lab takes four descriptors or so. */
const kOpenFiles = 1024;

function checkOpenFiles(rights: Rights): Check {
  const check = about("privileges", "rlimit-nofile", "RLIMIT_NOFILE");
  const limit = rights.limit("Max open files");
  const found = limit === Number.POSITIVE_INFINITY ? "unlimited" : String(limit);
  if (limit >= kOpenFiles) return check.ok(found);
  return check.warning(found, "labs of many links do not start", "ulimit -n 4096");
}

const kChosenBy: Readonly<Record<ControlPlace["by"], string>> = {
  variable: `named by ${kControlVariable}`,
  root: "that of root",
  session: "in $XDG_RUNTIME_DIR",
  fallback: "XDG_RUNTIME_DIR names no folder of this user",
};

function checkControlSockets(system: System): Check {
  const check = about("privileges", "control-sockets", "control sockets");
  const { path, by, problem } = system.controlPlace();
  if (problem === undefined) return check.ok(`${path}: ${kChosenBy[by]}`);
  const impact = "weir switch, weir nic, weir lab up and weir show do not run";
  return check.fail(problem, impact, kControlPlaceRemedy.replace("set it", "set XDG_RUNTIME_DIR"));
}
