/**
 * A NIC as the kernel would show it under /sys, in plain files: libibverbs looks for devices where $SYSFS_PATH says. The daemon
 * writes the files of its own NIC; a launcher puts together those that a program sees.
 */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileReason, WeirError } from "../../base/error.js";
import { makeFolder } from "../../base/folder.js";
import { gidOfAddress, guidOfMac } from "../../wire/address.js";
import { kGids } from "./gid_table.js";

/** Suffix of the folder of a NIC's files, which is beside its control socket. */
export const kFilesSuffix = ".rdma";
/** File that the kernel does not have: it names the socket for programs. */
const kSocketFile = "weir_socket";
/** End of the names of files that are being written. */
const kUnfinished = "~";
const kInterfaces = "ports/1/gid_attrs/ndevs";
/** Device number in the files: libibverbs wants a character device of this number under /dev/infiniband, and /dev/null has it. */
const kNullDevice = "1:3";
const kReadable = 0o755;
/** Capabilities of a port: it has a connection manager, as Linux's rxe says. */
const kCapabilities = "0x00010000";
/** Paths of what changes while a NIC runs. */
const kLive = ["state", "phys_state", "rate", "gids", "gid_attrs/types", "counters", "hw_counters"].map(
  (name) => `ports/1/${name}`,
);
/** The device behind the NIC, as one on PCI has it. The vendor is nobody; a NIC of software is near to every processor. */
const kDevice = {
  vendor: "0xffff",
  device: "0x0000",
  subsystem_vendor: "0xffff",
  subsystem_device: "0x0000",
  class: "0x020000",
  revision: "0x00",
  numa_node: "-1",
};
/** IB_USER_VERBS_ABI_VERSION, IB_USER_MAD_ABI_VERSION, and RDMA_USER_CM_ABI_VERSION. */
const kVerbsAbi = "6";
const kManagementAbi = "5";
const kConnectionsAbi = "4";

export interface ProgramNic {
  name: string;
  interface: string;
  mac: number;
  /** bit/s */
  rate: number;
  /** Path of the socket for programs. */
  socket: string;
}

/** State of a NIC's port, as its files tell it. */
export interface PortFacts {
  up: boolean;
  /** Addresses of the table of GIDs; undefined: none at this place. */
  gids: readonly (string | undefined)[];
  /** Values by files' paths below those of the port; device_counters.ts has them. */
  counters: Readonly<Record<string, number>>;
}

/** Files of one NIC in a folder, which is there from write() to remove(). */
export class DeviceFiles {
  /** Contents of files that change, as last written. */
  #told: Readonly<Record<string, string>> = {};

  constructor(
    private readonly folder: string,
    private readonly nic: ProgramNic,
  ) {}

  /** Writes all of them; they become the folder at one moment, whatever was there. @throws WeirError if they cannot be made. */
  write(facts: PortFacts): void {
    const { folder, nic } = this;
    let fresh: string | undefined;
    try {
      // The name is one that nobody could know before: where others may write beside it, none of the files is a link of theirs.
      fresh = mkdtempSync(`${folder}.`);
      this.#told = changing(nic, facts);
      write(fresh, { ...lasting(nic), ...this.#told });
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

  /** Writes what has changed. What cannot be written is written the next time. */
  refresh(facts: PortFacts): void {
    const now = changing(this.nic, facts);
    const told: Record<string, string> = { ...this.#told };
    for (const [path, text] of Object.entries(now)) {
      if (text === told[path]) continue;
      const file = join(this.folder, path);
      try {
        // A reader sees the text of before or this one.
        writeFileSync(file + kUnfinished, `${text}\n`);
        renameSync(file + kUnfinished, file);
        told[path] = text;
      } catch {
        delete told[path];
      }
    }
    this.#told = told;
  }

  /** Idempotent. */
  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Files that stay as they are, and their texts. */
function lasting(nic: ProgramNic): Record<string, string> {
  const guid = groups(guidOfMac(nic.mac));
  const files: Record<string, string> = {
    node_guid: guid,
    sys_image_guid: guid,
    node_type: "1: CA",
    node_desc: `Weir ${nic.name}`,
    fw_ver: "weir",
    hca_type: "weir",
    hw_rev: "0x0",
    board_id: "weir",
    [kSocketFile]: nic.socket,
    "ports/1/link_layer": "Ethernet",
    "ports/1/lid": "0x0",
    "ports/1/lid_mask_count": "0",
    "ports/1/sm_lid": "0x0",
    "ports/1/sm_sl": "0",
    "ports/1/cap_mask": kCapabilities,
    "ports/1/pkeys/0": "0xffff",
  };
  for (let i = 0; i < kGids; i++) files[`${kInterfaces}/${i}`] = nic.interface;
  return files;
}

/** Files that change while the NIC runs, and their texts. */
function changing(nic: ProgramNic, { up, gids, counters }: PortFacts): Record<string, string> {
  const files: Record<string, string> = {
    state: up ? "4: ACTIVE" : "1: DOWN",
    phys_state: up ? "5: LinkUp" : "3: Disabled",
    rate: `${nic.rate / 1e9} Gb/sec (1X)`,
  };
  gids.forEach((address, i) => {
    files[`gids/${i}`] = groups(address === undefined ? Buffer.alloc(16) : gidOfAddress(address));
    // What libibverbs takes the kernel's refusal to say it for.
    files[`gid_attrs/types/${i}`] = address === undefined ? "IB/RoCE v1" : "RoCE v2";
  });
  for (const [path, value] of Object.entries(counters)) files[path] = String(value);
  return Object.fromEntries(Object.entries(files).map(([path, text]) => [`ports/1/${path}`, text]));
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
 * Writes a folder for $SYSFS_PATH with these NICs, with what weir-launch (native/verbs/launch.cc) shows under /sys and /dev.
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
  chmodSync(root, kReadable);
  write(join(root, "class/infiniband_verbs"), { abi_version: kVerbsAbi });
  write(join(root, "class/infiniband_mad"), { abi_version: kManagementAbi });
  write(join(root, "class/misc/rdma_cm"), { abi_version: kConnectionsAbi });
  write(join(root, "dev/infiniband"), { rdma_cm: "" });
  nics.forEach((nic, i) => {
    const device = join("devices/virtual/weir", nic);
    const verbs = `uverbs${i}`;
    const management = `umad${i}`;
    write(join(root, device), kDevice);
    write(join(root, device, "infiniband_verbs", verbs), { ibdev: nic, dev: kNullDevice, abi_version: "1" });
    write(join(root, device, "infiniband_mad", management), { ibdev: nic, port: "1" });
    write(join(root, "dev/infiniband"), { [verbs]: "" });
    showFiles(join(controlFolder, nic + kFilesSuffix), join(root, device, "infiniband", nic), isThere);
    for (const [kind, name] of [
      ["infiniband", nic],
      ["infiniband_verbs", verbs],
      ["infiniband_mad", management],
    ] as const) {
      makeFolder(join(root, "class", kind), kReadable);
      symlinkSync(join("../..", device, kind, name), join(root, "class", kind, name));
      symlinkSync("../..", join(root, device, kind, name, "device"));
      symlinkSync(join("../../../../../../class", kind), join(root, device, kind, name, "subsystem"));
    }
  });
  return root;
}

/** Copies what stays of a NIC's files, and links what changes. */
function showFiles(from: string, to: string, isThere: (name: string) => boolean): void {
  copyLasting(from, to);
  for (const path of kLive) symlinkSync(join(from, path), join(to, path));
  // An interface of another network namespace does not exist for a program here.
  const names = new Set<string>();
  for (const file of readdirSync(join(to, kInterfaces)).map((name) => join(to, kInterfaces, name))) {
    const name = readFileSync(file, "utf8").trim();
    if (isThere(name)) names.add(name);
    else rmSync(file);
  }
  // Programs that find an empty folder take its nothing for a name.
  if (names.size > 0) makeFolder(join(to, "../../net"), kReadable);
  for (const name of names) symlinkSync(join("/sys/class/net", name), join(to, "../../net", name));
}

/** Copies the files that stay. The NIC goes on writing the others: one that was listed may not be there any more. */
function copyLasting(from: string, to: string, below = ""): void {
  makeFolder(join(to, below), 0o755);
  for (const entry of readdirSync(join(from, below), { withFileTypes: true })) {
    const path = join(below, entry.name);
    if (kLive.includes(path) || path.endsWith(kUnfinished)) continue;
    if (entry.isDirectory()) copyLasting(from, to, path);
    else copyFileSync(join(from, path), join(to, path));
  }
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
