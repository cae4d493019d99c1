/** Programs with paths of their own to the wire (`programs: { direct: true }`): what the daemon still knows of them, and their end. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { ask } from "../../src/device/control_client.js";
import type { LabNetwork } from "../../src/host/veth.js";
import { endWithTest } from "../end_with_test.js";
import { count } from "../fixtures/counts.js";
import { lacking } from "../needs.js";
import { describeUnless, itUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { liveObstacle } from "./capability.js";
import { type Daemon, network, weir } from "./daemons.js";
import { begin, fabric, pair, pidOf, run } from "./program_runs.js";
import { folder } from "./weir.js";

const direct = (last: number) => `address: 10.66.0.${last}\nprograms: { direct: true }\n`;
const nics = () => fabric({ fields: direct });
const kEndless = ["ib_write_bw", "-D", "300"];

const pairsOf = ({ socket }: Daemon) => ask(socket, "queue_pairs");
const moves = (nic: Daemon) =>
  eventually(async () => expect((await pairsOf(nic))[0]?.counters?.tx_packets ?? 0).toBeGreaterThan(0));

/** Sends PFC frames for all priorities by the switch's end of a host's link: each lasts for 33 ms at 1 Gb/s, and there are a hundred in a second. */
function pauseByTheSwitch(net: LabNetwork, host: string): ChildProcess {
  const program = `import socket, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("${host}", 0))
frame = bytes.fromhex("0180c2000001" + "020000000099" + "8808" + "0101" + "00ff" + 8 * "ffff").ljust(60, b"\\0")
while True:
    s.send(frame)
    time.sleep(0.01)
`;
  const child = spawn("nsenter", [`--net=${net.namespace("sw").path}`, "python3", "-c", program], { stdio: "inherit" });
  endWithTest(child);
  return child;
}

describeUnless(liveObstacle() ?? lacking("perftest"), "programs with paths of their own", () => {
  it("move their bytes by these, and the daemon tells of every packet", async () => {
    const { a, b } = await nics();
    await pair({ a, b }, ["ib_write_bw", "-s", "4096", "-n", "1000", "-m", "1024", "-Q", "1"]);
    // What a lost packet has sent again is there twice.
    await eventually(async () => expect(await count(b, "rx_write_requests")).toBe(1000));
    const again = await count(a, "retransmitted");
    await eventually(async () => expect(await count(a, "tx_packets")).toBe(4 * 1000 + again));
    const acknowledgements = await count(b, "tx_packets");
    expect(acknowledgements).toBeGreaterThan(0);
    // The others are of ARP.
    const arrived = async () => (await count(a, "rx_packets")) - (await count(a, "rx_punted"));
    await eventually(async () => expect(await arrived()).toBe(acknowledgements));
    for (const nic of [a, b]) {
      expect(await pairsOf(nic)).toEqual([]);
      expect(await count(nic, "drop_unknown_qp")).toBe(0);
    }
  });

  it("are seen with their queue pairs, rates and counts while they run", async () => {
    const { a, b } = await nics();
    const { client } = await begin({ from: a, to: b }, kEndless);
    await moves(a);
    const [own] = await pairsOf(a);
    expect(own).toMatchObject({ direct: true, transport: "rc", qp_state: "rts", program: { pid: pidOf(client) } });
    expect(own?.rate).toBeGreaterThan(0);
    expect(((own?.qpn ?? 0) >> 8) & 8, "a block that is lent").toBe(8);
    await eventually(async () => expect((await pairsOf(b))[0]?.counters?.rx_packets).toBeGreaterThan(0));
  });

  it("are captured, each packet once, both ways", async () => {
    const { a, b } = await nics();
    const file = join(folder(), "a.pcapng");
    const capture = weir("capture", "--socket", a.socket, "--write", file, "--json");
    await eventually(() => expect(a.log().some(({ msg }) => msg === "capture began")).toBe(true));
    // The program hears soon that somebody captures.
    await pair({ a, b }, ["ib_write_bw", "-s", "1024", "-n", "20", "-t", "1"]);
    await eventually(async () => expect(await count(b, "rx_write_requests")).toBe(20));
    await eventually(async () => expect(await ask(a.socket, "programs")).toEqual([]));
    capture.child.kill("SIGTERM");
    expect((await capture.finished).status).toBe(0);
    const bytes = readFileSync(file);
    // Opcode 0x0a: RDMA WRITE Only, behind UDP port 4791.
    let writes = 0;
    for (let at = bytes.indexOf("12b7", 0, "hex"); at >= 0; at = bytes.indexOf("12b7", at + 1, "hex")) {
      if (bytes[at + 6] === 0x0a) writes++;
    }
    expect(writes).toBe(20);
  });

  it("are beyond faults of the NIC: these are refused, and whoever begins after one goes by the daemon", async () => {
    const { a, b } = await nics();
    const fault = ["fault", "roce_a", "--socket", a.socket, "drop", "--nth", "1000000000"];
    const { server, client } = await begin({ from: a, to: b }, kEndless);
    await moves(a);
    const refused = await weir(...fault).finished;
    expect(refused.status).toBe(1);
    expect(refused.stderr).toContain("paths of their own, which no fault reaches");
    client.child.kill("SIGTERM");
    await client.ended;
    server.child.kill("SIGTERM");
    await server.ended;
    await eventually(async () => expect(await ask(a.socket, "programs")).toEqual([]));
    expect((await weir(...fault).finished).status).toBe(0);
    await begin({ from: a, to: b }, kEndless);
    await moves(a);
    expect((await pairsOf(a))[0]).toMatchObject({ direct: false });
    expect((await pairsOf(b))[0]).toMatchObject({ direct: true });
  });

  itUnless(lacking("python3"), "stop while their peer pauses them, and go on after it", async () => {
    const net = await network();
    const { a, b } = await fabric({ net, fields: direct });
    // 4.096 us x 2^22: acknowledgements are waited for however long a pause lasts.
    const { client } = await begin({ from: a, to: b }, [...kEndless, "-u", "22"]);
    await moves(a);
    const sent = async () => {
      const packets = (await pairsOf(a))[0]?.counters?.tx_packets;
      expect(packets, client.output()).toBeDefined();
      return packets ?? 0;
    };
    const pauses = pauseByTheSwitch(net, "a");
    // What stood still for so long was not merely slow: a program that sends all the time moves within it.
    await eventually(async () => {
      const before = await sent();
      await sleep(300);
      expect(await sent()).toBe(before);
    });
    expect(await count(a, "rx_prio_pause")).toBeGreaterThan(0);
    pauses.kill("SIGTERM");
    const before = await sent();
    await eventually(async () => expect(await sent()).toBeGreaterThan(before));
    expect(await count(a, "rx_prio_pause_duration")).toBeGreaterThan(100e6); // ns
    expect(client.child.exitCode).toBeNull();
  });

  it("are eight at most; others go by the daemon", async () => {
    const { a, b } = await nics();
    const idle = Array.from({ length: 8 }, () => run(a, "ibv_asyncwatch"));
    // The launcher hands a SIGTERM on; killed itself, it would leave its program behind.
    onTestFinished(async () => {
      for (const { child } of idle) child.kill("SIGTERM");
      await Promise.all(idle.map(({ ended }) => ended));
    });
    await eventually(async () => expect(await ask(a.socket, "programs")).toHaveLength(8));
    const { client } = await begin({ from: a, to: b }, kEndless);
    await moves(a);
    expect((await pairsOf(a))[0]).toMatchObject({ direct: false, program: { pid: pidOf(client) } });
  });

  it("give all back when they are killed, time and again, and their peers hear of it", async () => {
    const { a, b } = await nics();
    for (let round = 0; round < 5; round++) {
      // 4.096 us x 2^22, seven times over: two minutes.
      const { server, client } = await begin({ from: a, to: b }, [...kEndless, "-u", "22"]);
      await moves(a);
      process.kill(pidOf(server), "SIGKILL");
      const { status, output } = await client.ended;
      expect(status, output).not.toBe(0);
      expect(output).toContain("Failed status 11"); // IBV_WC_REM_OP_ERR
      await eventually(async () => expect(await ask(b.socket, "programs")).toEqual([]));
    }
    await pair({ a, b }, ["ib_write_bw", "-n", "100"]);
  });
});
