/** Daemons that are told by the command line what others read in a file, and programs on them. */
import { existsSync, readdirSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { liveObstacle } from "./capability.js";
import { kHosts, network, weirAs } from "./daemons.js";
import { folder } from "./weir.js";

/** Arguments of setpriv for the capabilities that Docker's and podman's containers have. */
const kContainer = [
  "--inh-caps=-all",
  "--bounding-set",
  "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+mknod,+setfcap",
];

describeUnless(liveObstacle() ?? lacking("perftest"), "daemons without a file", () => {
  it("make a fabric of interfaces with addresses of the kernel's, for programs as they are", async () => {
    const net = await network();
    const path = folder();
    const control = (name: string) => join(path, `${name}.sock`);
    const at = (name: string) => ["nsenter", `--net=${net.namespace(name).path}`, "--"];
    const started = [
      weirAs({ as: at("sw") }, "switch", ...kHosts, "--set", `control=${control("switch")}`),
      ...kHosts.map((name) =>
        weirAs({ as: at(name) }, "nic", "weir0", "--name", name, "--programs", "--set", `control=${control(name)}`),
      ),
    ];
    let ended: unknown;
    for (const { finished } of started) {
      void finished.then((one) => {
        ended = one;
      });
    }
    const answered = await eventually(async () =>
      ended === undefined ? Promise.all(["switch", ...kHosts].map((name) => ask(control(name), "status"))) : undefined,
    );
    expect(ended).toBeUndefined();
    expect(answered?.map(({ kind, name, metrics }) => [kind, name, metrics])).toEqual([
      ["switch", "switch", null],
      ["nic", "a", null],
      ["nic", "b", null],
    ]);
    const bandwidth = (name: string, ...args: string[]) =>
      weirAs(
        { as: at(name) },
        "run",
        "--socket",
        control(name),
        "--",
        "ib_write_bw",
        "-s",
        "4096",
        "-n",
        "200",
        ...args,
      );
    const server = bandwidth("b");
    // Addresses are the kernel's, so the program meets its peer by TCP; its port is asked for until somebody listens.
    await eventually(async () => {
      const { status, stdout, stderr } = await bandwidth("a", "10.66.0.2").finished;
      expect(status, stdout + stderr).toBe(0);
    });
    expect((await server.finished).status).toBe(0);
    // The kernel, whose address it is, has not told the peer that nobody is at RoCEv2's port.
    for (const name of kHosts) {
      const { stdout } = await net.namespace(name).run("sh", ["-c", "cat /proc/net/snmp"]);
      const [names, values] = stdout
        .split("\n")
        .flatMap((line) => (line.startsWith("Icmp: ") ? [line.split(" ")] : []));
      expect(values?.[names?.indexOf("OutDestUnreachs") ?? -1], name).toBe("0");
    }
    const ping = await net.namespace("a").run("ping", ["-c", "1", "10.66.0.2"]);
    expect(ping.stdout).toContain(" 0% packet loss");
  });

  it("give a program a NIC for as long as it runs, with the capabilities of a container", async () => {
    const net = await network();
    const path = folder();
    const alone = (name: string, ...words: string[]) =>
      weirAs(
        { as: ["nsenter", `--net=${net.namespace(name).path}`, "--", "setpriv", ...kContainer] },
        ...["run", "--interface", "weir0", "--set", `control=${join(path, `${name}.sock`)}`, "--", ...words],
      );
    const server = alone("b", "ib_write_bw", "-s", "4096", "-n", "200");
    // A switch between them, which the program does not end.
    const between = weirAs(
      { as: ["nsenter", `--net=${net.namespace("sw").path}`, "--"] },
      ...["switch", ...kHosts, "--set", `control=${join(path, "switch.sock")}`],
    );
    await eventually(async () => {
      const { status, stdout, stderr } = await alone("a", "ib_write_bw", "-s", "4096", "-n", "200", "10.66.0.2")
        .finished;
      expect(status, stdout + stderr).toBe(0);
    });
    expect((await server.finished).status).toBe(0);
    // Its status is the program's, and its NIC has gone.
    expect((await alone("a", "sh", "-c", "exit 7").finished).status).toBe(7);
    expect(readdirSync(path)).toEqual(["switch.sock"]);
    between.child.kill("SIGTERM");
    await between.finished;
  });

  it("have one NIC on an interface: the second says who has it", async () => {
    const net = await network();
    const control = join(folder(), "a.sock");
    const words = ["run", "--interface", "weir0", "--set", `control=${control}`, "--"];
    const as = ["nsenter", `--net=${net.namespace("a").path}`, "--"];
    const first = weirAs({ as }, ...words, "sleep", "60");
    await eventually(() => ask(control, "status"));
    const { status, stderr } = await weirAs({ as }, ...words, "true").finished;
    expect(status).toBe(1);
    expect(stderr).toContain(`a daemon is running already: it answers at ${control}`);
    first.child.kill("SIGTERM");
    expect((await first.finished).status).toBe(128 + 15);
    expect(existsSync(control)).toBe(false);
  });

  it.each(["SIGTERM", "SIGINT"] as const)("end by %s before the program is there, too", async (signal) => {
    const net = await network();
    const path = folder();
    const control = join(path, "a.sock");
    const as = ["nsenter", `--net=${net.namespace("a").path}`, "--"];
    const words = ["run", "--interface", "weir0", "--set", `control=${control}`, "--", "sleep", "3"];
    const started = weirAs({ as }, ...words);
    // The NIC's process is there; the program is not yet, or just now: a SIGINT of the terminal would reach it by itself.
    await eventually(() => expect(existsSync(control)).toBe(true));
    started.child.kill(signal);
    const ended = 128 + constants.signals[signal];
    expect(signal === "SIGINT" ? [0, ended] : [ended]).toContain((await started.finished).status);
    await eventually(() => expect(readdirSync(path)).toEqual([]));
  });
});
