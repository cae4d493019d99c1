/** The example program of verbs, as its comment has it, on the package as it was built. */
import { type ChildProcess, spawn } from "node:child_process";
import { expect, it } from "vitest";
import { LabNetwork } from "../../src/host/veth.js";
import { kRoot } from "../command.js";
import { kPatienceMs } from "../limits.js";
import { describeLive } from "./capability.js";

describeLive("examples/remote-write.mjs", () => {
  it("writes remote memory and reads it back", async () => {
    const hosts = ["red", "blue"];
    const network = await LabNetwork.create(
      hosts.map((name) => ({ name, role: "host" as const })),
      [{ from: "red", to: "blue", mtu: 1500 }],
    );
    const children: ChildProcess[] = [];
    const start = (host: string, ...args: string[]) => {
      const enter = [`--net=${network.namespace(host).path}`, "--", process.execPath, "examples/remote-write.mjs"];
      const child = spawn("nsenter", [...enter, ...args], { cwd: kRoot, timeout: kPatienceMs });
      children.push(child);
      let output = "";
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding("utf8").on("data", (text) => (output += text));
      return new Promise<{ status: number | null; output: string }>((resolve) =>
        child.on("close", (status) => resolve({ status, output })),
      );
    };
    try {
      const server = start("red", "server", "weir0", "10.0.0.1/24");
      // The client gives up when it asks too early.
      let client = await start("blue", "client", "weir0", "10.0.0.2/24", "10.0.0.1");
      const until = Date.now() + kPatienceMs;
      while (Date.now() < until && /does not answer|nothing listens/.test(client.output)) {
        client = await start("blue", "client", "weir0", "10.0.0.2/24", "10.0.0.1");
      }
      expect(client).toEqual({
        status: 0,
        output: 'client: rdma_write: success\nclient: rdma_read: success\nclient: read back "Hello, remote memory!"\n',
      });
      expect(await server).toEqual({
        status: 0,
        output: 'server: 10.0.0.2 is connected\nserver: somebody wrote "Hello, remote memory!" into my memory\n',
      });
    } finally {
      for (const child of children) child.kill("SIGKILL");
      network.close();
    }
  });
});
