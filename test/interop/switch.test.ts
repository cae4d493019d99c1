/**
 * Two stock Linux guests with Soft-RoCE talk through `weir switch`, with ECN marking and PFC on: it is a switch to them. They
 * also talk with two NICs of Weir's, and those with each other.
 */
import { randomFillSync } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { connect, type Device, listen, openDevice } from "../../src/verbs/index.js";
import { kPingPort, pingServer } from "../../src/verbs/perf/ping.js";
import { total } from "../fixtures/counts.js";
import type { Guest } from "../guests/guest.js";
import { describeInterop } from "./describe_interop.js";
import { connected, exchange, inGuest, type Program } from "./exchange.js";
import { InteropNetwork, ipv4, ipv6, type SwitchDaemon } from "./network.js";

/** The priority of RoCE leaves slower than it comes, and slow enough that guests in emulation fill its queue. */
const kPort = "rate: 100Mbps, limits: { 3: { rate: 8Mbps } }";
/** Guests obey no PFC, so the headroom takes all that Soft-RoCE sends without an acknowledgement: 129 packets. */
const kSwitch = `ecn: { kmin: 5KB, kmax: 50KB, pmax: 100%, priorities: [3] }
pfc: { priorities: [3] }
buffer: { mode: static, threshold: 20KB, headroom: 400KB, priorities: 1 }`;
/** DSCP 26, which is priority 3 to the switch, and ECT(0). */
const kRoceTos = (26 << 2) | 2;
const kMessages = 40;
const kPings = 15;
const kBytes = 2 << 20;
/** Numbers of Weir's NICs. */
const kNics = [8, 9] as const;

let network: InteropNetwork;
let bridge: SwitchDaemon;
let a: Guest;
let b: Guest;
let nics: Device[] = [];

describeInterop("Soft-RoCE guests through weir switch", () => {
  beforeAll(async () => {
    network = await InteropNetwork.create();
    [a, b] = (await network.guests(2)) as [Guest, Guest];
    const ends = [];
    for (const number of kNics) ends.push(await network.nic(number));
    bridge = await network.switch(["tap1", "tap2", ...ends.map(({ port }) => port)], kPort, kSwitch);
    nics = await Promise.all(ends.map(({ device }) => openDevice({ ...device, rate: "100Mbps" })));
  });
  afterAll(async () => {
    for (const nic of nics) nic.close();
    await network?.close();
  });

  it.each([
    ["IPv4", ipv4(1)],
    ["IPv6", ipv6(1)],
  ])("rping verifies its data 200 times over %s", async (_, address) => {
    const { client } = await exchange(
      inGuest(a, `rping -s -a ${address} -C 200 -S 1000 -V`),
      inGuest(b, `rping -c -a ${address} -C 200 -S 1000 -V -v`),
    );
    expect(client.match(/^ping data: rdma-ping-\d+: /gm)).toHaveLength(200);
  });

  it.each(["send", "write", "read"])("ib_%s_bw moves its data with RDMA CM, and is marked", async (verb) => {
    const before = await bridge.counters();
    // -u: an acknowledgement may take a second, for an emulated guest may be kept waiting.
    const command = `ib_${verb}_bw -R -F -u 18 -T ${kRoceTos} -n ${kMessages} -s 65536`;
    const [from, to] = verb === "read" ? ["tap1", "tap2"] : ["tap2", "tap1"];
    // CE on the way to the receiver, as another program sees it.
    const capture = await network.capture(to, "udp port 4791 and ip[1] & 3 == 3");
    const { client } = await connected(inGuest(a, command), inGuest(b, `${command} ${ipv4(1)}`), 120);
    expect(client).toMatch(new RegExp(`^ 65536 +${kMessages} `, "m"));
    const after = await bridge.counters();
    const grown = (name: string, port: string) => {
      const where = { port, priority: "3" };
      return total(after, name, where) - total(before, name, where);
    };
    // 64 packets a message.
    expect(grown("queue_packets", to)).toBeGreaterThanOrEqual(kMessages * 64);
    const marked = grown("wred_ecn_marked_packets", to);
    expect(marked).toBeGreaterThan(kMessages);
    const { stdout, stderr } = await capture.interrupt();
    expect(stderr).toContain("\n0 packets dropped by kernel");
    expect(stdout.trim().split("\n")).toHaveLength(marked);
    // The guest that sends is told to pause, which Soft-RoCE knows nothing of.
    expect(grown("pfc_tx_transitions", from)).toBeGreaterThan(0);
  });

  it("ibv_ud_pingpong loses no datagram", async () => {
    const command = "ibv_ud_pingpong -e -g 1 -n 300 -s 1024";
    const { client } = await exchange(inGuest(a, command), inGuest(b, `${command} ${ipv4(1)}`));
    expect(client).toMatch(/^300 iters in /m);
  });

  it("TCP arrives whole, super-frames and all", async () => {
    const sender = `head -c 3000000 /dev/urandom >/tmp/data; sha256sum </tmp/data; nc ${ipv4(1)} 5001 </tmp/data`;
    // Its input stays open: nc takes the end of either direction for that of the connection.
    const receiver = "mkfifo /tmp/open; exec 3<>/tmp/open; nc -l -p 5001 <&3 | sha256sum";
    const { server, client } = await exchange(inGuest(a, receiver), inGuest(b, sender));
    expect(server).toMatch(/^[0-9a-f]{64} /);
    expect(server).toBe(client);
    expect(total(await bridge.counters(), "gso_segmented")).toBeGreaterThan(0);
  });

  it("rping to Weir: both are marked, Weir says so, obeys PFC, and the data is right", async () => {
    const [, nic] = nics as [Device, Device];
    const setting = "/tmp/configfs/rdma_cm/rxe0/ports/1/default_roce_tos";
    const mount = "mkdir /tmp/configfs; mount -t configfs none /tmp/configfs; mkdir /tmp/configfs/rdma_cm/rxe0";
    const { stdout } = await b.run(`${mount}; echo ${kRoceTos} >${setting}; cat ${setting}`);
    expect(stdout).toBe(`${kRoceTos}\n`);
    const before = await bridge.counters();
    const { client } = await exchange(
      pingedBy(nic),
      inGuest(b, `rping -c -a ${ipv4(kNics[1])} -C ${kPings} -S 60000 -V -v`),
      120,
    );
    expect(client.match(/^ping data: rdma-ping-\d+: /gm)).toHaveLength(kPings);
    const counters = nic.counters();
    expect(counters.get("np_ecn_marked_roce_packets")).toBeGreaterThan(kPings);
    expect(counters.get("np_cnp_sent")).toBeGreaterThan(0);
    // Soft-RoCE is marked as much, and says nothing.
    const after = await bridge.counters();
    const marked = { port: "tap2", priority: "3" };
    const name = "wred_ecn_marked_packets";
    expect(total(after, name, marked) - total(before, name, marked)).toBeGreaterThan(kPings);
    expect(counters.get("rp_cnp_handled")).toBe(0);
    expect(counters.get("rx_prio_pause")).toBeGreaterThan(0);
  });

  it("Weir to Weir next to rping: CNPs throttle, and the data is right", async () => {
    const [from, to] = nics as [Device, Device];
    const pings = exchange(pingedBy(to), inGuest(b, `rping -c -a ${ipv4(kNics[1])} -C ${kPings} -S 20000 -V`), 120);
    const domain = to.allocateProtectionDomain();
    const target = domain.registerMemory(kBytes);
    const attributes = { timeout: 18 };
    const stop = listen(to, kPingPort + 1, (request) => {
      const queuePair = domain.createQueuePair({ sendCompletions: to.createCompletionQueue() });
      void request.accept({ queuePair, attributes });
    });
    const own = from.allocateProtectionDomain();
    const source = own.registerMemory(kBytes);
    randomFillSync(Buffer.from(source.buffer));
    const queuePair = own.createQueuePair({ sendCompletions: from.createCompletionQueue() });
    const connection = await connect(from, { address: ipv4(kNics[1]), port: kPingPort + 1, queuePair, attributes });
    queuePair.postSend({ opcode: "rdma_write", local: { region: source }, remote: target.remote() });
    expect((await queuePair.sendCompletions.next()).status).toBe("success");
    expect(Buffer.from(target.buffer).equals(Buffer.from(source.buffer))).toBe(true);
    expect(from.counters().get("rp_cnp_handled")).toBeGreaterThan(0);
    await pings;
    await connection.disconnect();
    stop();
  });

  it("drops nothing all the while", async () => {
    const counters = await bridge.counters();
    const lost = counters.filter(({ name, value }) => /drop|^host_/.test(name) && value > 0);
    expect(lost.map(({ name, labels, value }) => ({ name, labels, value }))).toEqual([]);
  });
});

/** A NIC of Weir's in this process as the server of rping. */
function pingedBy(device: Device): Program {
  return (limit) => {
    const end = new AbortController();
    const signal = AbortSignal.any([end.signal, AbortSignal.timeout(limit * 1000)]);
    let ready = () => {};
    const listening = new Promise<void>((resolve) => {
      ready = resolve;
    });
    const finished = pingServer(device, kPingPort, signal, ready, () => {}).then(
      () => ({ status: 0, stdout: "" }),
      (error) => ({ status: 1, stdout: String(error) }),
    );
    return { finished, listening: () => listening, kill: () => end.abort() };
  };
}
