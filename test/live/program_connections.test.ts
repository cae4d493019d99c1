/** Programs of others on librdmacm, as they are: Debian's rdmacm-utils, and sockets of librspreload. */
import { createHash, randomBytes } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { lacking } from "../needs.js";
import { describeUnless, itUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { connectedAtLast, refused } from "../rdma_cm.js";
import { liveObstacle } from "./capability.js";
import { type Daemon, network } from "./daemons.js";
import { type Ended, fabric, type Nics, run, runBy } from "./program_runs.js";
import { folder } from "./weir.js";

const kServer = "10.66.0.2";

/** Runs a client on a whose server on b runs and may not listen yet: it is started anew as long as it is refused. */
const talking = (nics: Nics, ...client: readonly string[]): Promise<Ended> =>
  eventually(async () => {
    const ended = await run(nics.a, ...client).ended;
    expect(refused(ended), ended.output).toBe(false);
    return ended;
  });

/** Runs a server on b and its client on a; both have to end well, but for servers that only `serve`, until they are told to end. */
async function pair(nics: Nics, server: readonly string[], client: readonly string[], serves = false): Promise<string> {
  const ended = await connectedAtLast(async (lead) => {
    const serving = run(nics.b, ...server);
    await delay(lead);
    const asking = await run(nics.a, ...client).ended;
    if (serves || asking.status !== 0) serving.child.kill("SIGTERM");
    return { server: await serving.ended, client: asking };
  }, serves);
  return ended.client.output;
}

const queuePairs = async ({ socket }: Daemon) => (await ask(socket, "queue_pairs")).length;
/** Waits until its only queue pair has sent. */
async function talks({ socket }: Daemon): Promise<void> {
  const [pair] = await ask(socket, "queue_pairs");
  expect(pair?.counters?.tx_packets).toBeGreaterThan(0);
}
const hash = (path: string) => createHash("sha256").update(readFileSync(path)).digest("hex");

/** Library of Debian's librdmacm1 that makes sockets of programs into those of librdmacm. */
function preload(): string {
  const folders = readdirSync("/usr/lib").map((name) => join("/usr/lib", name, "rsocket"));
  const [found] = folders.filter((path) => {
    try {
      return readdirSync(path).includes("librspreload.so");
    } catch {
      return false;
    }
  });
  return join(found ?? "", "librspreload.so");
}

describeUnless(liveObstacle() ?? lacking("rdmacm-utils"), "programs on librdmacm", () => {
  it("have connections, and the bytes that were sent", async () => {
    const nics = await fabric();
    const pinged = await pair(
      nics,
      ["rping", "-s", "-a", kServer, "-V", "-C", "1000"],
      ["rping", "-c", "-a", kServer, "-v", "-V", "-C", "1000"],
    );
    // Text on its other output may cut a line of these in two.
    expect(pinged.match(/ping data: rdma-ping-\d+: /g)?.length).toBeGreaterThanOrEqual(998);
    // The two ends are on one NIC.
    await pair({ a: nics.b, b: nics.b }, ["rping", "-s", "-C", "3"], ["rping", "-c", "-a", kServer, "-V", "-C", "3"]);
    await pair(nics, ["ucmatose", "-c", "10"], ["ucmatose", "-s", kServer, "-c", "10"]);
    await pair(nics, ["rdma_server"], ["rdma_client", "-s", kServer]);
    expect([await queuePairs(nics.a), await queuePairs(nics.b)]).toEqual([0, 0]);
  });

  itUnless(lacking("perftest"), "have connections of perftest, which meets its peer so", async () => {
    const nics = await fabric();
    for (const program of ["ib_write_bw", "ib_send_lat"]) {
      const command = [program, "-R", "-n", "100"];
      await pair(nics, command, [...command, kServer]);
    }
  });

  it("have datagrams, and many connections", async () => {
    const nics = await fabric();
    await pair(nics, ["udaddy", "-c", "10"], ["udaddy", "-s", kServer, "-c", "10"]);
    await pair(nics, ["cmtime"], ["cmtime", "-s", kServer, "-c", "50"], true);
  });

  itUnless(lacking("iperf", "librdmacm1"), "have sockets, also those that know nothing of them", async () => {
    const net = await network();
    const nics = await fabric({ net });
    const small = ["-S", "65536", "-I", "20", "-C", "5"];
    await pair(nics, ["rstream", ...small], ["rstream", "-s", kServer, ...small]);
    await pair(nics, ["riostream", ...small], ["riostream", "-s", kServer, ...small]);
    const path = folder();
    const [from, to] = [join(path, "from"), join(path, "to")];
    writeFileSync(from, randomBytes(8 << 20));
    await pair(nics, ["rcopy"], ["rcopy", from, `${kServer}:${to}`], true);
    expect(hash(to)).toBe(hash(from));
    // Its datagrams begin on UDP, and so run where the kernel has the address, too. A client that was answered late, and so asked
    // twice, asks on with the number of the answer that it took last, for ever: such a one begins anew.
    const [onA, onB] = (["a", "b"] as const).map((host) => ["nsenter", `--net=${net.namespace(host).path}`]);
    const datagrams = ["-S", "1000", "-C", "20"];
    await pair(
      nics,
      [...(onB as string[]), "udpong", "-b", kServer, ...datagrams],
      [...(onA as string[]), "timeout", "20", "udpong", "-s", kServer, ...datagrams],
      true,
    );
    // While nobody listens yet, librspreload asks the kernel, which must know nobody but these two.
    const env = { LD_PRELOAD: preload() };
    const server = runBy({ env }, nics.b, ...(onB as string[]), "iperf", "-s");
    await eventually(async () => {
      const client = runBy({ env }, nics.a, ...(onA as string[]), "iperf", "-c", kServer, "-n", "4M");
      expect((await client.ended).output).toMatch(/4\.0+ MBytes/);
    });
    await eventually(() => expect(server.output()).toMatch(/4\.0+ MBytes/));
  });

  it("are refused where nobody listens, and hear at once of a peer that is killed", async () => {
    const nics = await fabric();
    const refused = await run(nics.a, "rping", "-c", "-a", kServer, "-C", "1").ended;
    expect(refused.status).not.toBe(0);
    expect(refused.output).toContain("RDMA_CM_EVENT_REJECTED, error 8");
    const silent = await run(nics.a, "rping", "-c", "-a", "10.66.0.77", "-C", "1").ended;
    expect(silent.output).toContain("RDMA_CM_EVENT_ADDR_ERROR");

    const server = run(nics.b, "sh", "-c", "echo $$; exec rping -s");
    const client = talking(nics, "rping", "-c", "-a", kServer, "-v");
    await eventually(() => talks(nics.b));
    process.kill(Number.parseInt(server.output(), 10), "SIGKILL");
    // It learns of the end by a DREQ, or by the NAK to its request, whichever is first.
    expect((await client).output).toMatch(/DISCONNECT EVENT|cq completion failed status 11/);
    await eventually(async () => expect([await queuePairs(nics.a), await queuePairs(nics.b)]).toEqual([0, 0]));
  });

  it("end with an error, and do not hang, when the daemon is killed", async () => {
    const nics = await fabric();
    const server = run(nics.b, "rping", "-s");
    // Its peer may wait for ever, as it would for a host that is gone.
    void talking(nics, "rping", "-c", "-a", kServer);
    await eventually(async () => expect(await queuePairs(nics.b)).toBe(1));
    nics.b.child.kill("SIGKILL");
    expect((await server.ended).status).not.toBe(0);
  });
});
