import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { lacking } from "../needs.js";
import { itUnless } from "../obstacles.js";

const folder = fileURLToPath(new URL("../../packaging/systemd/", import.meta.url));
const units = readdirSync(folder).filter((name) => name.endsWith(".service"));

describe.each(units)("%s", (unit) => {
  const text = readFileSync(join(folder, unit), "utf8");
  const setting = (name: string) => [...text.matchAll(new RegExp(`^${name}=(.*)$`, "gm"))].map((match) => match[1]);

  it("runs its verb, reloads by SIGHUP and waits for the notification", () => {
    const verb = /^weir-(\w+)@/.exec(unit)?.[1];
    expect(setting("ExecStart")).toEqual([`weir ${verb} -c /etc/weir/%i.yaml`]);
    expect(setting("ExecReload")).toEqual(["kill -HUP $MAINPID"]);
    expect(setting("Type")).toEqual(["notify"]);
  });

  it("has CAP_NET_RAW and nothing else, and the address families that Weir opens", () => {
    expect(setting("AmbientCapabilities")).toEqual(["CAP_NET_RAW"]);
    expect(setting("CapabilityBoundingSet")).toEqual(["CAP_NET_RAW"]);
    expect(setting("NoNewPrivileges")).toEqual(["yes"]);
    expect(setting("RestrictAddressFamilies")).toEqual(["AF_PACKET AF_XDP AF_UNIX AF_INET AF_INET6 AF_NETLINK"]);
    // V8 makes code at run time.
    expect(setting("MemoryDenyWriteExecute")).toEqual([]);
  });

  itUnless(lacking("systemd"), "is sound to systemd-analyze", () => {
    const directory = mkdtempSync(join(tmpdir(), "weir-units-"));
    try {
      // Programs are looked for where systemd is, and weir need not be installed there.
      const copy = join(directory, basename(unit));
      writeFileSync(copy, text.replace(/^(Exec\w+)=(weir|kill)\b/gm, `$1=${process.execPath}`));
      const { status, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", copy], { encoding: "utf8" });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
