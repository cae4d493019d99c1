/** What programs ask of libibverbs beyond a plain connection: Debian's programs, and small ones of our own in programs_c/. */
import { execFileSync, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { LabNetwork } from "../../src/host/veth.js";
import { kWeir } from "../command.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import { type Daemon, daemon, freePort, kHosts, network, startSwitch } from "./daemons.js";
import { folder } from "./weir.js";

type Host = (typeof kHosts)[number];

const kSources = join(import.meta.dirname, "programs_c");

async function startNic(net: LabNetwork, host: Host): Promise<Daemon> {
  const path = folder();
  const file = join(path, "nic.yaml");
  const control = join(path, `verbs-${host}.sock`);
  writeFileSync(
    file,
    `name: verbs-${host}
interface: weir0
namespace: ${net.namespace(host).path}
address: 10.66.0.${kHosts.indexOf(host) + 1}
rate: 1Gbps
metrics: false
programs: true
control: ${control}
`,
  );
  return daemon("nic", file, control);
}

function run({ socket }: Daemon, ...command: string[]): Promise<{ status: number | null; output: string }> {
  const [program = "", ...args] = [...kWeir, "run", "--socket", socket, "--", ...command];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGTERM"));
  let output = "";
  const take = (bytes: Buffer) => {
    output += bytes.toString();
  };
  child.stdout.on("data", take);
  child.stderr.on("data", take);
  return new Promise((resolve) => {
    child.on("close", (status) => resolve({ status, output }));
  });
}

/** The server on b, and once it listens the client on a; both have to end well. */
async function pair(nics: Record<Host, Daemon>, command: readonly string[]): Promise<void> {
  const port = await freePort();
  const whole = [...command, "-p", String(port)];
  const server = run(nics.b, ...whole);
  await eventually(() => listens(port));
  const client = await run(nics.a, ...whole, "127.0.0.1");
  expect(client.status, client.output).toBe(0);
  const { status, output } = await server;
  expect(status, output).toBe(0);
}

function listens(port: number): void {
  const hex = `:${port.toString(16).toUpperCase().padStart(4, "0")} `;
  const lines = ["tcp", "tcp6"].flatMap((file) => readFileSync(`/proc/net/${file}`, "utf8").split("\n"));
  expect(lines.some((line) => line.includes(hex) && / 0A /.test(line))).toBe(true);
}

function compiled(name: string): string {
  const program = join(folder(), name);
  execFileSync(
    "cc",
    ["-Wall", "-Wextra", "-O1", join(kSources, `${name}.c`), "-o", program, "-libverbs", "-lpthread"],
    {
      env: { ...process.env, PATH: process.env.WEIR_BUILD_PATH },
    },
  );
  return program;
}

describeLive("verbs of programs", () => {
  it.each([
    ["a shared receive queue", ["ibv_srq_pingpong", "-g", "0", "-n", "200", "-c"]],
    ["an unreliable connection", ["ibv_uc_pingpong", "-g", "0", "-n", "200", "-c"]],
    ["work put together call by call", ["ibv_rc_pingpong", "-g", "0", "-n", "200", "-c", "-N"]],
    ["completions with their time", ["ibv_rc_pingpong", "-g", "0", "-n", "200", "-c", "-t"]],
    ["perftest with a shared receive queue", ["ib_send_bw", "-x", "0", "-n", "100", "--use-srq"]],
    ["perftest's WRITEs of an unreliable connection", ["ib_write_bw", "-x", "0", "-n", "100", "-c", "UC"]],
  ])("%s", async (_, command) => {
    const net = await network();
    await startSwitch(net);
    await pair({ a: await startNic(net, "a"), b: await startNic(net, "b") }, command);
  });

  it.each(["shared_receives", "extended", "refusals", "unmapped", "multicast", "draining"])(
    "programs_c/%s.c",
    async (name) => {
      const net = await network();
      const nic = await startNic(net, "a");
      const { status, output } = await run(nic, compiled(name));
      expect(output).toBe("as it should be\n");
      expect(status).toBe(0);
    },
  );
});
