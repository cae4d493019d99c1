/** Checks Weir's own parts and the programs it calls. */
import { about, type Check } from "./report.js";
import type { System } from "./system.js";

const kLeastNode = [20, 17] as const;

export function checkSoftware(system: System): Check[] {
  return [
    checkNode(system),
    checkNative(system),
    checkRawSocket(system),
    ...kTools.map((tool) => checkTool(system, tool)),
  ];
}

function checkNode({ nodeVersion }: System): Check {
  const [major = 0, minor = 0] = nodeVersion.split(".").map(Number);
  const check = about("weir", "node", "Node.js");
  const [leastMajor, leastMinor] = kLeastNode;
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return check.ok(nodeVersion);
  const least = kLeastNode.join(".");
  return check.fail(nodeVersion, `Weir is made for Node.js ${least} and later`, `install Node.js ${least}`);
}

function checkNative(system: System): Check {
  const check = about("weir", "native-core", "native core");
  try {
    system.loadNative();
  } catch (error) {
    const { message, hint } = error as Error & { hint?: string };
    return check.fail(message, "weir lab, weir switch and weir nic do not run", hint ?? "npm run build:native");
  }
  return check.ok(nativeCoreFile(system) ?? "loads");
}

/** File of the native core by the process's map: the loader tries several places. Undefined: it is not loaded. */
export function nativeCoreFile(system: System): string | undefined {
  return /\s(\/.*weir\.node)$/m.exec(system.readText("/proc/self/maps") ?? "")?.[1];
}

function checkRawSocket(system: System): Check {
  const check = about("weir", "raw-socket", "raw-socket");
  try {
    system.loadRawSocket();
    return check.ok("loads");
  } catch (error) {
    const { message, hint } = error as Error & { hint?: string };
    return check.warning(message, "weir probe does not run; nothing else needs it", hint);
  }
}

interface Tool {
  name: string;
  package: string;
  /** Says what the program is used for. */
  use: string;
  /** True if a part of Weir does not run without it. */
  needed: boolean;
}

const kTools: readonly Tool[] = [
  { name: "ip", package: "iproute2", use: "weir lab: links and addresses", needed: true },
  { name: "nsenter", package: "util-linux", use: "weir lab: programs in a namespace", needed: true },
  { name: "unshare", package: "util-linux", use: "weir lab: namespaces", needed: true },
  { name: "setpriv", package: "util-linux", use: "weir lab without root", needed: true },
  {
    name: "ethtool",
    package: "ethtool",
    use: "remedies: offloads, queues and flow control of interfaces",
    needed: false,
  },
];

function checkTool(system: System, { name, package: origin, use, needed }: Tool): Check {
  const check = about("tools", `tool:${name}`, name);
  // The doctor finds ethtool off PATH as well.
  const path =
    system.find(name) ??
    (needed || system.run(name, ["--version"]) === undefined ? undefined : "not on PATH, but there");
  if (path !== undefined) return check.ok(path);
  return check[needed ? "fail" : "warning"]("not found on PATH", `needed by ${use}`, `apt install ${origin}`);
}
