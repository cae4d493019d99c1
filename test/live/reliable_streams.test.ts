/** Queue pairs of `weir nic` with `transport: rc`: what is lost arrives all the same, and ends that were started again are found. */
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { count } from "../fixtures/counts.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import { type Daemon, network, portOf, startNic, startSwitch } from "./daemons.js";

const kMessages = 64;
const kMessage = 32_768;

const more = "transport: rc\n";
const pairOf = async ({ socket }: Daemon) => (await ask(socket, "queue_pairs"))[0];

describeLive("queue pairs with transport: rc", () => {
  it("bring every message once over a link that loses, doubles and reorders", async () => {
    const net = await network();
    const faults = "{ loss: 3%, duplicate: 1%, reorder: 1%, reorder_delay: 100us }";
    await startSwitch(net, { port: `rate: 1Gbps, impairment: ${faults}` });
    const b = await startNic(net, "b", { pairs: ["priority: 3"], more });
    const send = `send: { message: ${kMessage}B, bytes: ${kMessages * kMessage}B }`;
    const a = await startNic(net, "a", { pairs: [send], more });
    await eventually(async () => expect(await pairOf(a)).toMatchObject({ state: "finished" }));
    // What a daemon tells of its counters can be a moment old.
    await eventually(async () => {
      expect(await count(b, "rx_messages")).toBe(kMessages);
      expect(await count(a, "retransmitted")).toBeGreaterThan(0);
      expect(await count(b, "tx_acks")).toBeGreaterThan(0);
    });
  });

  it("slow down by marks that acknowledgements echo, with DCTCP", async () => {
    const net = await network();
    const ports = [portOf(net, "a", "rate: 1Gbps"), portOf(net, "b", "rate: 100Mbps")];
    await startSwitch(net, { ports, more: "ecn: { kmin: 20KB, kmax: 20KB, pmax: 100% }\n" });
    const dctcp = `${more}congestion: { algorithm: dctcp }\n`;
    const b = await startNic(net, "b", { pairs: ["priority: 3"], more: dctcp });
    const a = await startNic(net, "a", { pairs: ["send: { message: 32KB }"], more: dctcp });
    await eventually(async () => expect(await count(b, "ecn_marked")).toBeGreaterThan(1000));
    // Without echoes alpha would be a power of 15/16 by now, with the number of windows as exponent.
    expect((await pairOf(a))?.alpha).toBeGreaterThan(0.001);
    expect(a.log()).toContainEqual(expect.objectContaining({ msg: expect.stringContaining("echo marks") }));
  });

  it("complete at once what a switch trims, sprayed and under NSCC: all options of the transport together", async () => {
    const net = await network();
    const ports = [portOf(net, "a", "rate: 1Gbps"), portOf(net, "b", "rate: 100Mbps")];
    const lossy = [
      "pfc: { enabled: false }",
      "buffer: { total: 60KB, headroom: 0KB }",
      "ecn: { kmin: 5KB, kmax: 20KB, pmax: 100%, priorities: [0] }",
      "scheduler: { strict: [6], weights: { 0: 75, 5: 25 } }",
      "trimming: { enabled: true, priorities: [0], dscp: 40 }",
    ];
    const sw = await startSwitch(net, { ports, more: `${lossy.join("\n")}\n` });
    const all =
      "{ type: rc, recovery: selective-repeat, spraying: reps, reordering: 250, trim_naks: true, timeout: 16 }";
    const nscc = "congestion: { algorithm: nscc, parameters: { nscc_base_rtt: 5ms } }";
    const options = `transport: ${all}\ntrimmed_dscp: 40\npfc: { enabled: false }\n${nscc}\n`;
    const b = await startNic(net, "b", { pairs: ["priority: 0"], more: options });
    // So many that a machine on which the first of them come slowly, and are not trimmed, has time to fill the queue.
    const messages = 4 * kMessages;
    const send = `priority: 0, send: { message: ${kMessage}B, bytes: ${messages * kMessage}B }`;
    const a = await startNic(net, "a", { pairs: [send], more: options });
    await eventually(async () => expect(await pairOf(a)).toMatchObject({ state: "finished" }));
    await eventually(async () => {
      expect(await count(b, "rx_messages")).toBe(messages);
      expect(await count(sw, "trim_packets")).toBeGreaterThan(0);
      expect(await count(a, "trimmed_requests")).toBeGreaterThan(0);
    });
    expect(await count(b, "np_cnp_sent")).toBe(0);
  });

  it("wait for a peer that is gone, and go on when it is there again", async () => {
    const net = await network();
    await startSwitch(net);
    const first = await startNic(net, "b", { pairs: ["priority: 3"], more });
    const a = await startNic(net, "a", { pairs: ["send: { message: 32KB, rate: 50Mbps }"], more });
    await eventually(async () => expect(await count(first, "rx_messages")).toBeGreaterThan(0));
    first.child.kill("SIGKILL");
    await first.finished;
    await eventually(() =>
      expect(a.log()).toContainEqual(
        expect.objectContaining({ msg: "connection failed, tried again", queue_pair: "qp0" }),
      ),
    );
    const second = await startNic(net, "b", { pairs: ["priority: 3"], more });
    await eventually(async () => expect(await count(second, "rx_messages")).toBeGreaterThan(0));
    const connected = () => a.log().filter(({ msg }) => msg === "connected");
    await eventually(() => expect(connected()).toHaveLength(2));
  });
});
