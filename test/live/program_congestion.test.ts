/** Programs under congestion control by acknowledgements: the daemon's windows and rates hold what they send, and all of it arrives. */
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { liveObstacle } from "./capability.js";
import { network, portOf, startSwitch } from "./daemons.js";
import { begin, startNic } from "./program_runs.js";

const kRuns = 3;

describeUnless(liveObstacle() ?? lacking("perftest", "libibverbs-dev"), "programs under HPCC", () => {
  it("are held to what a slow link carries, by telemetry that they do not see", async () => {
    const net = await network();
    const ports = [portOf(net, "a", "rate: 1Gbps"), portOf(net, "b", "rate: 200Mbps")];
    await startSwitch(net, { ports, more: "ecn: { enabled: false }\ntelemetry: true\n" });
    const hpcc = "transport: rc\ncongestion: { algorithm: hpcc, parameters: { hpcc_base_rtt: 5ms } }\n";
    const fields = (last: number) => `address: 10.66.0.${last}\nprograms: true\n${hpcc}`;
    const nics = { a: await startNic(net, "a", fields), b: await startNic(net, "b", fields) };
    const command = ["ib_write_bw", "-n", "200", "-s", "65536", "-u", "18"];
    for (let run = 1; ; run++) {
      const { client } = await begin({ from: nics.a, to: nics.b }, command);
      await eventually(async () => {
        const [pair] = await ask(nics.a.socket, "queue_pairs");
        // A window of 5 ms at the line rate would be 534 packets.
        expect(pair?.window).toBeGreaterThan(0);
        expect(pair?.window).toBeLessThan(300);
        expect(pair?.rate).toBeLessThan(500e6);
      });
      const { status, output } = await client.ended;
      // On a busy machine perftest does not trust its clock, and tells no figures: then it is asked again.
      if (output.includes("Can't produce a report") && run < kRuns) continue;
      expect(status, output).toBe(0);
      return;
    }
  });
});
