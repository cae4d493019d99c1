/** Two network namespaces in the place of two machines: a veth joins them, and a VXLAN of the kernel goes over it. */
import { spawnSync } from "node:child_process";
import { onTestFinished } from "vitest";
import { NetworkNamespace } from "../../src/host/namespace.js";
import { describeUnless } from "../obstacles.js";
import { liveObstacle } from "./capability.js";

/** Room for a VXLAN over IPv4 whose frames have 1500 bytes. */
const kUnderlayMtu = 1600;

/** describeLive() for tests that need VXLAN, which not every kernel has. */
export function describeMachines(name: string, body: () => void): void {
  describeUnless(liveObstacle() ?? vxlanObstacle(), name, body);
}

function vxlanObstacle(): string | undefined {
  const command = ["--net", "ip", "link", "add", "vx0", "type", "vxlan", "id", "42", "dstport", "4789"];
  const { status, stderr } = spawnSync("unshare", command, { encoding: "utf8" });
  return status === 0 ? undefined : `no VXLAN here: ${stderr.trim()}`;
}

export interface Machine {
  namespace: NetworkNamespace;
  /** Words in front of a command that is to run there. */
  inside: string[];
}

/** Each has `under0` with 192.0.2.1 and .2, and `vx0` above it. Gone with the running test. */
export async function machines(mtu = 1500): Promise<[Machine, Machine]> {
  const pair = await Promise.all([NetworkNamespace.create(), NetworkNamespace.create()]);
  onTestFinished(() => {
    for (const namespace of pair) namespace.close();
  });
  const [first, second] = pair;
  const veth = `link add under0 mtu ${kUnderlayMtu} type veth peer under0 netns ${second.path} mtu ${kUnderlayMtu}\n`;
  await first.run("ip", ["-batch", "-"], veth);
  for (const [i, namespace] of pair.entries()) {
    const [own, other] = [`192.0.2.${i + 1}`, `192.0.2.${2 - i}`];
    const tunnel = `type vxlan id 42 dev under0 local ${own} remote ${other} dstport 4789`;
    const lines = [
      "link set lo up",
      `address add ${own}/24 dev under0`,
      "link set under0 up",
      `link add vx0 mtu ${mtu} ${tunnel}`,
      // The machine's stack lives on the interface, too, as on a real host.
      `address add 198.51.100.${i + 1}/24 dev vx0`,
      "link set vx0 up",
    ];
    await namespace.run("ip", ["-batch", "-"], `${lines.join("\n")}\n`);
  }
  const made = pair.map((namespace) => ({ namespace, inside: ["nsenter", `--net=${namespace.path}`, "--"] }));
  return made as [Machine, Machine];
}
