/** Labs that stay: people's programs on their hosts, and what is left when they, or parts of them, end. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { kControlVariable } from "../../src/host/control_directory.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { describeLive, describeOrdinaryUser, kOrdinaryUser, liveObstacle } from "./capability.js";
import { listens } from "./program_runs.js";
import { Standing } from "./standing.js";

const kAddresses = ["10.87.0.1", "fd57:4549:5200::1"];

/** A host as its own programs see it. */
async function looksRight(lab: Standing): Promise<void> {
  const [, link] = JSON.parse(await lab.exec("a", "ip", "-json", "address")) as {
    ifname: string;
    address: string;
    mtu: number;
    operstate: string;
    addr_info: { local: string; scope: string }[];
  }[];
  expect(link).toMatchObject({ ifname: "weir0", address: "02:57:45:00:00:01", mtu: 1500, operstate: "UP" });
  expect(link?.addr_info.filter(({ scope }) => scope === "global").map(({ local }) => local)).toEqual(kAddresses);
  expect(await lab.exec("a", "cat", "/proc/sys/kernel/hostname")).toBe("a\n");
  expect(await lab.exec("a", "ls", "/sys/class/net")).toBe("lo\nweir0\n");
  // ARP and neighbour discovery go through the switch, names come from /etc/hosts.
  expect(await lab.exec("a", "ping", "-4", "-c", "1", "-w", "60", "b")).toContain("1 received");
  expect(await lab.exec("a", "ping", "-6", "-c", "1", "-w", "60", "b")).toContain("1 received");
  expect(await lab.exec("b", "ip", "-json", "neigh")).toContain("02:57:45:00:00:01");
}

describeLive("weir lab up", () => {
  it("gives hosts an interface, addresses and names, is refused a second time, and is gone with down", async () => {
    const lab = new Standing();
    const file = lab.scenario();
    const report = await lab.up(file);
    expect(report).toMatchObject({ name: "two", file, scale: 100, user_namespace: false, switches: ["sw"] });
    expect(report.hosts).toMatchObject([
      { name: "a", addresses: kAddresses, switch: "sw", rate: 10e9, processes: [] },
      { name: "b", switch: "sw" },
    ]);
    await looksRight(lab);
    expect(await lab.run("lab", "up", file)).toMatchObject({
      status: 1,
      stderr: "error: a lab called two is running\n  hint: weir lab down two, or another --name\n",
    });
    expect((await lab.up(file, "--name", "other")).name).toBe("other");
    expect(await lab.run("lab", "exec", "a", "--", "true")).toMatchObject({
      status: 1,
      stderr: "error: several labs have a host a\n  hint: say which: other.a, two.a\n",
    });
    expect(await lab.exec("other.a", "cat", "/proc/sys/kernel/hostname")).toBe("a\n");
    expect(await lab.run("lab", "down")).toMatchObject({ status: 1, stderr: expect.stringContaining("other, two") });
    expect(await lab.run("lab", "down", "--all")).toMatchObject({ status: 0, stdout: "other is down\ntwo is down\n" });
    await lab.nothingLeft();
    expect(readdirSync(lab.folder)).toEqual(["two.yaml"]);
    expect(await lab.run("lab", "down", "two")).toMatchObject({
      status: 0,
      stderr: "warning: no lab called two is up\n",
    });
  });

  it("routes between hosts, each on a link of its own", async () => {
    const lab = new Standing();
    await lab.up(lab.scenario(), "--set", "switch.forwarding=routed");
    for (const version of ["-4", "-6"]) {
      expect(await lab.exec("a", "ping", version, "-c", "1", "-w", "60", "b")).toContain("ttl=63");
      const { status, stdout } = await lab.run(
        "lab",
        "exec",
        "a",
        "--",
        "ping",
        version,
        "-t",
        "1",
        "-c",
        "1",
        "-w",
        "60",
        "b",
      );
      expect(status).toBe(1);
      expect(stdout).toMatch(/^From (10\.86\.0\.1|fd57:4549:5253::1) icmp_seq=1 Time (to live )?exceeded/m);
    }
    expect(await lab.run("lab", "down")).toMatchObject({ status: 0 });
    await lab.nothingLeft();
  });

  it("passes exit status, signals, folder and standard streams, and says what is not there", async () => {
    const lab = new Standing();
    await lab.up(lab.scenario());
    expect(await lab.run("lab", "exec", "a", "sh", "-c", "pwd; echo no >&2; exit 7")).toMatchObject({
      status: 7,
      stdout: `${process.cwd()}\n`,
      stderr: "no\n",
    });
    const sleeping = lab.start("lab", "exec", "b", "--", "sleep", "1000");
    await eventually(async () => {
      const [{ hosts } = { hosts: [] }] = await lab.ps();
      expect(hosts[1]?.processes).toMatchObject([{ command: "sleep" }]);
    });
    sleeping.child.kill("SIGTERM");
    expect(await sleeping.finished).toMatchObject({ status: 143 });
    for (const [args, message] of [
      [["exec", "c", "--", "true"], "error: no host c is up\n  hint: there are two.a, two.b\n"],
      [["exec", "a", "--", "no-such-program"], "error: cannot run no-such-program: there is no such program\n"],
      [["ps", "three"], "error: no lab called three is up\n  hint: up: two\n"],
    ] as const) {
      const { status, stderr } = await lab.run("lab", ...args);
      expect(stderr).toContain(message);
      expect(status).toBe(1);
    }
    await lab.run("lab", "down");
    await lab.nothingLeft();
  });

  it("tells its log, and weir show what its devices do", async () => {
    const lab = new Standing();
    await lab.up(lab.scenario());
    await lab.exec("a", "ping", "-4", "-c", "3", "-i", "0.1", "-w", "60", "b");
    const { stdout } = await lab.run("show", "counters", "two.sw", "--json");
    const { counters } = (JSON.parse(stdout) as { counters: { counters: { name: string; value: number }[] } }).counters;
    const sum = (name: string) => counters.reduce((total, one) => total + (one.name === name ? one.value : 0), 0);
    expect(sum("rx_packets")).toBeGreaterThanOrEqual(6);
    expect(sum("drop_no_route")).toBe(0);
    expect((await lab.run("lab", "logs")).stdout).toMatch(/info {2}up nodes=3 links=2 scale=100/);
    const following = lab.start("lab", "logs", "--follow");
    await eventually(() => expect(following.output()).toContain("up"));
    await lab.run("lab", "down");
    expect(await following.finished).toMatchObject({ status: 0 });
    await lab.nothingLeft();
  });
});

describeLive("a lab that ends", () => {
  it("by down takes programs that ignore signals, or have left their parents, with it", async () => {
    const lab = new Standing();
    await lab.up(lab.scenario());
    const stubborn = lab.start(
      "lab",
      "exec",
      "a",
      "--",
      "sh",
      "-c",
      'trap "" TERM HUP; echo set; sleep 1000; sleep 1000',
    );
    await eventually(() => expect(stubborn.output()).toContain("set"));
    await lab.exec("b", "sh", "-c", "sleep 1000 > /dev/null 2>&1 < /dev/null &");
    expect(await lab.run("lab", "down")).toMatchObject({ status: 0, stdout: "two is down\n" });
    expect((await stubborn.finished).status).toBe(137);
    await lab.nothingLeft();
  });

  it("by SIGKILL of its process takes everything with it, and the next one has its name", async () => {
    const lab = new Standing();
    const file = lab.scenario();
    const { pid } = await lab.up(file);
    const program = lab.start("lab", "exec", "a", "--", "sh", "-c", "echo here; sleep 1000");
    await eventually(() => expect(program.output()).toContain("here"));
    process.kill(pid, "SIGKILL");
    expect((await program.finished).status).toBe(137);
    await lab.nothingLeft();
    expect(await lab.ps()).toEqual([]);
    await lab.up(file);
    await lab.run("lab", "down");
    await lab.nothingLeft();
  });

  it("goes on without a program that is killed, and ends with process 1 of a host", async () => {
    const lab = new Standing();
    const { hosts } = await lab.up(lab.scenario());
    const program = lab.start("lab", "exec", "a", "--", "sh", "-c", "echo here; exec sleep 1000");
    await eventually(() => expect(program.output()).toContain("here"));
    const [{ hosts: now } = { hosts: [] }] = await lab.ps();
    process.kill(now[0]?.processes[0]?.pid ?? 0, "SIGKILL");
    expect((await program.finished).status).toBe(137);
    expect(await lab.exec("b", "true")).toBe("");
    process.kill(hosts[1]?.pid ?? 0, "SIGKILL");
    await lab.nothingLeft();
    expect(await lab.ps()).toEqual([]);
  });

  it("in the foreground tells stderr, whether or not that takes it, and ends by SIGTERM with 0", async () => {
    const lab = new Standing();
    const running = lab.start("lab", "up", lab.scenario(), "--foreground");
    await eventually(() => expect(running.output()).toContain('"msg":"up"'));
    expect((await lab.run("lab", "logs")).stderr).toContain("two runs in the foreground");
    // This acts like a disk that is full.
    running.child.stderr?.destroy();
    await lab.exec("a", "true");
    running.child.kill("SIGTERM");
    expect(await running.finished).toMatchObject({ status: 0 });
    await lab.nothingLeft();
    expect(existsSync(join(lab.folder, "two.lab"))).toBe(false);
  });

  it("that cannot be built says why, and leaves nothing", async () => {
    const lab = new Standing();
    const { status, stderr } = await lab.run("lab", "up", lab.scenario("two", "congestion: { algorithm: dctcp }"));
    expect({ status, stderr }).toMatchObject({ status: 2, stderr: expect.stringContaining("dctcp") });
    const long = await lab.run("lab", "up", lab.scenario("three"), "--name", "x".repeat(101));
    expect(long).toMatchObject({ status: 2, stderr: expect.stringContaining("100 printable characters") });
    await lab.nothingLeft();
    expect(readdirSync(lab.folder).sort()).toEqual(["three.yaml", "two.yaml"]);
  });
});

describeOrdinaryUser("weir lab up without root", () => {
  it("is the same, and leaves nothing", async () => {
    const lab = new Standing(kOrdinaryUser);
    expect(await lab.up(lab.scenario())).toMatchObject({ user_namespace: true });
    await looksRight(lab);
    const program = lab.start("lab", "exec", "a", "--", "sh", "-c", "echo here; sleep 1000");
    await eventually(() => expect(program.output()).toContain("here"));
    expect(await lab.run("lab", "down")).toMatchObject({ status: 0 });
    await program.finished;
    await lab.nothingLeft();
  });

  it("runs where no session gives it a folder for its sockets, and is found there", async () => {
    const unset = ["env", "-u", kControlVariable, "-u", "XDG_RUNTIME_DIR"];
    const lab = new Standing([...kOrdinaryUser, ...unset]);
    const name = `nowhere-${process.pid}`;
    expect(await lab.up(lab.scenario(), "--name", name)).toMatchObject({ name, user_namespace: true });
    expect((await lab.ps()).map((each) => each.name)).toContain(name);
    expect(await lab.exec(`${name}.a`, "cat", "/proc/sys/kernel/hostname")).toBe("a\n");
    expect(await lab.run("lab", "down", name)).toMatchObject({ status: 0, stdout: `${name} is down\n` });
    await lab.nothingLeft();
  });
});

describeUnless(
  liveObstacle() ?? lacking("perftest", "libibverbs-dev", "iperf3"),
  "programs in a lab that stays",
  () => {
    it("use the NIC of their host by libibverbs, several of them, with and without weir run, beside TCP", async () => {
      const lab = new Standing();
      const { hosts } = await lab.up(lab.scenario());
      const servers = [
        lab.start("lab", "exec", "b", "--", "ib_write_bw", "-n", "200", "-s", "4096", "-p", "18601"),
        lab.start(
          "lab",
          "exec",
          "b",
          "--",
          ...["env", "-u", "LD_PRELOAD", "-u", "IBV_DRIVERS", "-u", "SYSFS_PATH"],
          process.execPath,
          "dist/cli/main.js",
          "run",
          "--",
          "ib_write_bw",
          "-n",
          "200",
          "-s",
          "4096",
          "-p",
          "18602",
        ),
        lab.start("lab", "exec", "b", "--", "iperf3", "-s", "-1"),
      ];
      for (const port of [18601, 18602, 5201])
        await eventually(() => expect(listens(port, hosts[1]?.pid), `${port}`).toBe(true));
      const clients = await Promise.all([
        lab.run("lab", "exec", "a", "--", "ib_write_bw", "-n", "200", "-s", "4096", "-p", "18601", "b"),
        lab.run("lab", "exec", "a", "--", "ib_write_bw", "-n", "200", "-s", "4096", "-p", "18602", "b"),
        lab.run("lab", "exec", "a", "--", "iperf3", "-c", "b", "-n", "1M"),
      ]);
      for (const one of [...clients, ...(await Promise.all(servers.map(({ finished }) => finished)))])
        expect(one.status, one.stdout + one.stderr).toBe(0);
      expect(clients[0]?.stdout).toMatch(/^ 4096 +200 /m);
      const log = readFileSync(join(lab.folder, "two.lab", "log"), "utf8");
      expect(log.match(/"host":"[ab]".*"command":"ib_write_bw","msg":"program began"/g)).toHaveLength(4);
      await lab.run("lab", "down");
      await lab.nothingLeft();
    });
  },
);
