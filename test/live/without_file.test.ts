/** Daemons that are told by the command line what others read in a file, and programs on them. */
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { liveObstacle } from "./capability.js";
import { kHosts, network, weirAs } from "./daemons.js";
import { folder } from "./weir.js";

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
});
