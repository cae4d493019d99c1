/** LLDP and DCBX of daemons with Debian's lldpd and lldpad at the other ends of links, and of daemons among themselves. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { ask } from "../../src/device/control_client.js";
import type { LabNetwork } from "../../src/host/veth.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { liveObstacle } from "./capability.js";
import { connectAgain, type Daemon, daemon, freePort, metric, network, portOf, startSwitch } from "./daemons.js";
import { folder } from "./weir.js";

/** Starts a program that stays until the test ends, or it is ended. */
function inHost(net: LabNetwork, host: string, ...command: string[]): ChildProcess {
  const child = spawn("nsenter", [`--net=${net.namespace(host).path}`, ...command], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  });
  return child;
}

/** lldpd at a host's end of its link, spoken to by lldpcli. */
function startLldpd(net: LabNetwork, host: string) {
  const socket = join(folder(), "lldpd.sock");
  inHost(net, host, "lldpd", "-d", "-u", socket);
  const cli = (...words: string[]) => net.namespace(host).run("lldpcli", ["-u", socket, ...words]);
  const neighbours = async () => {
    const { stdout } = await cli("-f", "json0", "show", "neighbors", "details");
    const { lldp } = JSON.parse(stdout) as { lldp: { interface?: object[] }[] };
    return lldp[0]?.interface ?? [];
  };
  return { cli, neighbours };
}

/**
 * lldpad at a host's end of its link. It has a /dev/shm of its own: it keeps its process's number there beyond its end,
 * and does not start while any process has that number.
 */
function startLldpad(net: LabNetwork, host: string) {
  const config = join(folder(), "lldpad.conf");
  const start = 'mount -t tmpfs none /dev/shm && exec lldpad -p -t -f "$0"';
  inHost(net, host, "unshare", "--mount", "sh", "-c", start, config);
  return (...words: string[]) => net.namespace(host).run("lldptool", [...words, "-i", "weir0"]);
}

/** A TLV of IEEE 802.1, as lldpcli takes it. */
const tlv = (subtype: number, ...bytes: string[]) =>
  ["oui", "00,80,c2", "subtype", String(subtype), "oui-info", bytes.join(",")] as const;

/** Sends frames to the address of LLDP, each the bytes behind its EtherType. */
function sendLldp(net: LabNetwork, host: string, payloads: readonly string[]) {
  const program = `import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("weir0", 0))
for payload in ${JSON.stringify(payloads)}:
    s.send(bytes.fromhex("0180c200000e" + "020000000099" + "88cc" + payload))
`;
  return net.namespace(host).run("python3", ["-c", program]);
}

const kMandatory = "020704020000000099040405703939";

describeUnless(liveObstacle() ?? lacking("lldpd", "lldpad", "python3"), "LLDP and DCBX", () => {
  it("of a switch are read by lldpd and lldpad, which it reads; a mismatch of PFC is reported", async () => {
    const net = await network();
    const lldpd = startLldpd(net, "a");
    const tool = startLldpad(net, "b");
    await eventually(async () => expect((await tool("adminStatus=rxtx", "-L")).stdout).toContain("adminStatus"));
    const bridge = await startSwitch(net, {
      more: "lldp: { tx_interval: 1s }\ndcbx: true\npfc: { priorities: [3] }\n",
    });

    await eventually(async () => {
      const [found, ...others] = await lldpd.neighbours();
      expect(others).toEqual([]); // The switch passes on none of lldpad's frames.
      const text = JSON.stringify(found);
      for (const told of ['"sw0"', '"ifname","value":"a"', '"Weir ', '"Bridge","enabled":true'])
        expect(text).toContain(told);
    });
    await eventually(async () => {
      const { stdout } = await tool("-t", "-n");
      expect(stdout).toMatch(/Ifname: b\n[\s\S]*System Name TLV\n\tsw0\n/);
      expect(stdout).toMatch(/PFC TLV\n\t Willing: no\n[\s\S]*PFC capable traffic classes: 8\n\t PFC enabled: 3 \n/);
      expect(stdout).toMatch(/ETS Recommendation TLV\n\t PRIO_MAP: {2}0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7 \n/);
      expect(stdout).toMatch(/Prio 3 \t Sel 3 \t P-ID\t UDP or DCCP Port: 4791/);
    });
    await eventually(async () => {
      const { ports } = await ask(bridge.socket, "lldp");
      expect(ports.map(({ neighbours }) => neighbours.map(({ mac }) => mac))).toEqual([
        ["02:57:00:00:00:0a"],
        ["02:57:00:00:00:0b"],
      ]);
    });
    const mismatch = 'weir_dcbx_mismatch{device="sw0",port="a",of="pfc"}';
    expect((await ask(bridge.socket, "dcbx")).ports.map(({ peers }) => peers)).toEqual([0, 0]);
    expect(await metric(bridge.url, mismatch)).toBe(0);

    await lldpd.cli("configure", "lldp", "custom-tlv", ...tlv(11, "08", "10"));
    await lldpd.cli("update");
    await eventually(async () => {
      const [a] = (await ask(bridge.socket, "dcbx")).ports;
      expect(a?.mismatches).toEqual([{ of: "pfc", local: [3], peer: [4] }]);
    });
    expect(await metric(bridge.url, mismatch)).toBe(1);
    expect(bridge.log()).toContainEqual(expect.objectContaining({ level: "warn", port: "a", local: [3], peer: [4] }));
    await lldpd.cli("configure", "lldp", "custom-tlv", "replace", ...tlv(11, "08", "08"));
    await lldpd.cli("update");
    await eventually(async () => expect((await ask(bridge.socket, "dcbx")).ports[0]?.mismatches).toEqual([]));

    bridge.child.kill("SIGTERM");
    await bridge.finished;
    await eventually(async () => expect(await lldpd.neighbours()).toEqual([]));
  });

  it.each(["af_packet", "af_xdp"])("of a NIC: it takes what its switch has, by %s", async (backend) => {
    const net = await network();
    const path = folder();
    const file = join(path, "nic.yaml");
    const port = await freePort();
    writeFileSync(
      file,
      `name: roce-a
interface: weir0
namespace: ${net.namespace("a").path}
address: 10.77.0.1
vlan: 7
backend: ${backend}
pfc: { priorities: [5] }
dcbx: true
metrics: { port: ${port} }
control: ${join(path, "nic.sock")}
`,
    );
    const sections = (priority: number) =>
      `dcbx: { roce_priority: 3 }\npfc: { priorities: [${priority}] }\nscheduler: { strict: [7], weights: { "3": 3 } }\n`;
    const ports = ["a", "b"].map((host) => portOf(net, host, `rate: 1Gbps, backend: ${backend}`));
    const bridge = await startSwitch(net, { more: sections(3), ports });
    const nic: Daemon = await daemon("nic", file, join(path, "nic.sock"));
    const lossless = async () => (await ask(nic.socket, "qos")).pfc_priorities;
    await eventually(async () => expect(await lossless()).toEqual([3]));
    const { scheduler } = await ask(nic.socket, "qos");
    // Percent, as the switch tells them.
    expect(scheduler).toEqual({ strict: [7], weights: [11, 11, 11, 34, 11, 11, 11, 1] });
    expect(
      await metric(`http://127.0.0.1:${port}`, 'weir_nic_pfc_enabled{device="roce-a",port="1",priority="3"}'),
    ).toBe(1);
    const told = async () => (await ask(bridge.socket, "dcbx")).ports[0]?.peer;
    await eventually(async () => {
      expect(await told()).toMatchObject({ neighbour: "roce-a", pfc: { willing: true, priorities: [3] } });
    });

    bridge.write(sections(2));
    bridge.child.kill("SIGHUP");
    await eventually(async () => expect(await lossless()).toEqual([2]));
    bridge.child.kill("SIGTERM");
    await bridge.finished;
    // Without its peer it does as its file says.
    await eventually(async () => expect(await lossless()).toEqual([5]));
  });

  it("of bad frames are counted, and a neighbour lives as long as it says", async () => {
    const net = await network();
    const bridge = await startSwitch(net, { more: "lldp: true\n" });
    const at = async () => {
      const [a] = (await ask(bridge.socket, "lldp")).ports;
      return a as NonNullable<typeof a>;
    };
    const long = "00".repeat(40);
    await sendLldp(net, "a", [
      `${kMandatory}0602ffff0a80${long}`.slice(0, 60), // It is cut off behind the mandatory TLVs.
      `0207${long}`,
      `fe${long}`,
      `${kMandatory}060200780000${long}`,
    ]);
    await eventually(async () => expect(await at()).toMatchObject({ frames_in: 4, frames_discarded: 2 }));
    expect((await at()).neighbours).toHaveLength(1);
    expect((await at()).frames_in_errors).toBeGreaterThanOrEqual(2);
    await sendLldp(net, "a", [`${kMandatory}060200000000${long}`]);
    await eventually(async () => expect((await at()).neighbours).toEqual([]));
    await sendLldp(net, "a", [`${kMandatory}060200010000${long}`]);
    await eventually(async () => expect(await at()).toMatchObject({ neighbours: [], ageouts: 1 }));
    const { counters } = await ask(bridge.socket, "counters");
    const count = (name: string) => counters.find((one) => one.name === name && one.labels.port === "a")?.value;
    expect(count("rx_punted")).toBe(6);
    expect(count("drop_reserved_address")).toBe(0);
    expect(count("tx_slow_path")).toBeGreaterThan(0);
    // A link that goes takes its neighbour along, and one that comes finds it again.
    await sendLldp(net, "b", [`${kMandatory}0602ffff0000${long}`]);
    const atB = async () => (await ask(bridge.socket, "lldp")).ports[1]?.neighbours.length;
    await eventually(async () => expect(await atB()).toBe(1));
    await net.namespace("sw").run("ip", ["link", "delete", "dev", "b"]);
    await eventually(async () => expect(await atB()).toBe(0));
    await connectAgain(net);
    await eventually(async () => {
      await sendLldp(net, "b", [`${kMandatory}0602ffff0000${long}`]);
      expect(await atB()).toBe(1);
    });
  });
});
