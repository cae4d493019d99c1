/** Programs of librdmacm in virtual time: their connections, how these fail, and that all of it is the same each time. */
import { spawn } from "node:child_process";
import { expect } from "vitest";
import { endWithTest } from "../end_with_test.js";
import { lacking } from "../needs.js";
import { itUnless } from "../obstacles.js";
import { describeVirtual } from "./capability.js";
import { figures, run } from "./sim_programs_run.js";

const kNoRdmacm = lacking("rdmacm-utils");
/** A server on a, and a client on b that begins when it listens. */
const ofTwo = (server: string, client: string) => `  - { id: server, on: a, run: "${server}" }
  - { id: client, on: b, run: "${client}", start: 1ms }`;
const kFast = "{ rate: 100Gbps, delay: 1us, mtu: 4200 }";

/** Processors have something else to do until the test ends. */
function busy(processes: number): void {
  for (let i = 0; i < processes; i++) {
    const child = spawn("sh", ["-c", "while :; do :; done"], { stdio: "ignore" });
    endWithTest(child);
  }
}

describeVirtual("programs of librdmacm in virtual time", () => {
  itUnless(kNoRdmacm, "connect by messages that cross the network, and disconnect", async () => {
    const { programs, output } = await run(ofTwo("rping -s -v -C 2", "rping -c -a a -v -C 2"), kFast);
    expect(output("client.out")).toMatch(/^ping data: rdma-ping-0: ABC.*\nping data: rdma-ping-1: BCD.*\n$/);
    expect(output("server.err")).toContain("DISCONNECT EVENT");
    expect(programs).toMatchObject({ server: { status: 0 }, client: { status: 0 } });
    // Two hops there and back for a request and its answer, and as much to disconnect; pings take four each.
    expect(programs.client?.ended_s).toBeGreaterThan(1e-3 + 8e-6);
    expect(programs.client?.ended_s).toBeLessThan(2e-3);
  });

  itUnless(kNoRdmacm, "are waited for until they listen", async () => {
    const traffic = `  - { id: server, on: a, run: "sleep 0.25; rping -s -C 2", listens: 7174 }
  - { id: client, on: b, run: "rping -c -a a -C 2", after: server }`;
    const { programs } = await run(traffic, kFast);
    expect(programs).toMatchObject({ server: { status: 0 }, client: { status: 0 } });
    expect(programs.client?.started_s).toBeCloseTo(0.25, 4);
  });

  itUnless(kNoRdmacm, "are waited for although another program of their host has listened at that port", async () => {
    const traffic = `  - { id: first, on: a, run: "rping -s -C 2", listens: 7174 }
  - { id: early, on: b, run: "rping -c -a a -C 2", after: first }
  - { id: second, on: a, run: "sleep 0.25; rping -s -C 2", listens: 7174, start: 1s }
  - { id: late, on: b, run: "rping -c -a a -C 2", after: second }`;
    const { programs } = await run(traffic, kFast);
    expect(programs).toMatchObject({ first: { status: 0 }, early: { status: 0 }, second: { status: 0 } });
    expect(programs.late).toMatchObject({ status: 0, started_s: expect.closeTo(1.25, 4) });
  });

  itUnless(kNoRdmacm, "exchange datagrams, and messages by several connections at a time", async () => {
    const [datagrams, connections] = await Promise.all([
      run(ofTwo("udaddy -C 5", "udaddy -s a -C 5"), kFast),
      run(ofTwo("ucmatose -c 4", "ucmatose -s a -c 4"), kFast),
    ]);
    for (const { output } of [datagrams, connections])
      for (const name of ["server.out", "client.out"])
        expect(output(name)).toMatch(/data transfers complete\n(.*\n)*return status 0\n$/);
  });

  itUnless(kNoRdmacm, "stream by rsockets", async () => {
    const { output } = await run(ofTwo("rstream -S 4096 -I 5 -C 2", "rstream -s a -S 4096 -I 5 -C 2"), kFast);
    expect(output("client.out")).toMatch(/^custom +4k +2 +5 +80k /m);
  });

  itUnless(kNoRdmacm, "are told how a connection fails, by network and peer", async () => {
    const [nobody, unknown, killed] = await Promise.all([
      run(ofTwo("sleep 1", "ucmatose -s a")),
      run(ofTwo("sleep 1", "rping -c -a 10.87.0.77 -C 1")),
      run(ofTwo("rping -s & sleep 0.002; kill -KILL $!", "rping -c -a a -C 1000000")),
    ]);
    // IBTA's reason 8: nobody serves this port.
    expect(nobody.output("client.out")).toContain("RDMA_CM_EVENT_REJECTED, error: 8");
    expect(nobody.programs.client).toMatchObject({ status: 8 });
    expect(unknown.output("client.err")).toContain("RDMA_CM_EVENT_ADDR_ERROR, error -110");
    // rping waits for two seconds for an address.
    expect(unknown.programs.client).toMatchObject({ status: 255, ended_s: 2.001 });
    expect(killed.output("client.err")).toContain("DISCONNECT EVENT");
    expect(killed.programs.client?.ended_s).toBeLessThan(0.0021);
  });

  itUnless(lacking("perftest"), "measure by -R what they measure without", async () => {
    const options = "-R -n 20 --report_gbits";
    const { output } = await run(ofTwo(`ib_write_bw ${options}`, `ib_write_bw ${options} a`), kFast);
    const [bytes, iterations, , average] = figures(output("client.out"));
    expect([bytes, iterations]).toEqual([65_536, 20]);
    expect(average).toBeGreaterThan(93);
  });

  itUnless(kNoRdmacm, "say and do the same each time, on a busy machine, too", async () => {
    busy(2);
    const runs = [];
    for (let i = 0; i < 2; i++) runs.push(await run(ofTwo("rping -s -v -C 3", "rping -c -a a -v -C 3"), kFast));
    const said = runs.map(({ programs, output }) => [
      programs,
      ...["server.out", "server.err", "client.out", "client.err"].map(output),
    ]);
    expect(said[1]).toEqual(said[0]);
  });
});
