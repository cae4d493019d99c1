/** The commands of docs/guides/daemons.md for a switch and two NICs, word by word, in one shell. */
import { spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { kMain, kRoot } from "../command.js";
import { shellBlocks } from "../docs/guides.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { liveObstacle } from "./capability.js";
import { kTestMarker, markedProcesses } from "./processes.js";
import { folder } from "./weir.js";

/**
 * A shell in a new network namespace, with a /run of its own: namespaces and sockets of this machine are out of its reach. Its
 * folder has the examples, and `weir` is on its path.
 */
function shell() {
  const path = folder();
  symlinkSync(join(kRoot, "examples"), join(path, "examples"));
  writeFileSync(join(path, "weir"), `#!/bin/sh\nexec '${process.execPath}' '${kMain}' "$@"\n`, { mode: 0o755 });
  const marker = randomUUID();
  const child = spawn("unshare", ["--net", "--mount", "bash", "-e"], {
    cwd: path,
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, PATH: `${path}:${process.env.PATH}`, [kTestMarker]: marker },
  });
  onTestFinished(() => {
    for (const line of markedProcesses(marker)) process.kill(Number(line.split(" ")[0]), "SIGKILL");
  });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name].setEncoding("utf8").on("data", (text: string) => (output[name] += text));
  let ended = false;
  child.on("close", () => {
    ended = true;
  });
  let said = 0;
  /** Types lines and returns what they print on stdout until the last has ended. */
  const type = async (lines: string): Promise<string> => {
    const mark = `-- done ${++said} --`;
    const from = output.stdout.length;
    child.stdin.write(`${lines}\necho '${mark}'\n`);
    await eventually(() =>
      expect(ended || output.stdout.includes(mark), `${lines}\n${output.stdout}\n${output.stderr}`).toBe(true),
    );
    expect(ended, `the shell has ended in:\n${lines}\n${output.stdout}\n${output.stderr}`).toBe(false);
    return output.stdout.slice(from, output.stdout.indexOf(mark));
  };
  return { path, type, stderr: () => output.stderr, left: () => markedProcesses(marker), child };
}

/** A process in a chroot that is no mount of its own cannot have its own mounts. */
function mountObstacle(): string | undefined {
  const { status, stderr } = spawnSync("unshare", ["--mount", "true"], { encoding: "utf8" });
  return status === 0 ? undefined : stderr.trim();
}

describeUnless(liveObstacle() ?? lacking("mount") ?? mountObstacle(), "docs/guides/daemons.md", () => {
  it("joins two namespaces by a switch, and sends from a NIC in one to a NIC in the other", async () => {
    const bash = shell();
    await bash.type("mount -t tmpfs tmpfs /run; ip link set lo up");
    const [join_ = "", ...beyond] = shellBlocks("docs/guides/daemons.md", "A switch between two namespaces");
    expect(beyond).toEqual([]);
    const joined = await bash.type(join_);
    expect(joined).toContain("examples/switch.yaml: ok");
    expect(joined).toMatch(/ 3 received, /);

    const [start = "", look = "", end = "", ...more] = shellBlocks("docs/guides/daemons.md", "A NIC");
    expect(more).toEqual([]);
    expect(await bash.type(start)).toContain("red.yaml: ok: nic roce-red, 1 queue pair");
    // A reader does not look before there is something to see.
    await bash.type(
      "until weir show rdma statistic roce-red 2>/dev/null | grep -q 'rx_packets [1-9]'; do sleep 0.2; done",
    );
    await eventually(() => expect(bash.stderr().match(/peer found by ARP/g)).toHaveLength(2));
    const seen = await bash.type(look);
    expect(seen).toMatch(/^to-red +- +stream +17 +17 +red +(ready|waiting) /m);
    expect(seen).toMatch(/^link roce-red\/1 rx_packets [1-9]/m);
    // RoCEv2 is at priority 3, as the guide says.
    expect(seen).toMatch(/^red +UC3 +[1-9]/m);

    await bash.type(end);
    expect(await bash.type("ip netns list; ls /run/weir")).toBe("");
    expect(bash.left().filter((line) => !line.startsWith(`${bash.child.pid} `))).toEqual([]);
    expect(["blue.yaml", "red.yaml"].filter((name) => existsSync(join(bash.path, name)))).toEqual([]);
    bash.child.stdin.end();
    await eventually(() => expect(bash.left()).toEqual([]));
  });
});
