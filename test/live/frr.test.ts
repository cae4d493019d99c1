/** examples/frr as it is: four switches with FRR, which lose a link and get it back. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { kRoot, kWeir } from "../command.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { liveObstacle } from "./capability.js";
import { folder } from "./weir.js";

/** Says why FRR, which runs as a user of its own, cannot run here; undefined if it can. */
function frrObstacle(): string | undefined {
  const [, user, group] = /^frr:[^:]*:(\d+):(\d+)/m.exec(readFileSync("/etc/passwd", "utf8")) ?? [];
  if (user === undefined) return lacking("frr") ?? "there is no user frr";
  const path = mkdtempSync(join(tmpdir(), "weir-frr-"));
  try {
    chownSync(path, Number(user), Number(group));
    return undefined;
  } catch {
    return "FRR's user is unknown to this user namespace: run as root";
  } finally {
    rmSync(path, { recursive: true });
  }
}

/** Runs commands where /run, and with it the names of namespaces, is nobody else's. */
async function shell(): Promise<(command: string) => Promise<string>> {
  const holder = spawn("unshare", ["--mount", "sh", "-c", "mount -t tmpfs none /run && echo ready && exec cat"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(() => {
    holder.kill();
  });
  await once(holder.stdout, "data");
  return async (command) => {
    const { stdout } = await promisify(execFile)("nsenter", [
      `--mount=/proc/${holder.pid}/ns/mnt`,
      "sh",
      "-c",
      command,
    ]);
    return stdout;
  };
}

describeUnless(liveObstacle() ?? lacking("frr") ?? frrObstacle(), "four switches with FRR", () => {
  it.each(["bgp", "ospf"])("route by %s over both spines, and over one while a link is down", async (routing) => {
    const path = folder();
    const [fabric, weir] = [join(path, "frr"), join(path, "weir")];
    writeFileSync(weir, `#!/bin/sh\nexec ${kWeir.map((word) => `'${word}'`).join(" ")} "$@"\n`, { mode: 0o755 });
    const inside = await shell();
    const example = (what: string) =>
      inside(`ROUTING=${routing} WEIR=${weir} ${join(kRoot, "examples/frr/leaf-spine.sh")} ${what} ${fabric}`);
    onTestFinished(async () => void (await example("down")));
    await example("up");
    const socket = (name: string) => join(fabric, `${name}.sock`);
    const waysOf = async (name: string, to: string) =>
      (await ask(socket(name), "routes"))
        .find((route) => route.to === to)
        ?.ways.map((way) => way.interface)
        .sort();
    const both = ["spine1", "spine2"];
    const awaitWays = (ways: string[]) =>
      eventually(async () => {
        expect(await waysOf("leaf1", "10.2.0.0/24")).toEqual(ways);
        expect(await waysOf("leaf2", "10.1.0.0/24")).toEqual(ways);
        expect(await waysOf("leaf1", "fd00:2::/64")).toEqual(ways);
        expect(await waysOf("leaf2", "fd00:1::/64")).toEqual(ways);
      });
    const ping = (...args: string[]) => inside(`ip netns exec wf-h1 ping -n -q -W 2 ${args.join(" ")} 2>&1 || true`);
    await awaitWays(both);
    expect(await ping("-c", "10", "-i", "0.05", "10.2.0.2")).toContain(" 10 received");
    expect(await ping("-c", "10", "-i", "0.05", "fd00:2::2")).toContain(" 10 received");

    // The program sends flows of many ports, and hears that nobody is at them.
    const flows = `import socket
for port in range(200):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("", 20000 + port))
    s.sendto(b"weir", ("10.2.0.2", 9000))
`;
    await inside(`ip netns exec wf-h1 python3 -c '${flows}'`);
    for (const spine of ["spine1", "spine2"]) {
      await eventually(async () => {
        const { counters } = await ask(socket(spine), "counters");
        const routed = counters.find(({ name, labels }) => name === "routed_packets" && labels.port === "leaf1");
        expect(routed?.value).toBeGreaterThan(40);
      });
    }

    // The twins at both ends of it lose their carrier.
    await inside("ip -n wf-wires link set leaf1-spine1 down");
    for (const [name, twin] of [
      ["leaf1", "spine1"],
      ["spine1", "leaf1"],
    ])
      await eventually(async () => expect(await inside(`ip -n wf-${name} link show ${twin}`)).toContain("NO-CARRIER"));
    await awaitWays(["spine2"]);
    expect(await ping("-c", "10", "-i", "0.05", "10.2.0.2")).toContain(" 10 received");

    await inside("ip -n wf-wires link set leaf1-spine1 up");
    await awaitWays(both);
    expect(await ping("-c", "10", "-i", "0.05", "10.2.0.2")).toContain(" 10 received");
  });
});
