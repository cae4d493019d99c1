/** Programs of others that share `weir nic`, the host's NIC: their identities, their shares, and the end of those that are killed. */
import { connect } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { count } from "../fixtures/counts.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import { type Daemon, daemon } from "./daemons.js";
import { begin, fabric, pair, pidOf, run, runBy } from "./program_runs.js";

const kGroup = 54_321;
const kNobody = 65_534;
/** Words that run a command as an ordinary user; all of them share a group. */
const as = (uid: number) => ["setpriv", `--reuid=${uid}`, `--regid=${kGroup}`, "--clear-groups", "--"];

const both = (last: number) => `address: [10.77.0.${last}, "fd77::${last}"]\nprograms: true\n`;
const moved = async ({ socket }: Daemon) =>
  (await ask(socket, "queue_pairs")).map(({ counters }) => counters?.tx_packets ?? 0);

describeLive("programs that share a NIC", () => {
  it("are named with their queue pairs, by weir show and to those who ask", async () => {
    const nics = await fabric({ fields: both });
    const { client } = await begin({ from: nics.a, to: nics.b }, ["ib_write_bw", "-x", "0", "-D", "60"]);
    await eventually(async () => expect((await moved(nics.a))[0]).toBeGreaterThan(0));
    const pid = pidOf(client);
    const [program] = await ask(nics.a.socket, "programs");
    expect(program).toMatchObject({ pid, uid: process.getuid?.(), command: "ib_write_bw", queue_pairs: 1 });
    expect(program?.tx_packets).toBeGreaterThan(0);
    const [pair] = await ask(nics.a.socket, "queue_pairs");
    expect(pair).toMatchObject({ transport: "rc", qp_state: "rts", peer: "10.77.0.2", program: { pid } });
    expect(pair?.name).toBe(`ib_write_bw/${pair?.qpn}`);
    const told = nics.a.log().find(({ msg }) => msg === "program began");
    expect(told).toMatchObject({ program: pid, command: "ib_write_bw" });
  });

  it.each(["0", "1"])("reach each other from GID %s: IPv4 by ARP, IPv6 by neighbour discovery", async (gid) => {
    const nics = await fabric({ fields: both });
    await pair(nics, ["ibv_rc_pingpong", "-g", gid, "-n", "100", "-c"]);
    const datagrams = await begin({ from: nics.a, to: nics.b }, [
      "ibv_ud_pingpong",
      "-g",
      gid,
      "-n",
      "100",
      "-s",
      "1024",
    ]);
    expect((await datagrams.client.ended).status, datagrams.client.output()).toBe(0);
  });

  it("reach each other in a VLAN, and not from one to another", async () => {
    const tagged = await fabric({ fields: (last) => `${both(last)}vlan: 100\n` });
    await pair(tagged, ["ibv_rc_pingpong", "-g", "0", "-n", "100"]);
    const apart = await fabric({ fields: (last) => `${both(last)}vlan: ${last}00\n` });
    const other = await begin({ from: apart.a, to: apart.b }, ["ibv_rc_pingpong", "-g", "0", "-n", "100"]);
    expect((await other.client.ended).status).not.toBe(0);
    // The server looks for the client first.
    await eventually(async () => expect(await count(apart.a, "drop_vlan")).toBeGreaterThan(0));
  });

  it("both go on, each at a rate of its own under DCQCN", async () => {
    const nics = await fabric({ fields: both });
    for (let i = 0; i < 2; i++) await begin({ from: nics.a, to: nics.b }, ["ib_write_bw", "-x", "0", "-D", "60"]);
    await eventually(async () => expect((await moved(nics.a)).filter((packets) => packets > 0)).toHaveLength(2));
    const before = await moved(nics.a);
    await eventually(async () => {
      const after = await moved(nics.a);
      for (const [i, packets] of after.entries()) expect(packets).toBeGreaterThan((before[i] ?? 0) + 1000);
    });
    const pairs = await ask(nics.a.socket, "queue_pairs");
    expect(new Set(pairs.map(({ program }) => program?.pid)).size).toBe(2);
    for (const { alpha, rate } of pairs) {
      expect(alpha).not.toBeNull();
      expect(rate).toBeGreaterThan(0);
    }
  });

  it("tell their peers at once when they are killed, whatever those would wait for by themselves", async () => {
    const nics = await fabric({ fields: both });
    // 4.096 us x 2^22, seven times over: two minutes.
    const command = ["ib_write_bw", "-x", "1", "-D", "300", "-u", "22"];
    const { server, client } = await begin({ from: nics.a, to: nics.b }, command);
    await eventually(async () => expect((await moved(nics.a))[0]).toBeGreaterThan(0));
    process.kill(pidOf(server), "SIGKILL");
    const { status, output } = await client.ended;
    expect(status, output).not.toBe(0);
    expect(output).toContain("Failed status 11"); // IBV_WC_REM_OP_ERR
    await eventually(async () => expect(await count(nics.b, "tx_naks")).toBeGreaterThan(0));
    expect(await ask(nics.b.socket, "queue_pairs")).toEqual([]);
    expect(await ask(nics.b.socket, "programs")).toEqual([]);
  });

  it("are of the group that the NIC is for, and nobody else", async () => {
    const nics = await fabric({ fields: (last) => `address: 10.77.0.${last}\nprograms: { group: ${kGroup} }\n` });
    const ours = runBy({ as: as(12_345) }, nics.a, "ibv_devinfo");
    expect((await ours.ended).status, ours.output()).toBe(0);
    const other = ["setpriv", `--reuid=${kNobody}`, `--regid=${kNobody}`, "--clear-groups", "--"];
    const refused = await runBy({ as: other }, nics.a, "ibv_devinfo").ended;
    expect(refused.status).not.toBe(0);
    expect(refused.output).toContain("does not answer");
  });

  it("find the NIC again after its daemon was killed and started anew", async () => {
    const nics = await fabric({ fields: both });
    nics.a.child.kill("SIGKILL");
    await nics.a.finished;
    const again = await daemon("nic", nics.a.file, nics.a.socket);
    await pair({ a: again, b: nics.b }, ["ibv_rc_pingpong", "-g", "0", "-n", "100"]);
  });

  it("do not hold up who asks the daemon when one floods its socket", async () => {
    const { a } = await fabric({ fields: both });
    const flood = connect(a.socket.replace(/\.sock$/, ".verbs"));
    onTestFinished(() => void flood.destroy());
    flood.on("error", () => {});
    flood.write(Buffer.alloc(8_000_000));
    for (let i = 0; i < 20; i++) expect(await ask(a.socket, "status")).toMatchObject({ kind: "nic" });
    const devices = await run(a, "ibv_devinfo").ended;
    expect(devices.status, devices.output).toBe(0);
  });
});
