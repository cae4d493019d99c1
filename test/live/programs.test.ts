/** Programs of others on `weir nic`, as they are: Debian's ibverbs-utils and perftest on two daemons with a switch between them. */
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import type { Daemon } from "./daemons.js";
import { begin, fabric, pair, pidOf, run } from "./program_runs.js";

const queuePairs = async ({ socket }: Daemon) => (await ask(socket, "queue_pairs")).length;

describeLive("programs on libibverbs", () => {
  it("find the NIC", async () => {
    const nics = await fabric();
    const { status, output } = await run(nics.a, "ibv_devinfo", "-v").ended;
    expect(status, output).toBe(0);
    expect(output).toMatch(/hca_id:\s+roce_a/);
    expect(output).toMatch(/state:\s+PORT_ACTIVE/);
    expect(output).toMatch(/link_layer:\s+Ethernet/);
    expect(output).toMatch(/GID\[ {2}0\]:\s+::ffff:10\.66\.0\.1, RoCE v2/);
  });

  it("exchange messages with the bytes that they sent, by polling and by events", async () => {
    const nics = await fabric();
    await pair(nics, ["ibv_rc_pingpong", "-g", "0", "-n", "200", "-c"]);
    await pair(nics, ["ibv_rc_pingpong", "-g", "0", "-n", "200", "-c", "-e"]);
    await pair(nics, ["ibv_ud_pingpong", "-g", "0", "-n", "200", "-s", "1024"]);
    // Two programs are on one NIC, whose frames no link brings back.
    await pair({ a: nics.a, b: nics.a }, ["ibv_rc_pingpong", "-g", "0", "-n", "200", "-c"]);
    // All objects that they had are given back.
    expect([await queuePairs(nics.a), await queuePairs(nics.b)]).toEqual([0, 0]);
  });

  it.each(["ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw"])("%s runs as it is", async (program) => {
    const nics = await fabric();
    expect(await pair(nics, [program, "-x", "0", "-n", "100"])).toMatch(/^\s*(65536|8)\s+100\s/m);
  });

  it("give everything back when they are killed", async () => {
    const nics = await fabric();
    const { server, client } = await begin({ from: nics.a, to: nics.b }, ["ib_write_bw", "-x", "0", "-D", "60"]);
    await eventually(async () => {
      const [pair] = await ask(nics.a.socket, "queue_pairs");
      expect(pair?.counters?.tx_packets).toBeGreaterThan(0);
    });
    process.kill(pidOf(client), "SIGKILL");
    expect((await client.ended).status).toBe(128 + 9);
    await eventually(async () => expect(await queuePairs(nics.a)).toBe(0));
    await server.ended;
    await eventually(async () => expect(await queuePairs(nics.b)).toBe(0));
  });

  it("end with an error, and do not hang, when the daemon is killed", async () => {
    const nics = await fabric();
    const { server, client } = await begin({ from: nics.a, to: nics.b }, ["ib_write_bw", "-x", "0", "-D", "60"]);
    await eventually(async () => expect(await queuePairs(nics.a), client.output() + server.output()).toBe(1));
    nics.a.child.kill("SIGKILL");
    expect((await client.ended).status).toBe(1);
    expect((await server.ended).status).not.toBe(0);
  });
});
