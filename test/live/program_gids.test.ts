/** NICs that have the addresses of their interfaces, which change while programs run on them. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import type { LabNetwork } from "../../src/host/veth.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { liveObstacle } from "./capability.js";
import { daemon, kHosts, network, portOf, startSwitch, weirAs } from "./daemons.js";
import { listens } from "./program_runs.js";
import { folder } from "./weir.js";

type Host = (typeof kHosts)[number];

/** At which servers of perftest and of libibverbs' examples listen. */
const kTcpPort = 18515;

/** NICs beside the kernels of two hosts, and their programs. */
async function bed() {
  const net = await network();
  await startSwitch(net, { ports: kHosts.map((name) => portOf(net, name, "rate: 1Gbps")) });
  const path = folder();
  const control = (host: string) => join(path, `${host}.sock`);
  const at = (host: Host) => ["nsenter", `--net=${net.namespace(host).path}`, "--"];
  const nics = kHosts.map((host) => {
    const set = ["--set", `control=${control(host)}`];
    return weirAs({ as: at(host) }, "nic", "weir0", "--name", host, "--rate", "1Gbps", "--programs", ...set);
  });
  await eventually(async () => {
    for (const host of kHosts) expect((await ask(control(host), "status")).kind).toBe("nic");
  });
  const program = (host: Host, ...command: string[]) => {
    const { child, finished } = weirAs(
      { as: at(host), end: "SIGTERM" },
      "run",
      "--socket",
      control(host),
      "--",
      ...command,
    );
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (bytes: string) => {
        output += bytes;
      });
    }
    return { output: () => output, ended: finished };
  };
  const ran = async (host: Host, ...command: string[]) => {
    const { status, stdout, stderr } = await program(host, ...command).ended;
    expect(status, stdout + stderr).toBe(0);
    return stdout;
  };
  const pid = (host: Host) => nics[kHosts.indexOf(host)]?.child.pid as number;
  return { net, control, program, ran, pid, log: (i: number) => nics[i]?.log() ?? [] };
}

type Bed = Awaited<ReturnType<typeof bed>>;

const address = (net: LabNetwork, host: Host, what: "add" | "del", text: string) =>
  net.namespace(host).run("ip", ["address", what, text, "dev", "weir0"]);

/** GIDs that are there, by their index, as ibv_devinfo has them. */
async function gids({ ran }: Bed, host: Host): Promise<Record<string, string>> {
  const lines = (await ran(host, "ibv_devinfo", "-v")).matchAll(/GID\[\s*(\d+)\]:\s+(\S+?),/g);
  return Object.fromEntries([...lines].map(([, index = "", gid = ""]) => [index, gid]));
}

/** A server on b and its client on a, which is tried until the other listens. */
async function meets({ program, pid }: Bed, server: string[], client: string[]): Promise<string> {
  const serving = program("b", ...server);
  // A client that comes too early is a process for nothing. rping does not listen by TCP.
  if (server[0] !== "rping") await eventually(() => expect(listens(kTcpPort, pid("b")), serving.output()).toBe(true));
  const said = await eventually(async () => {
    const { status, stdout, stderr } = await program("a", ...client).ended;
    expect(status, stdout + stderr + serving.output()).toBe(0);
    return stdout;
  });
  expect((await serving.ended).status, serving.output()).toBe(0);
  return said;
}

function compiled(): string {
  const program = join(folder(), "addresses");
  const source = join(import.meta.dirname, "programs_c/addresses.c");
  execFileSync("cc", ["-Wall", "-Wextra", "-O1", source, "-o", program, "-libverbs", "-lrdmacm"], {
    env: { ...process.env, PATH: process.env.WEIR_BUILD_PATH },
  });
  return program;
}

const lacks = lacking("ibverbs-utils", "perftest", "rdmacm-utils");

describeUnless(liveObstacle() ?? lacks, "addresses of an interface", () => {
  it("come and go as GIDs of a NIC beside the kernel, and its programs are told; those of others are not disturbed", async () => {
    const place = await bed();
    const { net, program } = place;
    const watch = program("a", "stdbuf", "-oL", "ibv_asyncwatch", "-d", "a");
    await eventually(async () => expect(watch.output()).toContain("async event FD"));
    const told = () => watch.output().match(/GID/g)?.length ?? 0;
    expect(await gids(place, "a")).toEqual({ 0: "::ffff:10.66.0.1" });

    // Another address, over which there is traffic at once.
    await address(net, "a", "add", "10.77.0.1/24");
    await address(net, "b", "add", "10.77.0.2/24");
    await eventually(async () => expect(told()).toBeGreaterThan(0));
    for (const [host, last] of [
      ["a", 1],
      ["b", 2],
    ] as const) {
      await eventually(async () =>
        expect(await gids(place, host)).toEqual({ 0: `::ffff:10.66.0.${last}`, 1: `::ffff:10.77.0.${last}` }),
      );
    }
    const pingpong = ["ibv_rc_pingpong", "-g", "1", "-n", "200"];
    expect(await meets(place, pingpong, [...pingpong, "10.66.0.2"])).toContain("GID ::ffff:10.77.0.1");
    await meets(place, ["rping", "-s", "-a", "10.77.0.2", "-C", "3"], ["rping", "-c", "-a", "10.77.0.2", "-C", "3"]);

    // One that goes leaves its place, and the next one takes it; a pair on the other does not notice.
    const bandwidth = ["ib_write_bw", "-x", "1", "-s", "4096", "-D", "4"];
    const lasting = meets(place, bandwidth, [...bandwidth, "10.77.0.2"]);
    await eventually(async () => expect((await ask(place.control("a"), "queue_pairs")).length).toBeGreaterThan(0));
    await address(net, "a", "del", "10.66.0.1/24");
    await eventually(async () => expect(await gids(place, "a")).toEqual({ 1: "::ffff:10.77.0.1" }));
    await address(net, "a", "add", "10.66.0.9/24");
    await eventually(async () =>
      expect(await gids(place, "a")).toEqual({ 0: "::ffff:10.66.0.9", 1: "::ffff:10.77.0.1" }),
    );
    await lasting;
    const first = ["ibv_ud_pingpong", "-g", "0", "-n", "200"];
    expect(await meets(place, first, [...first, "10.66.0.2"])).toContain("GID ::ffff:10.66.0.9");
    expect(place.log(0).filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
    // The kernel has not answered for any of them.
    const { stdout } = await net.namespace("a").run("sh", ["-c", "cat /proc/net/snmp"]);
    const [names, values] = stdout
      .split("\n")
      .filter((line) => line.startsWith("Icmp: "))
      .map((line) => line.split(" "));
    expect(values?.[names?.indexOf("OutDestUnreachs") ?? -1]).toBe("0");
  });

  it("are told to programs of libibverbs and librdmacm, where the only one goes and comes back", async () => {
    const place = await bed();
    const { net, program } = place;
    const server = program("b", compiled(), "10.66.0.2");
    const says = (what: string) => eventually(async () => expect(server.output()).toContain(what));
    await says("ready");
    await address(net, "b", "del", "10.66.0.2/24");
    await says("gone");
    await address(net, "b", "add", "10.66.0.2/24");
    await says("back");
    await program("a", "ucmatose", "-s", "10.66.0.2", "-p", "7000", "-C", "1").ended;
    const { status, stderr } = await server.ended;
    expect(status, server.output() + stderr).toBe(0);
    expect(server.output()).toContain("as it should be");
  });

  it("are those of a file, too, which is read again", async () => {
    const net = await network();
    const path = folder();
    const [file, control] = [join(path, "nic.yaml"), join(path, "roce.sock")];
    const write = (addresses: string) =>
      writeFileSync(
        file,
        `name: roce
interface: weir0
namespace: ${net.namespace("a").path}
rate: 1Gbps
metrics: false
programs: true
control: ${control}
address: ${addresses}
`,
      );
    write("10.66.0.1");
    const nic = await daemon("nic", file, control);
    const devinfo = async () => {
      const { stdout } = await weirAs({}, "run", "--socket", control, "--", "ibv_devinfo", "-v").finished;
      return [...stdout.matchAll(/GID\[\s*(\d+)\]:\s+(\S+?),/g)].map(([, index, gid]) => `${index} ${gid}`);
    };
    expect(await devinfo()).toEqual(["0 ::ffff:10.66.0.1"]);
    await address(net, "a", "add", "10.66.0.3/24");
    write("[10.66.0.3, 10.66.0.1]");
    nic.child.kill("SIGHUP");
    await eventually(async () => expect(await devinfo()).toEqual(["0 ::ffff:10.66.0.1", "1 ::ffff:10.66.0.3"]));
    // Requests for one that the kernel does not have would not come in: nothing has changed then.
    write("[10.66.0.3, 10.66.0.4]");
    nic.child.kill("SIGHUP");
    await eventually(async () =>
      expect(nic.log().at(-1)).toMatchObject({
        msg: "not reloaded, the old configuration stays",
        error: "address: requests for 10.66.0.4 do not come here before a new start",
      }),
    );
    expect(await devinfo()).toEqual(["0 ::ffff:10.66.0.1", "1 ::ffff:10.66.0.3"]);
  });

  it("have an MTU that programs follow", async () => {
    const place = await bed();
    const { net, ran } = place;
    const active = async () => /active_mtu:\s+(\d+)/.exec(await ran("a", "ibv_devinfo"))?.[1];
    expect(await active()).toBe("1024");
    const set = (mtu: number) => net.namespace("a").run("ip", ["link", "set", "dev", "weir0", "mtu", `${mtu}`]);
    await set(700);
    await eventually(async () => expect(await active()).toBe("512"));
    const command = ["ib_write_bw", "-x", "0", "-s", "4096", "-n", "100"];
    expect(await meets(place, [...command, "-m", "512"], [...command, "10.66.0.2"])).toMatch(/Mtu\s+: 512/);
    // What frames have room for is settled at the start.
    await set(9000);
    await eventually(async () => expect(await active()).toBe("1024"));
  });
});
