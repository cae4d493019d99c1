/** TypeScript's verbs on NICs that daemons have: with each other, with C programs, when the daemon dies, as an ordinary user. */
import { spawn } from "node:child_process";
import { randomFillSync } from "node:crypto";
import { expect, it, onTestFinished } from "vitest";
import { ask } from "../../src/device/control_client.js";
import { connect, type Device, type Disconnection, listen, openDevice } from "../../src/verbs/index.js";
import { pingClient, pingServer } from "../../src/verbs/perf/ping.js";
import { kRoot } from "../command.js";
import { eventually } from "../patience.js";
import { describeLive } from "./capability.js";
import type { Daemon } from "./daemons.js";
import { fabric, run } from "./program_runs.js";
import { perform } from "./verbs_pair.js";

const kGroup = 7777;
const nics = () => fabric({ fields: (last) => `address: 10.66.0.${last}\nprograms: { group: ${kGroup} }\n` });
const kPing = { size: 64, count: 20, verify: true };

async function opened({ socket }: Daemon): Promise<Device> {
  const device = await openDevice({ nic: socket });
  onTestFinished(() => device.close());
  return device;
}

function made(device: Device) {
  const domain = device.allocateProtectionDomain();
  const queuePair = domain.createQueuePair({
    sendCompletions: device.createCompletionQueue(),
    receiveCompletions: device.createCompletionQueue(),
  });
  const memory = domain.registerMemory(1 << 18);
  return { device, domain, queuePair, memory, bytes: Buffer.from(memory.buffer) };
}

async function connected(from: Device, to: Device) {
  const [a, b] = [made(from), made(to)];
  const accepted = new Promise((resolve, reject) => {
    const stop = listen(to, 7471, (request) => {
      stop();
      request.accept({ queuePair: b.queuePair }).then(resolve, reject);
    });
    stop.ready.catch(reject);
  });
  const connection = await connect(from, { address: "10.66.0.2", port: 7471, queuePair: a.queuePair });
  await accepted;
  return { a, b, connection };
}

describeLive("TypeScript's verbs on a daemon's NIC", () => {
  it("move bytes between two, and leave nothing behind", async () => {
    const { a: left, b: right } = await nics();
    const { a, b, connection } = await connected(await opened(left), await opened(right));
    expect(connection).toMatchObject({ remoteAddress: "10.66.0.2", remoteQpn: b.queuePair.qpn });
    randomFillSync(a.bytes);
    await perform(a.queuePair, { opcode: "rdma_write", local: { region: a.memory }, remote: b.memory.remote() });
    expect(b.bytes.equals(a.bytes)).toBe(true);
    b.bytes.fill(7);
    await perform(a.queuePair, { opcode: "rdma_read", local: { region: a.memory }, remote: b.memory.remote() });
    expect(a.bytes.equals(b.bytes)).toBe(true);
    b.queuePair.postReceive({ id: 3, local: { region: b.memory } });
    await perform(a.queuePair, { opcode: "send_with_imm", immediate: 9, local: { region: a.memory, length: 5000 } });
    expect(await b.queuePair.receiveCompletions.next()).toMatchObject({ id: 3, byteLength: 5000, immediate: 9 });
    expect(await ask(left.socket, "programs")).toHaveLength(1);
    expect(() => made(a.device).queuePair.modify("init", { rateCap: 1e9 })).toThrow("rateCap: not on a daemon's NIC");
    await connection.disconnect();
    for (const { device } of [a, b]) device.close();
    await eventually(async () => {
      for (const { socket } of [left, right]) {
        expect([await ask(socket, "programs"), await ask(socket, "queue_pairs")]).toEqual([[], []]);
      }
    });
  });

  it("exchange datagrams", async () => {
    const { a: left, b: right } = await nics();
    const [a, b] = [left, right].map(opened).map(async (opening) => {
      const device = await opening;
      const domain = device.allocateProtectionDomain();
      const queuePair = domain.createQueuePair({ type: "ud", sendCompletions: device.createCompletionQueue() });
      for (const state of ["init", "rtr", "rts"] as const) queuePair.modify(state, { queueKey: 5 });
      return { device, queuePair, memory: domain.registerMemory(4096) };
    });
    const [from, to] = [await a, await b];
    to?.queuePair.postReceive({ local: { region: to.memory } });
    const address = await from?.device.createAddressHandle("10.66.0.2");
    if (!from || !to || !address) throw new Error("no devices");
    await perform(from.queuePair, {
      opcode: "send",
      local: { region: from.memory, length: 100 },
      to: { address, qpn: to.queuePair.qpn, queueKey: 5 },
    });
    expect(await to.queuePair.receiveCompletions.next()).toMatchObject({ byteLength: 140, opcode: "recv" });
  });

  it("speak with C programs, from either side", async () => {
    const { a, b } = await nics();
    const signal = new AbortController().signal;
    const device = await opened(a);
    const server = run(b, "rping", "-s", "-C", "20");
    await eventually(async () => {
      const pings: string[] = [];
      await pingClient(device, "10.66.0.2", { ...kPing, port: 7174 }, signal, ({ text }) => pings.push(text));
      expect(pings).toHaveLength(20);
    });
    expect(await server.ended).toMatchObject({ status: 0 });
    const pings: string[] = [];
    const client = await new Promise<ReturnType<typeof run>>((resolve, reject) => {
      const onReady = () => resolve(run(b, "rping", "-c", "-a", "10.66.0.1", "-C", "5", "-V"));
      pingServer(device, 7174, signal, onReady, ({ text }) => pings.push(text)).catch(reject);
    });
    expect(await client.ended).toMatchObject({ status: 0 });
    expect(pings).toHaveLength(5);
  });

  it("hear that the daemon was killed: what was posted is flushed, and the device says so", async () => {
    const { a: left, b: right } = await nics();
    const { a, connection } = await connected(await opened(left), await opened(right));
    const failed = new Promise<Error>((resolve) => a.device.onFailed(resolve));
    const disconnected = new Promise<Disconnection>((resolve) => connection.onDisconnected(resolve));
    // Nobody takes these SENDs: they are under way until the end.
    for (let i = 0; i < 64; i++) a.queuePair.postSend({ opcode: "send", id: i, local: { region: a.memory } });
    left.child.kill("SIGKILL");
    for (let i = 0; i < 64; i++) {
      expect(await a.queuePair.sendCompletions.next()).toMatchObject({ id: i, status: "wr_flush_err" });
    }
    expect((await failed).message).toBe("the device has failed: the daemon of the NIC is gone");
    expect(await disconnected).toEqual({ reason: "closed" });
    expect(a.queuePair.state).toBe("error");
    await expect(a.queuePair.sendCompletions.next()).rejects.toThrow("the daemon of the NIC is gone");
    a.device.close();
    // The memory of a process goes before its listening socket.
    await left.finished;
    await expect(openDevice({ nic: left.socket })).rejects.toThrow("does not run");
  });

  it("need no privilege, only leave to open the socket", async () => {
    const { b } = await nics();
    const program = `
      const { openDevice } = await import("${kRoot}dist/verbs/index.js");
      const device = await openDevice({ nic: process.argv[1] });
      console.log(process.getuid(), device.addresses.join());
      device.close();`;
    const as = (gid: number) => ["--reuid=65534", `--regid=${gid}`, "--clear-groups", "--"];
    const ran = async (gid: number) => {
      const node = [process.execPath, "--input-type=module", "-e", program, b.socket];
      const child = spawn("setpriv", [...as(gid), ...node], { stdio: ["ignore", "pipe", "pipe"] });
      let output = "";
      for (const stream of [child.stdout, child.stderr]) {
        stream.on("data", (bytes) => {
          output += String(bytes);
        });
      }
      await new Promise((resolve) => child.on("close", resolve));
      return output;
    };
    expect(await ran(kGroup)).toBe("65534 10.66.0.2\n");
    expect(await ran(65534)).toContain("this user may not open");
  });
});
