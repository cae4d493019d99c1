/** Interfaces change while a switch runs on them, on every backend: the rest goes on, and the daemon tells. */
import { spawnSync } from "node:child_process";
import { symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { NetworkNamespace } from "../../src/host/namespace.js";
import type { LabNetwork } from "../../src/host/veth.js";
import { kMain } from "../command.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { describeLive, liveObstacle } from "./capability.js";
import { connectAgain, daemon, metric, network, ping, portOf, startSwitch } from "./daemons.js";
import { folder } from "./weir.js";

const kBackends = [
  ["af_packet", "backend: af_packet"],
  ["af_xdp", "backend: af_xdp"],
  ["af_packet in, af_xdp out", "receive: af_packet, transmit: af_xdp"],
  ["af_xdp in, af_packet out", "receive: af_xdp, transmit: af_packet"],
] as const;
const kLive = [
  ["live", "backend: live"],
  ["af_packet in, live out", "receive: af_packet, transmit: live"],
] as const;

const port = async (socket: string, name: string) => (await ask(socket, "ports")).find((one) => one.name === name);
const until = (socket: string, name: string, state: object) =>
  eventually(async () => expect(await port(socket, name)).toMatchObject(state));
const works = (net: LabNetwork, to?: string) =>
  eventually(async () => expect(await ping(net, 3, to)).toEqual({ sent: 3, received: 3 }));

describeLive("interfaces of a running switch", () => {
  it.each([...kBackends, ...kLive])(
    "go down and up, change their MTU, are made anew: it is told, and goes on: %s",
    async (_, backend) => {
      const net = await network();
      const { socket, url, log, child, finished } = await startSwitch(net, { port: `rate: 1Gbps, ${backend}` });
      const told = (name: string, msg: RegExp) =>
        log().filter((line) => line.port === name && msg.test(line.msg)).length;
      await works(net);

      await net.namespace("b").run("ip", ["link", "set", "weir0", "down"]);
      await until(socket, "b", { up: false, transitions: 1 });
      expect(await port(socket, "a")).toMatchObject({ up: true, transitions: 0 });
      expect(await metric(url, 'weir_port_up{device="sw0",port="b"}')).toBe(0);
      await net.namespace("b").run("ip", ["link", "set", "weir0", "up"]);
      await until(socket, "b", { up: true, recoveries: 1 });
      await works(net);

      await net.namespace("sw").run("ip", ["link", "set", "dev", "b", "mtu", "1400"]);
      await until(socket, "b", { interface_mtu: 1400, mtu: 1500, mtu_changes: 1 });
      await net.namespace("sw").run("ip", ["link", "set", "dev", "b", "mtu", "1500"]);
      await until(socket, "b", { interface_mtu: 1500, mtu_changes: 2 });
      expect(await metric(url, 'weir_port_mtu_changes_total{device="sw0",port="b"}')).toBe(2);
      expect(told("b", /^the interface's MTU/)).toBe(2);
      await works(net);

      // This happens under load: packets meanwhile may be lost, later ones not.
      const load = net.namespace("a").run("ping", ["-q", "-i", "0.002", "-w", "4", "10.66.0.2"]);
      await net.namespace("b").run("ip", ["link", "delete", "weir0"]);
      await until(socket, "b", { up: false });
      await connectAgain(net);
      await until(socket, "b", { up: true, recoveries: 2 });
      expect((await load).stdout).toMatch(/ received/);
      await works(net);
      expect(told("b", /^interface is down or gone/)).toBe(2);
      expect(told("b", /^another interface has the name/)).toBe(1);
      expect(await port(socket, "a")).toMatchObject({ up: true, transitions: 0 });

      child.kill("SIGTERM");
      const { status, stderr } = await finished;
      expect(status, stderr).toBe(0);
    },
  );

  it.each(kBackends)("are gone with their namespace, and back with another under its path: %s", async (_, backend) => {
    const net = await network();
    const path = join(folder(), "namespace");
    const host = net.namespace("b");
    const connect = async () => {
      const made = await NetworkNamespace.create();
      onTestFinished(() => made.close());
      await made.run("ip", ["link", "add", "c", "type", "veth", "peer", "name", "weir1", "netns", host.path]);
      await made.run("ip", ["link", "set", "c", "up"]);
      await host.run(
        "ip",
        ["-batch", "-"],
        "address add 10.66.0.3/24 dev weir1\nlink set weir1 address 02:57:00:00:00:0c up\n",
      );
      symlinkSync(made.path, path);
      return made;
    };
    const before = await connect();
    // The host answers at weir1 for that address alone.
    await host.run("ip", ["address", "delete", "10.66.0.2/24", "dev", "weir0"]);
    const ports = [
      portOf(net, "a", `rate: 1Gbps, ${backend}`),
      `{ interface: c, namespace: ${path}, rate: 1Gbps, ${backend} }`,
    ];
    const { socket, log } = await startSwitch(net, { ports });
    await works(net, "10.66.0.3");

    unlinkSync(path);
    before.close();
    await until(socket, "c", { up: false });
    await host.run("ip", ["link", "delete", "weir1"]);
    await connect();
    await until(socket, "c", { up: true, recoveries: 1 });
    await works(net, "10.66.0.3");
    expect(
      log()
        .filter((line) => line.port === "c")
        .map(({ msg }) => msg),
    ).toEqual([
      "backend chosen",
      "interface is down or gone",
      "interface is up again",
      "another interface has the name, it is used now",
    ]);
  });
});

/** Rights that the systemd units give, and less memory to lock than AF_XDP takes. */
const kNetRawOnly = [
  ...["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all,+net_raw"],
  ...["--inh-caps=-all,+net_raw", "--ambient-caps=-all,+net_raw"],
  ...["prlimit", "--memlock=65536", "env", "HOME=/nonexistent"],
];

/** Says why no such process can run here; undefined if it can. */
function netRawObstacle(): string | undefined {
  const [program = "", ...args] = [...kNetRawOnly, "test", "-r", kMain];
  const { status, stderr, error } = spawnSync(program, args, { encoding: "utf8" });
  if (error !== undefined) return error.message;
  return status === 0 ? undefined : `${stderr.trim() || "this folder is not readable"} (as an ordinary user)`;
}

describeUnless(liveObstacle() ?? netRawObstacle(), "a switch with CAP_NET_RAW alone", () => {
  it("finds out that it cannot have AF_XDP, says so, and carries traffic by packet sockets", async () => {
    const net = await network();
    const path = folder();
    const file = join(path, "switch.yaml");
    const socket = join(path, "sw0.sock");
    const ports = ["a", "b"].map((name) => `{ interface: ${name}, rate: 1Gbps }`);
    writeFileSync(file, `name: sw0\nports: [${ports.join(", ")}]\nmetrics: false\ncontrol: ${socket}\n`);
    const as = ["nsenter", `--net=${net.namespace("sw").path}`, "--", ...kNetRawOnly];
    const { log } = await daemon("switch", file, socket, as);
    expect(log().filter(({ msg }) => msg === "af_xdp cannot be opened, af_packet instead")).toMatchObject([
      { ports: ["a", "b"] },
    ]);
    expect(await port(socket, "a")).toMatchObject({
      transmit: "af_packet",
      backend_reason: expect.stringMatching(/^af_xdp failed: cannot register packet memory/),
      probe: { xdp_sockets: "", xdp_programs: "EPERM" },
    });
    await works(net);
  });
});
