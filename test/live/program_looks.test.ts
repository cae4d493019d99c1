/** Programs that only look at a NIC, those that it refuses, and which versions of all programs these are. */
import { describe, expect, it } from "vitest";
import { lacking } from "../needs.js";
import { itUnless } from "../obstacles.js";
import { describeLive } from "./capability.js";
import { network } from "./daemons.js";
import { kVersions } from "./program_list.js";
import { run, startNic } from "./program_runs.js";
import { debianRelease, installedVersion } from "./program_versions.js";

const kLooks = {
  "ibverbs-utils": ["ibv_devices", "ibv_devinfo"],
  "infiniband-diags": ["ibstatus roce_a"],
  "libfabric-bin": ["fi_info -p verbs"],
  "ucx-utils": ["ucx_info -d"],
};
const kRefused = {
  "ibverbs-utils": [["ibv_xsrq_pingpong -g 0", "Couldn't Open the XRC Domain 95"]],
  "infiniband-diags": [
    ["perfquery", "open UMAD port"],
    ["ibping -S", "open UMAD port"],
  ],
  iproute2: [["rdma res", "Operation not supported"]],
  perftest: [["raw_ethernet_bw --server -B 02:00:00:00:00:01 -E 02:00:00:00:00:02", "Couldn't create IB resources"]],
} as const;

describeLive("programs that look at a NIC", () => {
  for (const [name, commands] of Object.entries(kLooks))
    itUnless(lacking(name), `name it: ${name}`, async () => {
      const nic = await startNic(await network(["a"]), "a");
      for (const command of commands) {
        const { status, output } = await run(nic, ...command.split(" ")).ended;
        expect(status, output).toBe(0);
        expect(output).toContain("roce_a");
      }
    });
});

describeLive("programs that need what a NIC does not have", () => {
  for (const [name, commands] of Object.entries(kRefused))
    itUnless(lacking(name), `are refused: ${name}`, async () => {
      const nic = await startNic(await network(["a"]), "a");
      for (const [command, message] of commands) {
        const { status, output } = await run(nic, ...command.split(" ")).ended;
        expect(status, output).not.toBe(0);
        expect(output).toContain(message);
      }
    });
});

/** Place of this Debian's versions in the list. */
const kColumn = ["12", "13"].indexOf(debianRelease() ?? "");

describe.skipIf(kColumn < 0 || lacking("dpkg") !== undefined)("the list of programs", () => {
  it.each(Object.entries(kVersions))("has this Debian's version of %s", (name, versions) => {
    // Debian 13 has put a t64 to names of libraries whose times became longer.
    const here = installedVersion(name) ?? installedVersion(`${name}t64`);
    if (here !== undefined) expect(here).toBe(versions[kColumn]);
  });
});
