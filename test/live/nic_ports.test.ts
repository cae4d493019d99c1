/** A `weir nic` with two ports: two NICs of one process, on a switch between them, for traffic of its own and for programs. */
import { execFile } from "node:child_process";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { prepareLaunch } from "../../src/daemon/programs/launch.js";
import { ask } from "../../src/device/control_client.js";
import { findDevices } from "../../src/device/running.js";
import { endWithTest } from "../end_with_test.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import { freePort, metric, network, startSwitch, weir } from "./daemons.js";
import { folder } from "./weir.js";

describeLive("weir nic with two ports", () => {
  it("is a NIC at each, with one control socket and one page of metrics", async () => {
    const net = await network();
    const bridge = await startSwitch(net, {
      more: "lldp: { tx_interval: 1s }\ndcbx: true\npfc: { priorities: [4] }\n",
    });
    const path = folder();
    const [file, socket, port] = [join(path, "nic.yaml"), join(path, "roce.sock"), await freePort()];
    const write = (cap: string, other = "") =>
      writeFileSync(
        file,
        `name: roce
rate: 1Gbps
dcbx: true
lldp: { tx_interval: 1s }
programs: true
metrics: { port: ${port} }
control: ${socket}
ports:
  - interface: weir0
    namespace: ${net.namespace("a").path}
    address: 10.77.0.1
    peers: [{ name: other, address: 10.77.0.2 }]
    queue_pairs: [{ name: out, peer: other, send: { message: 1KB, rate: ${cap} } }]
  - interface: weir0
    namespace: ${net.namespace("b").path}
    address: 10.77.0.2
    dcbx: { willing: false }
    pfc: { priorities: [4, 5] }
    peers: [{ name: other, address: 10.77.0.1 }]
    queue_pairs: [{ name: in, peer: other }]
${other}`,
      );
    write("1Mbps");
    const daemon = weir("nic", "-c", file);
    await eventually(async () => expect((await ask(socket, "status")).devices).toEqual(["roce_0", "roce_1"]));

    // Requests are for one of them.
    const devices = await findDevices({ socket });
    expect(devices.map(({ name, kind, owner }) => [name, kind, owner])).toEqual([
      ["roce_0", "nic", "roce"],
      ["roce_1", "nic", "roce"],
    ]);
    await expect(ask(socket, "queue_pairs")).rejects.toThrow("roce has several devices, and queue_pairs is for one");
    const of = (device: string) => ({ device });
    expect((await ask(socket, "queue_pairs", of("roce_1"))).map(({ name }) => name)).toEqual(["in"]);

    // Traffic goes from one to the other, and each counts its own.
    const url = `http://127.0.0.1:${port}`;
    const received = () => metric(url, 'rdma_rx_packets_total{port="1",device="roce_1"}').catch(() => 0);
    const health = async () => (await (await fetch(`${url}/healthz`)).json()) as { status: string; name: string };
    await eventually(async () => expect(await received()).toBeGreaterThan(0));
    expect(await metric(url, 'weir_port_up{device="roce_0",port="weir0"}')).toBe(1);
    expect(await health()).toMatchObject({ name: "roce" });

    // Each port has its own DCBX: one takes the switch's PFC, the other keeps to its file.
    const pfc = async (device: string) => (await ask(socket, "qos", of(device))).pfc_priorities;
    await eventually(async () => expect(await pfc("roce_0")).toEqual([4]));
    expect(await pfc("roce_1")).toEqual([4, 5]);
    const neighbours = await ask(bridge.socket, "lldp");
    expect(neighbours.ports.map(({ neighbours: [first] }) => first?.system_name)).toEqual(["roce_0", "roce_1"]);

    // A file that one of them cannot have changes neither; another changes one.
    write("2Mbps", "    mtu: 1400\n");
    daemon.child.kill("SIGHUP");
    const logged = (text: string) => daemon.log().filter(({ msg }) => msg.startsWith(text));
    await eventually(async () => expect(logged("not reloaded")[0]?.error).toContain("mtu cannot change"));
    write("2Mbps");
    daemon.child.kill("SIGHUP");
    await eventually(async () => expect(logged("reloaded")).toHaveLength(1));

    // Programs see two devices.
    const { environment, files } = await prepareLaunch([], { folder: path });
    onTestFinished(() => rmSync(files, { recursive: true, force: true }));
    const env = { ...process.env, ...environment };
    const { stdout } = await promisify(execFile)("ibv_devinfo", [], { env });
    expect(stdout.match(/hca_id:\s*\S+/g)?.map((line) => line.split(/\s+/)[1])).toEqual(["roce_0", "roce_1"]);
    expect(stdout.match(/phys_port_cnt:\s*1/g)).toHaveLength(2);
    const pingpong = (device: string, ...more: string[]) =>
      promisify(execFile)(
        "ibv_rc_pingpong",
        ["-d", device, "-g", "0", "-p", "18642", "-n", "20", "-s", "64", ...more],
        {
          env,
          timeout: 20_000,
        },
      );
    const server = pingpong("roce_1");
    endWithTest(server.child);
    await eventually(async () => {
      const [one] = await ask(socket, "programs", of("roce_1"));
      expect(one?.command).toBe("ibv_rc_pingpong");
    });
    // The NIC knows it before it listens.
    const client = await eventually(() => pingpong("roce_0", "127.0.0.1"));
    expect(client.stdout).toContain("20 iters in");
    await server;

    daemon.child.kill("SIGTERM");
    expect((await daemon.finished).status).toBe(0);
    for (const left of ["roce.sock", "roce_0.verbs", "roce_0.rdma", "roce_1.verbs", "roce_1.rdma"]) {
      expect(existsSync(join(path, left))).toBe(false);
    }
  });
});
