/** HPCC between two `weir nic` over a `weir switch`: the sender slows by what the switch writes into its packets, and by nothing else. */
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { count } from "../fixtures/counts.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import { network, portOf, startNic, startSwitch } from "./daemons.js";

const kLine = 1e9;
/** Rate of the receiver's link. Windows are of 5 ms, and few hosts are late by so much. */
const kSlow = "200Mbps";
const kHpcc = "transport: rc\ncongestion: { algorithm: hpcc, parameters: { hpcc_base_rtt: 5ms } }\n";

describeLive("weir nic under HPCC", () => {
  it("slows to the slowest link, which a switch with telemetry tells of, and hears when it tells no more", async () => {
    const net = await network();
    const ports = [portOf(net, "a", "rate: 1Gbps"), portOf(net, "b", `rate: ${kSlow}`)];
    const sw = await startSwitch(net, { ports, more: "ecn: { enabled: false }\ntelemetry: true\n" });
    await startNic(net, "b", { pairs: ["priority: 3"], more: kHpcc });
    const a = await startNic(net, "a", { pairs: ["send: { message: 64KB }"], more: kHpcc });
    await eventually(async () => expect(await count(a, "rx_telemetry")).toBeGreaterThan(500));
    await eventually(async () => {
      const [pair] = await ask(a.socket, "queue_pairs");
      // A window of 5 ms at the line rate would be 534 packets; nobody marks, and no CNP comes.
      expect(pair?.window).toBeLessThan(300);
      expect(pair?.rate).toBeLessThan(kLine / 2);
      expect(pair?.target_rate).toBe(pair?.rate);
    });
    expect(await count(a, "rx_telemetry_unwritten")).toBe(0);
    expect(await count(a, "rx_telemetry_malformed")).toBe(0);
    await eventually(async () => expect(await count(sw, "int_written")).toBeGreaterThan(500));
    expect(await count(a, "rp_cnp_handled")).toBe(0);
    sw.write("ecn: { enabled: false }\n");
    sw.child.kill("SIGHUP");
    await eventually(async () => expect(await count(a, "rx_telemetry_unwritten")).toBeGreaterThan(0));
  });
});
