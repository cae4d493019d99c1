/** Work that ordinary sockets leave to their interface (checksums, segmentation, tags) survives the switch, whatever its backends are. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { runTool } from "../../src/host/tools.js";
import { LabNetwork } from "../../src/host/veth.js";
import { kMain, kRoot } from "../command.js";
import { endWithTest } from "../end_with_test.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { liveObstacle } from "./capability.js";
import { runXdp } from "./daemons.js";
import { folder } from "./weir.js";

const kHosts = ["a", "b"] as const;
const kScript = join(kRoot, "test/live/offloads.py");

const obstacle = liveObstacle() ?? lacking("python3");

/** AF_XDP needs rights over the machine, not only over a namespace. */
function xdpObstacle(): string | undefined {
  const { stdout } = spawnSync("cat", ["/proc/self/uid_map"], { encoding: "utf8" });
  return /^\s*0\s+0\s+4294967295\s*$/.test(stdout) ? undefined : "BPF programs need the initial user namespace";
}

/** Two hosts with weir0, and the namespace of the switch with the other ends. All offloads are as the kernel has them by default. */
async function network(mtu: number): Promise<LabNetwork> {
  const built = await LabNetwork.create(
    [...kHosts.map((name) => ({ name, role: "host" as const })), { name: "sw", role: "switch" }],
    kHosts.map((host) => ({ from: host, to: "sw", mtu })),
  );
  onTestFinished(() => built.close());
  for (const [i, host] of kHosts.entries()) {
    const space = built.namespace(host);
    await space.run("sh", ["-c", "echo 0 > /proc/sys/net/ipv6/conf/weir0/disable_ipv6"]);
    const lines = [
      "link set dev weir0 arp on multicast on",
      `address add 10.66.0.${i + 1}/24 dev weir0`,
      `address add fd66::${i + 1}/64 dev weir0 nodad`,
    ];
    await space.run("ip", ["-batch", "-"], `${lines.join("\n")}\n`);
  }
  return built;
}

interface Backends {
  receive: "af_packet" | "af_xdp";
  transmit: "af_packet" | "af_xdp" | "live";
  mode: "native" | "generic";
}

async function startSwitch(net: LabNetwork, { receive, transmit, mode }: Backends, rate: string) {
  const path = folder();
  const socket = join(path, "sw0.sock");
  const file = join(path, "switch.yaml");
  const ports = kHosts.map(
    (host) =>
      `  - { interface: ${host}, namespace: ${net.namespace("sw").path}, rate: ${rate}, receive: ${receive}, transmit: ${transmit}, xdp_mode: ${mode} }`,
  );
  writeFileSync(file, `name: sw0\nports:\n${ports.join("\n")}\ncontrol: ${socket}\nmetrics: false\n`);
  const child: ChildProcess = spawn(process.execPath, [kMain, "switch", "-c", file], {
    cwd: kRoot,
    stdio: ["ignore", "ignore", "pipe"],
  });
  endWithTest(child);
  let log = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  await eventually(async () => {
    if (child.exitCode !== null) return;
    expect(await ask(socket, "ports")).toMatchObject([
      { receive, transmit },
      { receive, transmit },
    ]);
  });
  expect(child.exitCode, log).toBeNull();
  return socket;
}

const kWhole = { udp: 20, udp_segments: 5, tcp: true };
const kTagged = [0x8100, 0x6005];
const kService = [0x88a8, 0x0006];

/** @param xdp An XDP program at the hosts' ends passes every frame on. */
async function crosses(backends: Backends, rate: string, mtu = 1500, xdp = false): Promise<void> {
  const net = await network(mtu);
  if (xdp) for (const host of kHosts) await runXdp(net, host);
  const socket = await startSwitch(net, backends, rate);
  // Generic XDP is not told of tags, and nobody cuts super-frames in front of it, or of a program for several buffers: senders have
  // to keep both to themselves. Service tags go on being lost: their switch (tx-vlan-stag-hw-insert) has no simple ioctl.
  const generic = backends.receive === "af_xdp" && backends.mode === "generic";
  const plain = generic || (backends.receive === "af_xdp" && mtu > 3498) ? ["--nothing-beside"] : [];
  const { stdout } = await runTool("python3", [kScript, net.namespace("a").path, net.namespace("b").path, ...plain]);
  const { counters } = await ask(socket, "counters");
  const counted = counters
    .filter(({ value }) => value > 0)
    .map(({ name, labels, value }) => `${name} ${JSON.stringify(labels)} ${value}`);
  expect(JSON.parse(stdout), counted.join("\n")).toEqual({
    ipv4: kWhole,
    ipv6: kWhole,
    tag_inside: kTagged,
    service_tag_inside: kService,
    tag_beside: kTagged,
    service_tag_beside: generic ? [] : kService,
  });
  const refused = counters.filter(({ name }) => name === "drop_offload_refused");
  expect(refused.length).toBeGreaterThan(0);
  expect(refused.filter(({ value }) => value > 0)).toEqual([]);
}

const kRates = ["unlimited", "1Gbps"];

describeUnless(obstacle, "traffic of ordinary sockets through packet sockets", () => {
  it.each(kRates)("is whole at a rate of %s", (rate) =>
    crosses({ receive: "af_packet", transmit: "af_packet", mode: "native" }, rate),
  );
});

describeUnless(obstacle ?? xdpObstacle(), "traffic of ordinary sockets through AF_XDP", () => {
  const combinations: Backends[] = [
    { receive: "af_xdp", transmit: "af_xdp", mode: "native" },
    { receive: "af_xdp", transmit: "af_xdp", mode: "generic" },
    { receive: "af_packet", transmit: "af_xdp", mode: "native" },
    { receive: "af_xdp", transmit: "af_packet", mode: "native" },
  ];
  it.each(combinations.flatMap((backends) => kRates.map((rate) => ({ ...backends, rate }))))(
    "is whole with $receive in ($mode) and $transmit out at a rate of $rate",
    ({ rate, ...backends }) => crosses(backends, rate),
  );

  const live: Backends[] = [
    { receive: "af_packet", transmit: "live", mode: "native" }, // `auto` picks it if there is a program at the other end.
    { receive: "af_xdp", transmit: "live", mode: "native" },
  ];
  it.each(live.flatMap((backends) => [false, true].map((xdp) => ({ ...backends, xdp }))))(
    "is whole with $receive in and $transmit out, with an XDP program at the hosts: $xdp",
    ({ xdp, ...backends }) => crosses(backends, "unlimited", 1500, xdp),
  );

  it("is whole when frames take several buffers", () =>
    crosses({ receive: "af_xdp", transmit: "af_xdp", mode: "native" }, "unlimited", 9000));
});
