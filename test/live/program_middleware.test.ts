/** Middleware on which other programs are built: UCX, libfabric; and qperf, which is neither of perftest nor of rdma-core. */
import { expect } from "vitest";
import { lacking } from "../needs.js";
import { itUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import { freePort, network } from "./daemons.js";
import { fabric, type Host, type Nics, pair, run } from "./program_runs.js";

const kServer = "10.66.0.2";

/** Runs programs in the hosts' own namespaces, where TCP reaches the server at the address that its NIC has. */
async function hosts() {
  const net = await network();
  const nics: Nics = await fabric({ net });
  const on = (host: Host, ...command: string[]) =>
    run(nics[host], "nsenter", `--net=${net.namespace(host).path}`, ...command);
  return { nics, on };
}

describeLive("middleware on programs' NICs", () => {
  itUnless(
    lacking("ucx-utils"),
    "is UCX: messages, PUT, GET and atomics over connections, and all over datagrams",
    async () => {
      const nics = await fabric();
      // Where it was built with MPI, it takes itself for a rank of MPI if its input is no terminal.
      const { output: usage } = await run(nics.a, "ucx_perftest", "-h").ended;
      const alone = usage.includes("MPI mode") ? ["-P", "0"] : [];
      const perftest = (transports: string, test: string, bytes: number) =>
        pair(nics, [
          ...["env", `UCX_TLS=${transports},self`, "ucx_perftest", ...alone],
          ...["-t", test, "-n", "100", "-s", String(bytes)],
        ]);
      for (const [test, bytes] of [
        ["tag_lat", 8],
        ["tag_bw", 300_000],
        ["ucp_am_bw", 5_000],
        ["ucp_put_lat", 4_000],
        ["ucp_get", 20_000],
        ["ucp_fadd", 8],
      ] as const) {
        expect(await perftest("rc,ud", test, bytes), test).toMatch(/Final: +100 /);
      }
      expect(await perftest("ud", "tag_lat", 5_000)).toMatch(/Final: +100 /);
    },
  );

  for (const [provider, kind] of [
    ["verbs", "msg"],
    ["verbs;ofi_rxm", "rdm"],
  ] as const) {
    itUnless(lacking("libfabric-bin"), `is libfabric: ${provider}`, async () => {
      const { on } = await hosts();
      const port = String(await freePort());
      const server = on("b", "fi_pingpong", "-p", provider, "-e", kind, "-c", "-B", port);
      // A client is refused until the server listens.
      await eventually(async () => {
        const client = await on("a", "fi_pingpong", "-p", provider, "-e", kind, "-c", "-P", port, kServer).ended;
        expect(client.output).toMatch(/^1m +10 +=10 /m);
      });
      expect(await server.ended).toMatchObject({ status: 0 });
    });
  }

  itUnless(lacking("qperf"), "is qperf, which verifies what it got", async () => {
    const { on } = await hosts();
    const port = String(await freePort());
    const server = on("b", "qperf", "-lp", port);
    const ask = (...tests: string[]) => on("a", "qperf", "-lp", port, "-cm", "1", "-t", "1", kServer, ...tests).ended;
    await eventually(async () => expect(await ask("conf")).toMatchObject({ status: 0 }));
    const tests = ["rc_lat", "rc_rdma_write_lat", "rc_rdma_read_lat", "ver_rc_compare_swap", "ver_rc_fetch_add"];
    const { output, status } = await ask(...tests);
    expect(status, output).toBe(0);
    expect(output.match(/(latency|msg_rate) += +[1-9]/g), output).toHaveLength(tests.length);
    await ask("quit");
    await server.ended;
  });
});
