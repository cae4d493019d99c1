/** UCX and libfabric in virtual time: their loops look at queues, sockets and memory, and some read a clock now and then. */
import { spawnSync } from "node:child_process";
import { expect } from "vitest";
import { lacking, pathOf } from "../needs.js";
import { itUnless } from "../obstacles.js";
import { describeVirtual } from "./capability.js";
import { run } from "./sim_programs_run.js";

const kLink = "{ rate: 100Gbps, delay: 1us, mtu: 4200 }";
/** A server on a, and a client on b. */
const ofTwo = (program: string, client: string, ready: string) => `  - { id: server, on: a, run: "${program}"${ready} }
  - { id: client, on: b, run: "${program} a ${client}", ${ready === "" ? "start: 1ms" : "after: server"} }`;

describeVirtual("middleware in virtual time", () => {
  itUnless(
    lacking("ucx-utils"),
    "is UCX, by its own choice of transports and by those of the NIC: hosts share no memory",
    async () => {
      // Where it was built with MPI, it takes itself for a rank of MPI if its input is no terminal.
      const { stdout: usage } = spawnSync(pathOf("ucx_perftest"), ["-h"], { encoding: "utf8" });
      const perftest = usage.includes("MPI mode") ? "ucx_perftest -P 0" : "ucx_perftest";
      const all = ["", "UCX_TLS=rc,ud ", "UCX_TLS=ud "].map(async (transports) => {
        const traffic = ofTwo(`${transports}${perftest}`, "-t tag_lat -n 500", ", listens: 13337");
        const { programs, output } = await run(traffic, kLink);
        expect(programs).toMatchObject({ server: { status: 0 }, client: { status: 0 } });
        // Two cables, and short frames.
        const [, half] = /^Final: +500 +([\d.]+)/m.exec(output("client.out")) ?? [];
        expect(Number(half)).toBeGreaterThan(2);
        expect(Number(half)).toBeLessThan(2.1);
      });
      await Promise.all(all);
    },
  );

  itUnless(lacking("libfabric-bin"), "is libfabric over connections and over datagrams", async () => {
    const all = ["verbs;ofi_rxm", "verbs;ofi_rxd"].map(async (provider) => {
      const { programs, output } = await run(ofTwo(`fi_pingpong -p '${provider}' -e rdm`, "", ""), kLink);
      expect(programs).toMatchObject({ server: { status: 0 }, client: { status: 0 } });
      expect(output("client.out")).toMatch(/^1m +10 +=10 /m);
    });
    await Promise.all(all);
  });
});
