/** Switches that transmit live XDP frames: some frames leave so and others do not, and nothing of it stays. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { ask } from "../../src/device/control_client.js";
import type { LabNetwork } from "../../src/host/veth.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import { connectAgain, daemon, metric, network, ping, portOf, runXdp, startSwitch } from "./daemons.js";
import { folder } from "./weir.js";

const gro = (net: LabNetwork, host: string, on: "on" | "off") =>
  net.namespace(host).run("ethtool", ["-K", "weir0", "gro", on]);

/** UDP of 1,000 bytes from a, in bursts of 60 that arrive as one (UDP_SEGMENT): fewer at once may leave another way. */
function flood(net: LabNetwork, seconds: number, to = "10.66.0.2"): Promise<unknown> {
  const script = `import socket, time
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.setsockopt(socket.IPPROTO_UDP, 103, 1000)
end = time.monotonic() + ${seconds}
while time.monotonic() < end:
    try:
        udp.sendto(bytes(60_000), ("${to}", 9999))
    except OSError:
        pass  # refused by nobody who listens, or by a link that is gone
    time.sleep(0.004)`;
  return net.namespace("a").run("python3", ["-c", script]);
}

/** Has host a send single frames with whole checksums. */
const leaveNothing = (net: LabNetwork) =>
  net.namespace("a").run("ethtool", ["-K", "weir0", "tx", "off", "gso", "off", "tso", "off"]);

/** Ids of the BPF programs that a process has. */
function programsOf(pid: number): number[] {
  const ids = readdirSync(`/proc/${pid}/fdinfo`).flatMap((fd) => {
    try {
      const text = readFileSync(`/proc/${pid}/fdinfo/${fd}`, "utf8");
      return [...text.matchAll(/^prog_id:\s+(\d+)$/gm)].map(([, id]) => Number(id));
    } catch {
      return []; // closed meanwhile
    }
  });
  return [...new Set(ids)];
}

/** Tells whether the kernel still has a program: BPF_PROG_GET_FD_BY_ID. */
function exists(id: number): boolean {
  const script = `import ctypes, errno, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
call = {"x86_64": 321}.get(__import__("platform").machine(), 280)
attributes = ctypes.create_string_buffer(struct.pack("=III", int(sys.argv[1]), 0, 0), 128)
fd = libc.syscall(call, 13, attributes, 128)
assert fd >= 0 or ctypes.get_errno() == errno.ENOENT, ctypes.get_errno()
print("yes" if fd >= 0 else "no")`;
  const { stdout, stderr } = spawnSync("python3", ["-c", script, String(id)], { encoding: "utf8" });
  expect(stderr).toBe("");
  return stdout.trim() === "yes";
}

describeLive("a switch that transmits live frames", () => {
  it("sends so where the other end takes them, tells where it does not, and finds out when it does", async () => {
    const net = await network();
    await gro(net, "a", "off");
    await gro(net, "b", "on");
    const { socket, url, log } = await startSwitch(net, { port: "backend: live" });
    const sent = () => metric(url, 'weir_switch_port_host_tx_live_total{switch="sw0",port="b"}');
    await eventually(async () => expect(await ping(net, 3)).toEqual({ sent: 3, received: 3 }));
    await eventually(async () => {
      const ports = await ask(socket, "ports");
      expect(ports.map(({ receive, transmit, tx_falls_back }) => [receive, transmit, tx_falls_back])).toEqual([
        ["af_xdp", "live", true],
        ["af_xdp", "live", false],
      ]);
    });
    expect(log().filter(({ msg }) => msg.startsWith("it takes no live frames"))).toMatchObject([{ port: "a" }]);
    await flood(net, 2);
    await eventually(async () => expect(await sent()).toBeGreaterThan(1000));
    expect(await ping(net, 20)).toEqual({ sent: 20, received: 20 });
    await gro(net, "a", "on");
    await eventually(async () => {
      expect((await ask(socket, "ports"))[0]).toMatchObject({ tx_falls_back: false });
      expect(log().map(({ msg }) => msg)).toContain("the interface takes live frames");
    });
  });

  it("goes on when it is reloaded, an interface deleted and made anew, under load, and leaves nothing when it is killed", async () => {
    const net = await network();
    await gro(net, "a", "on");
    await gro(net, "b", "on");
    const { socket, child, finished, log, write } = await startSwitch(net, { port: "backend: live" });
    await eventually(async () => expect(await ping(net, 3)).toEqual({ sent: 3, received: 3 }));
    const load = flood(net, 4);
    write("ecn: { kmin: 30KB, kmax: 300KB, pmax: 20%, priorities: [3] }\n");
    child.kill("SIGHUP");
    await eventually(() => expect(log().map(({ msg }) => msg)).toContain("reloaded"));
    await net.namespace("b").run("ip", ["link", "delete", "weir0"]);
    await eventually(async () => {
      expect((await ask(socket, "ports"))[1]).toMatchObject({ up: false });
      expect((await ask(socket, "switch")).buffer.occupied).toBe(0);
    });
    await connectAgain(net);
    await gro(net, "b", "on");
    await load;
    await eventually(async () => {
      expect((await ask(socket, "ports"))[1]).toMatchObject({ up: true, tx_falls_back: false });
      expect(await ping(net, 3)).toEqual({ sent: 3, received: 3 });
    });

    const programs = programsOf(child.pid as number);
    expect(programs.length).toBeGreaterThanOrEqual(5); // two that receive, one that sends, two that count
    expect(programs.map(exists)).not.toContain(false);
    child.kill("SIGKILL");
    await finished;
    await eventually(() => expect(programs.map(exists)).not.toContain(true));
    const { stdout } = await net.namespace("sw").run("ip", ["-json", "-details", "link", "show"]);
    const links = JSON.parse(stdout) as { ifname: string; xdp?: unknown }[];
    expect(links.map(({ ifname }) => ifname).sort()).toEqual(["a", "b", "lo"]);
    expect(links.filter(({ xdp }) => xdp !== undefined)).toEqual([]);
    const { socket: again } = await startSwitch(net, {
      ports: ["a", "b"].map((host) => portOf(net, host, "backend: live")),
    });
    await eventually(async () => expect(await ping(net, 3)).toEqual({ sent: 3, received: 3 }));
    expect((await ask(again, "ports")).map(({ transmit }) => transmit)).toEqual(["live", "live"]);
  });
});

describeLive("a switch that picks by itself", () => {
  it("sends live frames while an XDP program is at the other end, says so, and all else whole by packet sockets", async () => {
    const net = await network();
    const detach = await runXdp(net, "b");
    const { socket, url, log } = await startSwitch(net, { port: "mtu: 1500" });
    const sent = () => metric(url, 'weir_switch_port_host_tx_live_total{switch="sw0",port="b"}');
    const chosen = async () =>
      (await ask(socket, "ports")).map(({ receive, transmit, tx_falls_back }) => [receive, transmit, tx_falls_back]);
    expect(await chosen()).toEqual([
      ["af_packet", "af_packet", false],
      ["af_packet", "live", false],
    ]);
    expect(log().filter(({ msg }) => msg === "backend chosen")).toMatchObject([
      { port: "a", why: expect.stringMatching(/^a veth without a rate/) },
      { port: "b", why: expect.stringMatching(/^a veth whose other end runs an XDP program: live frames/) },
    ]);
    // Sockets that leave work to their interface send super-frames, which leave as such.
    await flood(net, 1);
    expect(await sent()).toBe(0);
    await leaveNothing(net);
    await flood(net, 2);
    await eventually(async () => expect(await sent()).toBeGreaterThan(1000));
    expect(await ping(net, 20)).toEqual({ sent: 20, received: 20 });

    await detach();
    await eventually(async () => expect((await chosen())[1]).toEqual(["af_packet", "live", true]));
    const before = await sent();
    await flood(net, 1);
    expect(await sent()).toBe(before);
    expect(await ping(net, 20)).toEqual({ sent: 20, received: 20 });
    await runXdp(net, "b");
    await eventually(async () => expect((await chosen())[1]).toEqual(["af_packet", "live", false]));
    await flood(net, 2);
    await eventually(async () => expect(await sent()).toBeGreaterThan(before));
    const told = log().filter(({ port }) => port === "b");
    expect(told.map(({ msg }) => msg)).toEqual([
      "backend chosen",
      "no XDP program takes live frames now: all leave by af_packet",
      "an XDP program takes live frames",
    ]);
  });

  it.each([
    ["CAP_NET_RAW alone", ["net_raw"], "af_packet"],
    ["all but CAP_BPF and CAP_SYS_ADMIN", ["net_raw", "net_admin", "perfmon"], "af_packet"],
    ["what receives by AF_XDP", ["net_raw", "net_admin", "bpf"], "af_packet"],
    ["what live frames take", ["net_raw", "net_admin", "bpf", "perfmon", "sys_admin"], "live"],
  ])("has what it had before with %s, and says why", async (_, capabilities, transmit) => {
    const net = await network();
    await runXdp(net, "b");
    const path = folder();
    const [file, socket] = [join(path, "switch.yaml"), join(path, "sw0.sock")];
    const ports = ["a", "b"].map((name) => `{ interface: ${name} }`);
    writeFileSync(file, `name: sw0\nports: [${ports.join(", ")}]\nmetrics: false\ncontrol: ${socket}\n`);
    const set = ["-all", ...capabilities.map((name) => `+${name}`)].join(",");
    const as = ["nsenter", `--net=${net.namespace("sw").path}`, "--"];
    as.push("setpriv", `--bounding-set=${set}`, `--inh-caps=${set}`, "--no-new-privs");
    const { log } = await daemon("switch", file, socket, as);
    const [, b] = await ask(socket, "ports");
    const why =
      transmit === "live"
        ? /^a veth whose other end runs an XDP program: live frames/
        : /no live frames to it: not allowed \(EPERM\), run as root$/;
    expect(b).toMatchObject({ receive: "af_packet", transmit, backend_reason: expect.stringMatching(why) });
    expect(log().filter(({ level }) => level !== "info")).toEqual([]);
    await eventually(async () => expect(await ping(net, 3)).toEqual({ sent: 3, received: 3 }));
  });
});

describeLive("a port that sends live frames to a tap that nobody reads", () => {
  it("keeps them in the shared buffer, and serves the others", async () => {
    const net = await network();
    const sw = net.namespace("sw");
    const opened = `import fcntl, struct, sys, time
tap = open("/dev/net/tun", "r+b", buffering=0)
fcntl.ioctl(tap, 0x400454ca, struct.pack("16sH22x", b"tap0", 0x1002))
print("open", flush=True)
sys.stdin.read()`;
    const holder = spawn("nsenter", [`--net=${sw.path}`, "python3", "-c", opened]);
    onTestFinished(() => void holder.stdin.end());
    await once(holder.stdout, "data");
    await sw.run("ip", ["link", "set", "dev", "tap0", "mtu", "1500", "up"]);
    const unread = "02:57:00:00:00:99";
    const hosts = ["a", "b"].map((host) => portOf(net, host, "mtu: 1500"));
    const { socket } = await startSwitch(net, {
      ports: [...hosts, `{ interface: tap0, namespace: ${sw.path}, mtu: 1500, receive: af_packet, transmit: live }`],
      more: `static_fdb: [{ mac: "${unread}", port: tap0 }]\n`,
    });
    await eventually(async () => expect(await ping(net, 3)).toEqual({ sent: 3, received: 3 }));
    expect((await ask(socket, "ports"))[2]).toMatchObject({ up: true, tx_falls_back: false });
    await net.namespace("a").run("ip", ["neigh", "replace", "10.66.0.9", "lladdr", unread, "dev", "weir0"]);
    await leaveNothing(net);
    const load = flood(net, 4, "10.66.0.9");
    await eventually(async () => {
      const { buffer, ports } = await ask(socket, "switch");
      expect(ports[2]?.queue_bytes[0]).toBeGreaterThan(1_000_000);
      expect(buffer.occupied).toBeGreaterThanOrEqual(ports[2]?.queue_bytes[0] ?? 0);
      expect((await ask(socket, "ports"))[2]).toMatchObject({ up: true, tx_stalled: true, tx_falls_back: false });
    });
    expect(await ping(net, 50), "beside it").toEqual({ sent: 50, received: 50 });
    await load;
    const { counters } = await ask(socket, "counters");
    const of = (name: string, port: string) =>
      counters.find((one) => one.name === name && one.labels.port === port && one.labels.priority === undefined)?.value;
    expect(of("drop_no_descriptor", "a")).toBe(0);
    expect(of("host_tx_live", "tap0")).toBeGreaterThan(100);
  });
});
