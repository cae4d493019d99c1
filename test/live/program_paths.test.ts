/** Programs with paths of their own to the wire (`programs: { direct: true }`): what the daemon still knows of them, and their end. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { count } from "../fixtures/counts.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { liveObstacle } from "./capability.js";
import { type Daemon, weir } from "./daemons.js";
import { begin, fabric, pair, pidOf, run } from "./program_runs.js";
import { folder } from "./weir.js";

const direct = (last: number) => `address: 10.66.0.${last}\nprograms: { direct: true }\n`;
const nics = () => fabric({ fields: direct });
const kEndless = ["ib_write_bw", "-D", "300"];

const pairsOf = ({ socket }: Daemon) => ask(socket, "queue_pairs");
const moves = (nic: Daemon) =>
  eventually(async () => expect((await pairsOf(nic))[0]?.counters?.tx_packets ?? 0).toBeGreaterThan(0));

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
