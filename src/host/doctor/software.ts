/** Weir's own parts and the programs it calls. */
import type { Check } from "./report.js";
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
  const found = nodeVersion;
  const check = { id: "node", group: "weir", title: "Node.js", found } as const;
  const [leastMajor, leastMinor] = kLeastNode;
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return { ...check, status: "ok" };
  const least = kLeastNode.join(".");
  return {
    ...check,
    status: "fail",
    impact: `Weir is made for Node.js ${least} and later`,
    remedy: `install Node.js ${least}`,
  };
}

function checkNative(system: System): Check {
  const check = { id: "native-core", group: "weir", title: "native core" } as const;
  try {
    system.loadNative();
  } catch (error) {
    const { message, hint } = error as Error & { hint?: string };
    return {
      ...check,
      status: "fail",
      found: message,
      impact: "weir lab, weir switch and weir nic do not run",
      remedy: hint ?? "npm run build:native",
    };
  }
  // The loader tries several places; the process's map tells which it was.
  const path = /\s(\/.*weir\.node)$/m.exec(system.readText("/proc/self/maps") ?? "")?.[1];
  return { ...check, status: "ok", found: path ?? "loads" };
}

function checkRawSocket(system: System): Check {
  const check = { id: "raw-socket", group: "weir", title: "raw-socket" } as const;
  try {
    system.loadRawSocket();
    return { ...check, status: "ok", found: "loads" };
  } catch (error) {
    const { message, hint } = error as Error & { hint?: string };
    const impact = "weir probe does not run; nothing else needs it";
    return { ...check, status: "warning", found: message, impact, ...(hint !== undefined && { remedy: hint }) };
  }
}

interface Tool {
  name: string;
  package: string;
  /** What it is for. */
  use: string;
  /** Is there a part of Weir that does not run without it? */
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
  const check = { id: `tool:${name}`, group: "tools", title: name } as const;
  // The doctor finds ethtool off PATH as well.
  const path =
    system.find(name) ??
    (needed || system.run(name, ["--version"]) === undefined ? undefined : "not on PATH, but there");
  if (path !== undefined) return { ...check, status: "ok", found: path };
  return {
    ...check,
    status: needed ? "fail" : "warning",
    found: "not found on PATH",
    impact: `needed by ${use}`,
    remedy: `apt install ${origin}`,
  };
}
