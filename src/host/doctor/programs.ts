/** Checks what programs on libibverbs need of the host, besides a NIC: `weir run` prepares the rest. */
import { basename, dirname, join } from "node:path";
import { whyNotBuilt } from "../verbs_libraries.js";
import { about, type Check } from "./report.js";
import { nativeCoreFile } from "./software.js";
import type { System } from "./system.js";

const kPreload = "libweir-preload.so";
const kProvider = /^libweir-rdmav(\d+)\.so$/;
/** Device number of /dev/null: it stands for that of the devices under /dev/infiniband. */
const kNullNumber = "1:3";

export function checkPrograms(system: System): Check[] {
  const providers = providersOf(system);
  return [checkLibraries(system, providers), checkLibibverbs(system, providers.abis), checkNull(system)];
}

interface Providers {
  /** Folder of the native core; undefined where that does not load. */
  folder: string | undefined;
  files: string[];
  /** Provider ABIs of libibverbs. */
  abis: number[];
}

/** Looks for providers beside the native core. */
function providersOf(system: System): Providers {
  const core = nativeCoreFile(system);
  const folder = core === undefined ? undefined : dirname(core);
  const files = folder === undefined ? [] : system.list(folder);
  const abis = files.flatMap((file) => kProvider.exec(file)?.[1] ?? []).map(Number);
  return { folder, files: files.filter((file) => file === kPreload || kProvider.test(file)).sort(), abis };
}

function checkLibraries(system: System, { folder, files, abis }: Providers): Check {
  const check = about("weir", "verbs-provider", "verbs provider");
  if (files.includes(kPreload) && abis.length > 0) return check.ok(files.join(", "));
  const found = files.length === 0 ? "not built" : `only ${files.join(", ")}`;
  const { why, remedy } = whyNotBuilt(folder, (path) => system.list(dirname(path)).includes(basename(path)));
  return check.warning(`${found}: ${why}`, "weir run does not run", remedy);
}

function checkLibibverbs(system: System, abis: readonly number[]): Check {
  const check = about("host", "libibverbs", "libibverbs");
  const cache = system.run("ldconfig", ["-p"])?.stdout ?? "";
  const path = /libibverbs\.so\.1 .*=> (\S+)/.exec(cache)?.[1];
  const impact = "RDMA programs do not find a NIC; those of a container may have a libibverbs of their own";
  if (path === undefined) return check.warning("not found", impact, "apt install ibverbs-utils");
  const versions = system.run("grep", ["-aoE", "IBVERBS_PRIVATE_[0-9]+", path])?.stdout ?? "";
  const abi = /IBVERBS_PRIVATE_(\d+)/.exec(versions)?.[1];
  const file = (system.readLink(path) ?? path).split("/").at(-1);
  const found = `${join(dirname(path), file ?? "")}, provider ABI ${abi ?? "unknown"}`;
  if (abi === undefined || abis.length === 0 || abis.includes(Number(abi))) return check.ok(found);
  const ours = abis.join(", ");
  return check.warning(found, `${impact}: Weir's provider is of ABI ${ours}`, "use the rdma-core of your distribution");
}

function checkNull(system: System): Check {
  const check = about("host", "dev-null", "/dev/null");
  const number = system.run("stat", ["-L", "-c", "%t:%T", "/dev/null"])?.stdout.trim();
  if (number === kNullNumber) return check.ok("the character device that it should be");
  const found = number === undefined || number === "" ? "not there" : `not the device ${kNullNumber}`;
  const remedy = "rm -f /dev/null && mknod -m 666 /dev/null c 1 3";
  return check.warning(found, "programs under weir run find no NIC: it stands for their device files", remedy);
}
