/** The broker with a worker that only remembers, and a program that speaks by hand. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { connect, type Socket } from "node:net";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it, onTestFinished, vi } from "vitest";
import { ProgramBroker } from "../../../src/daemon/programs/broker.js";
import { Shares } from "../../../src/daemon/programs/shares.js";
import type { DevicePort } from "../../../src/device/device.js";
import type { NicDaemonConfig } from "../../../src/device/file/load.js";
import { loadNicDaemon } from "../../../src/device/file/load.js";
import type { NativePath, ProgramAnswer, ProgramRequest } from "../../../src/native/types.js";
import { gidOfAddress } from "../../../src/wire/address.js";
import { kIdleDevice } from "../../fixtures/program_device.js";
import { eventually } from "../../patience.js";

// Files that ran before in this process may have loaded what imports it, and those that come after it are to have the true one.
vi.hoisted(() => vi.resetModules());
afterAll(() => void vi.resetModules());
vi.mock("node:fs", async (original) => {
  const real = await original<typeof import("node:fs")>();
  return { ...real, renameSync: vi.fn(real.renameSync) };
});

const { EINVAL, ENOENT, ENOMEM, EPROTO } = constants.errno;
const kRequestBytes = 4;
const kPeerMac = 0x02_00_00_00_00_02;

const kRequest: ProgramRequest = {
  bytes: kRequestBytes,
  object: 0,
  direct: 0,
  datagram: 0,
  path_mtu: 1024,
  remote_qpn: 0,
  partition_key: 0xffff,
  traffic_class: 0,
  hop_limit: 0,
  source_index: 0,
  service_level: 0,
  unreliable: 0,
  gid: [...gidOfAddress("10.0.0.2")],
  receive_psn: 0,
};

const gidText = (address: string | undefined) =>
  (address === undefined ? Buffer.alloc(16) : gidOfAddress(address)).toString("hex").replace(/(.{4})(?=.)/g, "$1:");

const kHello = { kind: "hello" } as const;

function config(programs = "{ priority: 3 }"): NicDaemonConfig {
  const text = `name: roce0\ninterface: eth1\naddress: 10.0.0.1\nprograms: ${programs}\n`;
  const inspect = () => ({ mac: 0x02_00_00_00_00_01, mtu: 1500 });
  return loadNicDaemon("nic.yaml", { inspect: inspect as never, text }).config;
}

/** Limits of a program, as told by the native core. */
const kMost = { address_handles: 5, memberships: 256 };

const command = () => readFileSync(`/proc/${process.pid}/comm`, "utf8").trimEnd();

/** Requests are numbers on the wire here: the place of each in `requests`. */
async function serve(programs?: string, folder?: string, limits = { programs: 256, queuePairs: 4096 }) {
  const calls: unknown[][] = [];
  const requests: ProgramRequest[] = [];
  const answers: ProgramAnswer[] = [];
  const sent: Buffer[] = [];
  let numbers = 0;
  let qpns = 100;
  let handles = 55;
  const listeners = new Set<(frame: Buffer) => void>();
  const remember =
    (name: string, result: () => unknown = () => true) =>
    (...args: unknown[]) => {
      calls.push([name, ...args.slice(1)]);
      return result();
    };
  const path = folder ?? mkdtempSync(join(tmpdir(), "weir-test-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  const socket = join(path, "roce0.verbs");
  const told: unknown[] = [];
  /** Of its device, once there is one. */
  const ports: DevicePort[] = [];
  /** The user of those that connect from now on, and say hello. */
  const who = { uid: 8 };
  /** Error with which every program is refused. */
  const refuse: { with?: Error | undefined } = {};
  const broker = await ProgramBroker.open(socket, config(programs), {
    device: { ...kIdleDevice, ports: () => ports },
    events: {
      began: (program) => void told.push(["began", program]),
      ended: (program) => void told.push(["ended", program]),
    },
    addon: {
      peerCredentials: () => ({ pid: process.pid, uid: who.uid, gid: 9 }),
      programRequestBytes: () => kRequestBytes,
      mostPrograms: () => limits.programs,
      readProgramRequest: (bytes: Uint8Array) => requests[Buffer.from(bytes).readUInt32LE()] as ProgramRequest,
      answerProgram: (_: number, answer: ProgramAnswer) => {
        answers.push(answer);
        return true;
      },
    },
    worker: {
      openProgram: remember("open", () => {
        if (refuse.with !== undefined) throw refuse.with;
        return { number: ++numbers, memory: 1, wake: 2, ...kMost };
      }) as never,
      closeProgram: remember("close") as never,
      lendPath: remember("lend", () => ({ block: 9, config: 3, socket: 4 })) as never,
      tellPrograms: remember("tell") as never,
      createQueuePair: remember("create", () => qpns++) as never,
      modifyQueuePair: remember("modify") as never,
      destroyQueuePair: remember("destroy") as never,
      createAddressHandle: remember("handle", () => handles++) as never,
      destroyAddressHandle: remember("unhandle") as never,
      attachGroup: remember("attach") as never,
      detachGroup: remember("detach") as never,
      resolve: async (_, __, { bytes }) => (bytes.join(".") === "10.0.0.2" ? kPeerMac : 0),
    },
    queuePairs: limits.queuePairs,
    link: {
      mac: 0x02_00_00_00_00_01,
      send: (frame) => sent.push(Buffer.from(frame)) > 0,
      onFrame: (listener) => {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    },
  });
  onTestFinished(() => broker.close());
  const program = async () => {
    const client = connect(socket);
    onTestFinished(() => void client.destroy());
    await new Promise((resolve) => client.once("connect", resolve));
    return client;
  };
  const ask = async (client: Socket, request: Partial<ProgramRequest>) => {
    const word = Buffer.alloc(kRequestBytes);
    word.writeUInt32LE(requests.push({ ...kRequest, ...request }) - 1);
    const before = answers.length;
    client.write(word);
    await eventually(() => expect(answers.length).toBeGreaterThan(before));
    return answers.at(-1);
  };
  return { broker, ports, who, refuse, socket, path, calls, sent, told, answers, requests, program, ask };
}

it("serves a program from its hello to its end, and gives back what it had", async () => {
  const { broker, calls, told, program, ask } = await serve();
  const client = await program();
  expect(await ask(client, kHello)).toEqual({ mac: 0x02_00_00_00_00_01, rate: 10e9, path_mtu: 1024, gids: 16 });
  expect([...broker.programs()]).toEqual([[1, { pid: process.pid, uid: 8, command: command() }]]);
  expect(await ask(client, { kind: "create-queue-pair", datagram: 0 })).toEqual({ object: 100 });
  expect(await ask(client, { kind: "modify-queue-pair", object: 100, state: "rtr", remote_qpn: 9 })).toEqual({});
  expect(await ask(client, { kind: "create-address-handle" })).toEqual({ object: 55, mac: expect.any(Number) });
  client.destroy();
  await eventually(() => expect(broker.programs().size).toBe(0));
  expect(calls.map(([name]) => name)).toEqual(["open", "create", "modify", "handle", "close", "unhandle"]);
  const identity = { pid: process.pid, uid: 8, command: command() };
  expect(told).toEqual([
    ["began", { ...identity, gid: 9 }],
    ["ended", identity],
  ]);
  const [, qpn, change] = calls[2] as [string, number, { path: object }];
  expect(qpn).toBe(100);
  expect(change).toMatchObject({
    state: "rtr",
    remote_qpn: 9,
    priority: 3,
    path: { destination_mac: kPeerMac, destination_ip: Buffer.from([10, 0, 0, 2]) },
  });
});

it("gives programs other addresses and another path MTU, and tells them", async () => {
  const { broker, ports, calls, path, program, ask } = await serve();
  const client = await program();
  await ask(client, kHello);
  const gid = (index: number) => readFileSync(join(path, `roce0.rdma/ports/1/gids/${index}`), "utf8").trim();
  const told = () => calls.filter(([name]) => name === "tell").map(([, ...args]) => args);
  const next = { ...config(), address: "10.0.0.7", addresses: ["10.0.0.7", "10.0.0.1"] };
  broker.reconfigure(next);
  expect([gid(0), gid(1)]).toEqual(["10.0.0.1", "10.0.0.7"].map(gidText));
  expect(told()).toEqual([[true, 1024]]);
  broker.reconfigure({ ...next, addresses: ["10.0.0.7"] });
  expect([gid(0), gid(1)]).toEqual([gidText(undefined), gidText("10.0.0.7")]);
  // What changes nothing of them is not told.
  broker.reconfigure({ ...next, addresses: ["10.0.0.7"] });
  expect(told()).toHaveLength(2);
  const handle = { kind: "create-address-handle" } as const;
  expect(await ask(client, handle)).toEqual({ error: EINVAL });
  expect(await ask(client, { ...handle, source_index: 1 })).toMatchObject({ object: 55 });
  expect(calls.at(-1)).toMatchObject(["handle", { source_ip: Buffer.from([10, 0, 0, 7]) }]);

  ports.push({ up: true, transitions: 0, interface_mtu: 700 } as DevicePort);
  await eventually(() => expect(told().slice(2)).toEqual([[false, 512]]));
  await ask(client, { kind: "create-queue-pair", datagram: 0 });
  const connect = { kind: "modify-queue-pair", object: 100, state: "rtr", source_index: 1, remote_qpn: 9 } as const;
  expect(await ask(client, connect)).toEqual({ error: EINVAL });
  expect(await ask(client, { ...connect, path_mtu: 512 })).toEqual({});
  expect(await ask(client, { ...connect, state: "error" })).toEqual({});
  expect(await ask(await program(), kHello)).toMatchObject({ path_mtu: 512 });
});

it("lets a program name queue pairs of its user's and numbers that nobody has, but no other's", async () => {
  const { broker, who, program, ask } = await serve();
  const mine = await program();
  await ask(mine, kHello);
  expect(await ask(mine, { kind: "create-queue-pair" })).toEqual({ object: 100 });
  who.uid = 7;
  const theirs = await program();
  await ask(theirs, kHello);
  expect(await ask(theirs, { kind: "create-queue-pair" })).toEqual({ object: 101 });
  const named = (uid: number) => [0, 1, 100, 101, 1000].filter((qpn) => broker.mayNameQueuePair(uid, qpn));
  expect(named(8)).toEqual([100, 1000]);
  expect(named(7)).toEqual([101, 1000]);
  expect(named(6)).toEqual([1000]);
});

it("refuses what is not the program's, and what makes no sense", async () => {
  const { calls, program, ask } = await serve();
  const [one, other] = [await program(), await program()];
  expect(await ask(one, { kind: "create-queue-pair" })).toEqual({ error: EPROTO }); // A program without a hello is refused.
  expect(await ask(one, { bytes: 5 })).toEqual({ error: EPROTO });
  await ask(one, kHello);
  await ask(other, kHello);
  expect(await ask(one, kHello)).toEqual({ error: EPROTO }); // twice
  expect(await ask(one, { kind: "create-queue-pair" })).toEqual({ object: 100 });
  expect(await ask(other, { kind: "modify-queue-pair", object: 100, state: "init" })).toEqual({ error: ENOENT });
  expect(await ask(other, { kind: "destroy-queue-pair", object: 100 })).toEqual({ error: ENOENT });
  expect(await ask(other, { kind: "destroy-address-handle", object: 55 })).toEqual({ error: ENOENT });
  expect(await ask(one, { kind: "modify-queue-pair", object: 100 })).toEqual({ error: EINVAL });
  expect(await ask(one, { kind: "modify-queue-pair", object: 100, state: "rtr", path_mtu: 4096 })).toEqual({
    error: EINVAL,
  });
  expect(await ask(one, { kind: "modify-queue-pair", object: 100, state: "init", path_mtu: 1000 })).toEqual({
    error: EINVAL,
  });
  expect(await ask(one, { kind: "modify-queue-pair", object: 100, state: "init", remote_qpn: 1 << 24 })).toEqual({
    error: EINVAL,
  });
  expect(await ask(one, { kind: "modify-queue-pair", object: 100, state: "rtr", source_index: 1 })).toEqual({
    error: EINVAL,
  });
  expect(await ask(one, {})).toEqual({ error: EPROTO });
  expect(calls.map(([name]) => name)).toEqual(["open", "open", "create"]);
});

it("lets queue pairs of datagrams join groups, of which the link's switches are told", async () => {
  const { calls, sent, requests, program, ask } = await serve();
  const [client, other] = [await program(), await program()];
  await ask(client, kHello);
  await ask(other, kHello);
  const [pair, connection] = [{ object: 100 }, { object: 101 }];
  expect(await ask(client, { kind: "create-queue-pair", datagram: 1 })).toEqual(pair);
  expect(await ask(client, { kind: "create-queue-pair" })).toEqual(connection);
  const gid = [...gidOfAddress("239.1.2.3")];
  const group = { version: 4, bytes: Buffer.from([239, 1, 2, 3]) };
  const reports = (type: number) =>
    sent.filter((frame) => frame.readUInt8(23) === 2 && frame.readUInt8(38) === type).length;

  calls.length = 0;
  expect(await ask(client, { kind: "attach-group", ...connection, gid })).toEqual({ error: EINVAL });
  expect(await ask(client, { kind: "attach-group", ...pair })).toEqual({ error: EINVAL }); // no group
  expect(await ask(other, { kind: "attach-group", ...pair, gid })).toEqual({ error: ENOENT });
  expect(await ask(client, { kind: "detach-group", ...pair, gid })).toEqual({ error: EINVAL });
  expect(calls).toEqual([]);
  expect(await ask(client, { kind: "attach-group", ...pair, gid })).toEqual({});
  expect(await ask(client, { kind: "attach-group", ...pair, gid })).toEqual({});
  expect(calls).toEqual([["attach", 100, group]]);
  expect(reports(0x16)).toBe(1);
  expect(await ask(other, { kind: "detach-group", ...pair, gid })).toEqual({ error: ENOENT });
  expect(await ask(client, { kind: "detach-group", ...pair, gid })).toEqual({});
  expect(calls.at(-1)).toEqual(["detach", 100, group]);
  expect(reports(0x17)).toBe(1);

  // No connection leads to a group; datagrams do, and nobody is asked where it is.
  expect(await ask(client, { kind: "modify-queue-pair", ...connection, state: "rtr", gid })).toEqual({ error: EINVAL });
  expect(await ask(client, { kind: "create-address-handle", gid })).toEqual({ object: 55, mac: 0x01_00_5e_01_02_03 });
  expect(calls.at(-1)).toMatchObject(["handle", { destination_mac: 0x01_00_5e_01_02_03, destination_ip: group.bytes }]);

  // Memberships end with their queue pair, and with the program, however it ends.
  expect(await ask(client, { kind: "attach-group", ...pair, gid })).toEqual({});
  expect(await ask(client, { kind: "destroy-queue-pair", ...pair })).toEqual({});
  expect(calls.filter(([name]) => name === "detach")).toHaveLength(2);
  expect(await ask(client, { kind: "create-queue-pair", datagram: 1 })).toEqual({ object: 102 });
  const many = Array.from({ length: 256 }, (_, i) => {
    const word = Buffer.alloc(kRequestBytes);
    const own = [...gidOfAddress(`239.7.0.${i}`)];
    word.writeUInt32LE(requests.push({ ...kRequest, kind: "attach-group", object: 102, gid: own }) - 1);
    return word;
  });
  client.write(Buffer.concat(many));
  await eventually(() => expect(calls.filter(([name]) => name === "attach")).toHaveLength(258));
  expect(await ask(client, { kind: "attach-group", object: 102, gid })).toEqual({ error: ENOMEM });
  client.destroy();
  await eventually(() => expect(reports(0x17)).toBe(258));
});

it("gives a program as many address handles as the native core says, and again when some are gone", async () => {
  const { program, ask } = await serve();
  const client = await program();
  await ask(client, kHello);
  for (let i = 0; i < kMost.address_handles; i++)
    expect(await ask(client, { kind: "create-address-handle" })).toMatchObject({ object: 55 + i });
  expect(await ask(client, { kind: "create-address-handle" })).toEqual({ error: ENOMEM });
  expect(await ask(client, { kind: "destroy-address-handle", object: 55 })).toEqual({});
  expect(await ask(client, { kind: "create-address-handle" })).toMatchObject({ object: 55 + kMost.address_handles });
});

it("sends as the program says: by traffic class, else by service level, and so far", async () => {
  const { calls, program, ask } = await serve();
  const client = await program();
  await ask(client, kHello);
  await ask(client, { kind: "create-queue-pair" });
  const way = async (more: Partial<ProgramRequest>) => {
    expect(await ask(client, { kind: "modify-queue-pair", object: 100, state: "rtr", ...more })).toEqual({});
    const [, , { priority, path }] = calls.at(-1) as [string, number, { priority: number; path: NativePath }];
    return { priority, dscp: path.dscp, ttl: path.ttl };
  };
  expect(await way({})).toMatchObject({ priority: 3, ttl: undefined });
  expect(await way({ service_level: 5 })).toMatchObject({ priority: 5 });
  expect(await way({ service_level: 5, traffic_class: 26 << 2 })).toMatchObject({ dscp: 26 });
  expect(await way({ hop_limit: 255 })).toMatchObject({ ttl: 255 });
  for (const wrong of [{ service_level: 8 }, { traffic_class: 256 }, { hop_limit: 256 }]) {
    expect(await ask(client, { kind: "modify-queue-pair", object: 100, state: "rtr", ...wrong })).toEqual({
      error: EINVAL,
    });
  }
});

it("leaves a socket and files that nobody else may use, and takes them away", async () => {
  const { broker, socket, path } = await serve();
  expect(statSync(socket).mode & 0o777).toBe(0o600);
  expect(readFileSync(join(path, "roce0.rdma/weir_socket"), "utf8")).toBe(`${socket}\n`);
  // Everybody may see that there is a NIC.
  expect(statSync(join(path, "roce0.rdma/ports/1")).mode & 0o777).toBe(0o755);
  expect(statSync(join(path, "roce0.rdma/weir_socket")).mode & 0o777).toBe(0o644);
  broker.close();
  expect(existsSync(socket)).toBe(false);
  expect(existsSync(join(path, "roce0.rdma"))).toBe(false);
});

it("gives its socket to a group, and says so when there is none", async () => {
  // Only root may give it to a group that it does not belong to.
  const gid = process.getuid?.() === 0 ? 12_345 : (process.getgid?.() as number);
  const { socket } = await serve(`{ group: ${gid} }`);
  expect(statSync(socket)).toMatchObject({ gid });
  expect(statSync(socket).mode & 0o777).toBe(0o660);
  await expect(serve("{ group: nobodys-group }")).rejects.toThrow("there is no group nobodys-group");
});

it("replaces what a daemon that was killed has left", async () => {
  const { broker, socket, path } = await serve();
  // Files of a NIC with more addresses, and a socket that nobody listens at.
  const stale = join(path, "roce0.rdma/ports/1/gids/77");
  writeFileSync(stale, "");
  renameSync(socket, `${socket}.kept`);
  broker.close();
  mkdirSync(join(path, "roce0.rdma/ports/1/gids"), { recursive: true });
  writeFileSync(stale, "");
  renameSync(`${socket}.kept`, socket);
  const again = await serve(undefined, path);
  expect(existsSync(stale)).toBe(false);
  expect(await again.ask(await again.program(), kHello)).toMatchObject({ path_mtu: 1024 });
});

it("slows a program down that asks without end, and stays there for others", async () => {
  const { program, ask, answers, requests } = await serve();
  const [flood, other] = [await program(), await program()];
  await ask(flood, kHello);
  const word = Buffer.alloc(kRequestBytes);
  word.writeUInt32LE(requests.push({ ...kRequest, kind: "destroy-address-handle" }) - 1);
  const kFlood = 40_000;
  flood.write(Buffer.concat(Array.from({ length: kFlood }, () => word)));
  const before = answers.length;
  // Others are answered long before the flood is.
  await ask(other, kHello);
  expect(answers.length - before).toBeLessThan(kFlood / 2);
  // Once it has spent its burst, it gets no further than a little in each second.
  await eventually(() => expect(answers.length).toBeGreaterThan(8192));
  const turns = answers.length;
  await ask(other, { kind: "create-queue-pair" });
  expect(answers.length - turns).toBeLessThan(kFlood / 4);
});

it("keeps an eighth of its programs and queue pairs for other users", async () => {
  const { who, program, ask, broker } = await serve(undefined, undefined, { programs: 32, queuePairs: 64 });
  const first = await program();
  for (let i = 0; i < 28; i++) expect(await ask(i === 0 ? first : await program(), kHello)).not.toHaveProperty("error");
  expect(await ask(await program(), kHello)).toEqual({ error: ENOMEM });
  for (let i = 0; i < 56; i++) expect(await ask(first, { kind: "create-queue-pair" })).toHaveProperty("object");
  expect(await ask(first, { kind: "create-queue-pair" })).toEqual({ error: ENOMEM });
  who.uid = 0;
  const other = await program();
  expect(await ask(other, kHello)).not.toHaveProperty("error");
  expect(await ask(other, { kind: "create-queue-pair" })).toHaveProperty("object");
  // Another may have queue pairs that one gives back.
  for (const object of [100, 101]) expect(await ask(first, { kind: "destroy-queue-pair", object })).toEqual({});
  expect(await ask(first, { kind: "create-queue-pair" })).toHaveProperty("object");
  expect(await ask(first, { kind: "create-queue-pair" })).toEqual({ error: ENOMEM });
  first.destroy();
  other.destroy();
  await eventually(() => expect(broker.programs().size).toBe(27));
  who.uid = 8;
  expect(await ask(await program(), kHello)).not.toHaveProperty("error");
});

it("says what the system has none of", async () => {
  const { refuse, program, ask } = await serve();
  refuse.with = Object.assign(new Error("memfd_create: Too many open files"), { code: "EMFILE" });
  expect(await ask(await program(), kHello)).toEqual({ error: constants.errno.EMFILE });
  refuse.with = undefined;
  expect(await ask(await program(), kHello)).not.toHaveProperty("error");
});

it("closes connections of a user who has too many", async () => {
  const { program, ask } = await serve();
  vi.spyOn(Shares.prototype, "take").mockReturnValueOnce(false);
  const client = await program();
  await new Promise((resolve) => client.once("close", resolve));
  expect(await ask(await program(), kHello)).not.toHaveProperty("error");
});

it("exits with an error that names its files where they cannot be written", async () => {
  const path = mkdtempSync(join(tmpdir(), "weir-test-"));
  vi.mocked(renameSync).mockImplementationOnce(() => {
    throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
  });
  await expect(serve(undefined, path)).rejects.toThrow(`cannot write ${path}/roce0.rdma: no space left on the device`);
  // Nobody listens there any more, and nothing is left.
  expect(readdirSync(path)).toEqual([]);
});

it("drops who says nothing, or half of a hello", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { program } = await serve();
  const half = Buffer.alloc(8);
  half.writeUInt32LE(0x6d63_7277, 0);
  half.writeUInt32LE(1, 4);
  for (const said of [Buffer.alloc(0), half, half.subarray(0, 4)]) {
    const silent = await program();
    const closed = new Promise((resolve) => silent.once("close", resolve));
    silent.write(said);
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    vi.advanceTimersByTime(5000);
    await closed;
  }
});
