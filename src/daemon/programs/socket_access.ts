/** Opens the socket for programs to a group that the file of the NIC names, besides its owner. */
import { chmodSync, chownSync, readFileSync } from "node:fs";
import { WeirError } from "../../base/error.js";

const kOwnerAndGroup = 0o660;
const kUnchanged = -1;

/** @param group Name or number. @throws WeirError when there is no such group, or the daemon may not give its socket to it. */
export function openToGroup(path: string, group: string | number): void {
  const gid = typeof group === "number" ? group : gidOf(group);
  try {
    chownSync(path, kUnchanged, gid);
    chmodSync(path, kOwnerAndGroup);
  } catch (cause) {
    throw new WeirError(`the socket for programs cannot be given to group ${group}: ${codeOf(cause)}`, {
      cause,
      field: "programs.group",
      hint: "run as root, or as a member of that group",
    });
  }
}

/** Looks a group up in /etc/group, which containers have, too. @throws WeirError when it is not there. */
export function gidOf(name: string, file = "/etc/group"): number {
  let groups = "";
  try {
    groups = readFileSync(file, "utf8");
  } catch {
    // A host without the file has no such group.
  }
  for (const line of groups.split("\n")) {
    const [known, , gid] = line.split(":");
    if (known === name && gid !== undefined && /^\d+$/.test(gid)) return Number(gid);
  }
  throw new WeirError(`there is no group ${name}`, {
    field: "programs.group",
    hint: `groupadd --system ${name}, or give the number of a group`,
  });
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code ?? "unknown reason";
