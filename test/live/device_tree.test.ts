/** A NIC as programs find it that look for themselves: under /sys and /dev, and by its events. */
import { spawn } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { prepareLaunch } from "../../src/daemon/programs/launch.js";
import type { LabNetwork } from "../../src/host/veth.js";
import { endWithTest } from "../end_with_test.js";
import { lacking } from "../needs.js";
import { describeUnless, itUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { liveObstacle } from "./capability.js";
import { daemon, freePort, network, portOf, startSwitch } from "./daemons.js";
import { folder } from "./weir.js";

const kUser = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"];
/** A user namespace in which no further namespaces can be made, as in a container with the usual filter of system calls. */
const kNoMounts = [
  ...["unshare", "--user", "--map-root-user", "sh", "-c"],
  'echo 0 > /proc/sys/user/max_user_namespaces; echo 0 > /proc/sys/user/max_mnt_namespaces; exec "$0" "$@"',
];
/** Looks as scripts, Python, and tools of others do. */
const kLook = `
import glob, json, os
base = "/sys/class/infiniband"
device = os.path.realpath(base + "/a/device")
read = lambda path: open(base + "/a/" + path).read().strip()
print(json.dumps({
    "devices": sorted(os.listdir(base)),
    "glob": glob.glob(base + "/*/ports/1/gids/0"),
    "link": os.readlink(base + "/a"),
    "device": device,
    "above": os.path.realpath(base + "/a/../.."),
    "vendor": open(device + "/vendor").read().strip(),
    "net": os.path.exists(device + "/net"),
    "state": read("ports/1/state"),
    "gid": read("ports/1/gids/0"),
    "counted": int(read("ports/1/counters/port_xmit_packets")) >= 0,
    "verbs": os.path.basename(os.path.realpath("/sys/class/infiniband_verbs/uverbs0/device")),
    "interfaces": "lo" in os.listdir("/sys/class/net"),
    "character": os.path.exists("/dev/infiniband/uverbs0"),
}))
`;
const kSeen = {
  devices: ["a"],
  glob: ["/sys/class/infiniband/a/ports/1/gids/0"],
  link: "../../devices/virtual/weir/a/infiniband/a",
  device: "/sys/devices/virtual/weir/a",
  above: "/sys/devices/virtual/weir/a",
  vendor: "0xffff",
  state: "4: ACTIVE",
  gid: "0000:0000:0000:0000:0000:ffff:0a42:0001",
  counted: true,
  verbs: "a",
  interfaces: true,
  character: true,
};

async function bed() {
  const net = await network();
  await startSwitch(net, { ports: ["a", "b"].map((name) => portOf(net, name, "rate: 1Gbps")) });
  const path = folder();
  for (const [i, name] of ["a", "b"].entries()) {
    const control = join(path, `${name}.sock`);
    const config = {
      ...{ name, interface: "weir0", namespace: net.namespace(name).path, address: `10.66.0.${i + 1}` },
      ...{ rate: "1Gbps", metrics: false, programs: true, control },
    };
    const file = join(path, `${name}.yaml`);
    writeFileSync(file, JSON.stringify(config));
    await daemon("nic", file, control);
  }
  return { net, path };
}

/** A program that sees the NIC called a. */
async function started({ path }: { path: string }, command: readonly string[], as: readonly string[] = []) {
  const { files, before } = await prepareLaunch(["a"], { folder: path });
  const [program = "", ...args] = [...as, ...before("weir run"), ...command];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => rmSync(files, { recursive: true, force: true }));
  endWithTest(child);
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (bytes) => {
    stdout += bytes;
  });
  child.stderr.on("data", (bytes) => {
    stderr += bytes;
  });
  const ended = new Promise<{ stdout: string; stderr: string; status: number | null }>((resolve) => {
    child.on("close", (status) => resolve({ stdout, stderr, status }));
  });
  return { output: () => stdout, ended };
}

async function run(place: { path: string }, command: readonly string[], as: readonly string[] = []) {
  const { ended } = await started(place, command, as);
  return ended;
}

const setLink = (net: LabNetwork, state: "up" | "down") =>
  net.namespace("a").run("ip", ["link", "set", "dev", "weir0", state]);

describeUnless(liveObstacle() ?? lacking("infiniband-diags", "ibverbs-utils", "python3"), "the tree of a NIC", () => {
  it("is seen by programs that load no libraries, as root and as an ordinary user, and gone behind them", async () => {
    const place = await bed();
    for (const as of [[], kUser]) {
      const plain = ["env", "-u", "LD_PRELOAD", "-u", "SYSFS_PATH", "python3", "-c", kLook];
      const { stdout, stderr, status } = await run(place, plain, as);
      expect(status, stderr).toBe(0);
      // The interface is in another network namespace.
      expect(JSON.parse(stdout)).toEqual({ ...kSeen, net: false });
      // What was there is there still.
      for (const folder of ["/sys/class", "/sys/class/misc", "/sys/devices/virtual", "/dev"]) {
        const { stdout } = await run(place, ["ls", "-a", folder], as);
        expect(stdout.split("\n")).toEqual(expect.arrayContaining(readdirSync(folder)));
      }
      expect((await run(place, ["ibstat"], as)).stdout).toMatch(
        /CA 'a'[\s\S]*State: Active[\s\S]*Rate: 1[\s\S]*Ethernet/,
      );
    }
    expect((await run(place, ["ibv_devinfo"])).stdout).toMatch(/hca_id:\s+a\n[\s\S]*PORT_ACTIVE/);
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toMatch(/ weir /);
  });

  it("is seen by programs that load libraries where nothing can be mounted, which a warning tells", async () => {
    const place = await bed();
    const { stdout, stderr, status } = await run(place, ["python3", "-c", kLook], kNoMounts);
    expect(status, stderr).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ ...kSeen, net: false });
    expect(stderr).toMatch(/^weir run: warning: no mounts here \(.+\): programs that load no libraries see no NIC/);
    expect((await run(place, ["ibstat"], kNoMounts)).stdout).toMatch(/State: Active/);
    expect((await run(place, ["rdma", "link"], kNoMounts)).stdout).toMatch(/^link a\/1 state ACTIVE/);
  });

  itUnless(lacking("prometheus-node-exporter"), "is what node_exporter tells of", async () => {
    const at = `127.0.0.1:${await freePort()}`;
    const collect = ["--collector.disable-defaults", "--collector.infiniband", `--web.listen-address=${at}`];
    const exporter = await started(await bed(), ["prometheus-node-exporter", ...collect]);
    await eventually(async () => {
      const text = await fetch(`http://${at}/metrics`).then((answer) => answer.text());
      expect(text, exporter.output()).toMatch(/^node_infiniband_state_id{device="a",port="1"} 4$/m);
      expect(text).toMatch(/^node_infiniband_port_data_transmitted_bytes_total{device="a",port="1"} \d/m);
    });
  });

  it("tells that the link is down, as do queries and events, and that it is back", async () => {
    const place = await bed();
    const watch = await started(place, ["stdbuf", "-oL", "ibv_asyncwatch", "-d", "a"]);
    await eventually(async () => expect(watch.output()).toContain("async event FD"));
    await setLink(place.net, "down");
    await eventually(async () => expect(watch.output()).toMatch(/port error|PORT_ERR/));
    await eventually(async () => expect((await run(place, ["ibstat"])).stdout).toMatch(/State: Down/));
    expect((await run(place, ["ibv_devinfo"])).stdout).toMatch(/PORT_DOWN/);
    await setLink(place.net, "up");
    await eventually(async () => expect(watch.output()).toMatch(/port active|PORT_ACTIVE/));
    await eventually(async () => expect((await run(place, ["ibstat"])).stdout).toMatch(/State: Active/));
    expect((await run(place, ["ibv_devinfo"])).stdout).toMatch(/PORT_ACTIVE/);
    const downed = await run(place, [
      "python3",
      "-c",
      "print(open('/sys/class/infiniband/a/ports/1/counters/link_downed').read())",
    ]);
    expect(downed.stdout.trim()).toBe("1");
  });
});
