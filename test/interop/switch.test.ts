/** Two stock Linux guests with Soft-RoCE talk through `weir switch`, with ECN marking and PFC on: it is a switch to them. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { CounterValue } from "../../src/daemon/protocol.js";
import { describeInterop } from "./capability.js";
import { exchange, inGuest, perftest } from "./exchange.js";
import type { Guest } from "./guest.js";
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

let network: InteropNetwork;
let bridge: SwitchDaemon;
let a: Guest;
let b: Guest;

/** The sum of a counter over the labels that `where` leaves open. */
function total(counters: CounterValue[], name: string, where: Record<string, string> = {}): number {
  return counters
    .filter(
      (counter) =>
        counter.name === name && Object.entries(where).every(([key, value]) => counter.labels[key] === value),
    )
    .reduce((sum, { value }) => sum + value, 0);
}

describeInterop("Soft-RoCE guests through weir switch", () => {
  beforeAll(async () => {
    network = await InteropNetwork.create();
    [a, b] = (await network.guests(2)) as [Guest, Guest];
    bridge = await network.switch(["tap1", "tap2"], kPort, kSwitch);
  });
  afterAll(() => network?.close());

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
    const { client } = await perftest(inGuest(a, command), inGuest(b, `${command} ${ipv4(1)}`), 120);
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

  it("drops nothing all the while", async () => {
    const counters = await bridge.counters();
    const lost = counters.filter(({ name, value }) => /drop|^host_/.test(name) && value > 0);
    expect(lost.map(({ name, labels, value }) => ({ name, labels, value }))).toEqual([]);
  });
});
