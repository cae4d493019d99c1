/**
 * A NIC as the kernel would show it under /sys, in plain files: libibverbs looks for devices where $SYSFS_PATH says. The daemon
 * writes the files of its own NIC; a launcher puts together those that a program sees.
 */
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileReason, WeirError } from "../../base/error.js";
import { makeFolder } from "../../base/folder.js";
import { gidOfAddress, guidOfMac } from "../../wire/address.js";

/** Suffix of the folder of a NIC's files, which is beside its control socket. */
export const kFilesSuffix = ".rdma";
/** File that the kernel does not have: it names the socket for programs. */
const kSocketFile = "weir_socket";
const kInterfaces = "ports/1/gid_attrs/ndevs";
/** Device number in the files: libibverbs wants a character device of this number under /dev/infiniband, and /dev/null has it. */
const kNullDevice = "1:3";
const kReadable = 0o755;
/** IB_USER_VERBS_ABI_VERSION, and RDMA_USER_CM_ABI_VERSION. */
const kVerbsAbi = "6";
const kConnectionsAbi = "4";

export interface ProgramNic {
  name: string;
  interface: string;
  /** Addresses in the order of the table of GIDs. */
  addresses: readonly string[];
  mac: number;
  /** bit/s */
  rate: number;
  /** Path of the socket for programs. */
  socket: string;
}

/** Writes the files of one NIC; they become `folder` at one moment, whatever was there. @throws WeirError if they cannot be made. */
export function writeDeviceFiles(folder: string, nic: ProgramNic): void {
  const guid = groups(guidOfMac(nic.mac));
  const files: Record<string, string> = {
    node_guid: guid,
    sys_image_guid: guid,
    node_type: "1: CA",
    node_desc: `Weir ${nic.name}`,
    fw_ver: "weir",
    [kSocketFile]: nic.socket,
    "ports/1/state": "4: ACTIVE",
    "ports/1/phys_state": "5: LinkUp",
    "ports/1/rate": `${nic.rate / 1e9} Gb/sec (1X)`,
    "ports/1/link_layer": "Ethernet",
    "ports/1/lid": "0x0",
    "ports/1/pkeys/0": "0xffff",
  };
  nic.addresses.forEach((address, i) => {
    files[`ports/1/gids/${i}`] = groups(gidOfAddress(address));
    files[`ports/1/gid_attrs/types/${i}`] = "RoCE v2";
    files[`${kInterfaces}/${i}`] = nic.interface;
  });
  let fresh: string | undefined;
  try {
    // The name is one that nobody could know before: where others may write beside it, none of the files is a link of theirs.
    fresh = mkdtempSync(`${folder}.`);
    write(fresh, files);
    chmodSync(fresh, kReadable);
    rmSync(folder, { recursive: true, force: true });
    renameSync(fresh, folder);
  } catch (cause) {
    if (fresh !== undefined) rmSync(fresh, { recursive: true, force: true });
    throw new WeirError(`cannot write ${folder}: ${fileReason(cause) ?? (cause as Error).message}`, {
      cause,
      hint: "programs find the NIC by it; set `control` to a path beside which there is room",
    });
  }
}

/** Names of the NICs that serve programs, by their files in the folder of control sockets. */
export function programNics(controlFolder: string): string[] {
  try {
    return readdirSync(controlFolder)
      .filter((file) => file.endsWith(kFilesSuffix))
      .map((file) => file.slice(0, -kFilesSuffix.length))
      .sort();
  } catch {
    return [];
  }
}

/** Path of the socket of a NIC for programs; undefined: it serves none. */
export function programSocket(controlFolder: string, nic: string): string | undefined {
  try {
    return readFileSync(join(controlFolder, nic + kFilesSuffix, kSocketFile), "utf8").trim();
  } catch {
    return undefined;
  }
}

/**
 * Writes a folder for $SYSFS_PATH with these NICs.
 * @param folder Made anew each time; undefined: a temporary one.
 * @param isThere Tells whether an interface is there for the programs.
 */
export function writeSystemFiles(
  controlFolder: string,
  nics: readonly string[],
  folder?: string,
  isThere = (name: string) => existsSync(join("/sys/class/net", name)),
): string {
  if (folder !== undefined) {
    rmSync(folder, { recursive: true, force: true });
    makeFolder(folder, 0o755);
  }
  const root = folder ?? mkdtempSync(join(tmpdir(), "weir-rdma-"));
  write(join(root, "class/infiniband_verbs"), { abi_version: kVerbsAbi });
  write(join(root, "class/misc/rdma_cm"), { abi_version: kConnectionsAbi });
  nics.forEach((nic, i) => {
    write(join(root, `class/infiniband_verbs/uverbs${i}`), { ibdev: nic, dev: kNullDevice, abi_version: "1" });
    const device = join(root, "class/infiniband", nic);
    cpSync(join(controlFolder, nic + kFilesSuffix), device, { recursive: true });
    // An interface of another network namespace does not exist for a program here.
    const interfaces = join(device, kInterfaces);
    for (const file of readdirSync(interfaces).map((name) => join(interfaces, name))) {
      if (!isThere(readFileSync(file, "utf8").trim())) rmSync(file);
    }
  });
  return root;
}

function write(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    makeFolder(join(folder, path, ".."), 0o755);
    writeFileSync(join(folder, path), `${text}\n`);
  }
}

/** Groups of 16 bits each, as the kernel writes GUIDs and GIDs. */
function groups(bytes: Buffer): string {
  return (bytes.toString("hex").match(/.{4}/g) ?? []).join(":");
}
