import { EventEmitter } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { WeirError } from "../../../src/base/error.js";
import { type CliContext, describeError, exitStatusOf } from "../../../src/cli/context.js";
import { addPerfOn } from "../../../src/cli/perf.js";
import { addPingOn } from "../../../src/cli/ping.js";
import type { DeviceOptions } from "../../../src/verbs/open.js";
import { perfSchema } from "../../../src/verbs/perf/report.js";
import { FakeNetwork } from "./fake_network.js";

const kServer = "10.0.0.1";
const kClient = "10.0.0.2";

/** Starts one command line on a network of its own or of others. */
function start(line: string, network = new FakeNetwork(), signals = new EventEmitter()) {
  const text = { stdout: "", stderr: "" };
  const opened: DeviceOptions[] = [];
  const stream = (name: keyof typeof text) =>
    new Writable({
      write(chunk, _encoding, done) {
        text[name] += String(chunk);
        done();
      },
    });
  const context = { stdout: stream("stdout"), stderr: stream("stderr"), signals } as unknown as CliContext;
  const open = async (options: DeviceOptions) => {
    opened.push(options);
    const address = "nic" in options ? kClient : options.address;
    return network.device(String([address].flat()[0]).replace(/\/.*/, "")).verbs;
  };
  const finish = async () => {
    let status = -1;
    const done = (value: number) => {
      status = value;
    };
    const program = new Command("weir").exitOverride().configureOutput({ writeErr: () => {} });
    addPerfOn(open, program, context, done);
    addPingOn(open, program, context, done);
    try {
      await program.parseAsync(line.split(" "), { from: "user" });
    } catch (error) {
      status = exitStatusOf(error);
      text.stderr += describeError(error);
    }
    return { status, ...text, opened };
  };
  return { finished: finish(), text };
}

const at = (address: string) => `-d fake0 --address ${address}/24`;

/** Runs a server and a client to their ends. */
async function both(server: string, client: string, network = new FakeNetwork()) {
  const ends = [start(`${server} ${at(kServer)}`, network), start(`${client} ${at(kClient)}`, network)];
  const [first, second] = await Promise.all(ends.map(({ finished }) => finished));
  return { server: first, client: second, network } as const;
}

describe("weir perf", () => {
  it("prints perftest's table at both ends", async () => {
    const { server, client, network } = await both("perf write-bw -n 20", `perf write-bw ${kServer} -n 20 -R`);
    expect([server?.status, client?.status]).toEqual([0, 0]);
    const rule = "-".repeat(87);
    const lines = client?.stdout.split("\n") ?? [];
    expect(lines.slice(0, 10)).toEqual([
      rule,
      "                    RDMA_Write BW Test",
      " Device          : fake0",
      " Number of qps   : 1",
      " Connection type : RC",
      " TX depth        : 20",
      " Mtu             : 1024[B]",
      " rdma_cm QPs     : ON",
      " Data ex. method : rdma_cm",
      rule,
    ]);
    expect(lines[10]).toMatch(/^ local address: LID 0000 QPN 0x1001 RKey 0x[0-9a-f]{6} VAddr 0x[0-9a-f]{14}$/);
    expect(lines[11]).toBe(" GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:00:00:02");
    expect(lines[15]).toBe(" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]");
    expect(lines[16]).toMatch(/^ 65536 {6}20 {15}\d+\.\d\d +\d+\.\d\d *\t\t {3}\d\.\d{6}$/);
    expect(lines[18]).toMatch(/^ CPU {13}: \d\.\d{3} s, \d+\.\d{3} s for each Gb sent and received$/);
    expect(server?.stdout).toContain("* Waiting for client to connect... *");
    expect(server?.stdout).toMatch(/\n 65536 {6}20 {15}\d/);
    expect(network.devices.every(({ closed }) => closed)).toBe(true);
  });

  it("prints latencies as perftest does", async () => {
    const { client } = await both("perf send-lat -n 20", `perf send-lat ${kServer} -n 20`);
    expect(client?.stdout).toContain(
      " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]",
    );
    expect(client?.stdout).toMatch(/\n 2 {7}20 {10}\d+\.\d\d +\d+\.\d\d/);
  });

  it("prints one JSON document and nothing else, and writes it to a file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "weir-perf-"));
    try {
      const file = join(folder, "perf.json");
      const { server, client } = await both(
        "perf read-bw -s 8KiB -q 2 -n 10 --json",
        `perf read-bw ${kServer} -s 8192 -q 2 -n 10 --json --out_json_file ${file}`,
      );
      const report = perfSchema.parse(JSON.parse(client?.stdout ?? ""));
      expect(report).toMatchObject({
        test: "read-bw",
        role: "client",
        interface: "fake0",
        address: kClient,
        peer: kServer,
      });
      expect(report.results).toMatchObject([{ size: 8192, message_complete_rx: 20, rx_bytes: 163840 }]);
      expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(report);
      expect(JSON.parse(server?.stdout ?? "")).toMatchObject({ role: "server", results: [{ message_tx: 20 }] });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("prints one figure where --output asks for one, as perftest does", async () => {
    for (const [test, figure] of [
      ["write-bw", "bandwidth"],
      ["write-bw", "message_rate"],
      ["send-lat", "latency"],
    ]) {
      const { server, client } = await both(`perf ${test} -n 20`, `perf ${test} ${kServer} -n 20 --output=${figure}`);
      expect([server?.status, client?.status], client?.stderr).toEqual([0, 0]);
      expect(client?.stdout).toMatch(/^\d+\.\d{6}\n$/);
    }
  });

  it("says which name is not known", async () => {
    const { status, stderr } = await start(`perf write-bw no-such-host.invalid ${at(kClient)}`).finished;
    expect(status).toBe(1);
    expect(stderr).toContain("no-such-host.invalid is neither an IP address nor a name that is known here");
  });

  it("takes names of hosts", async () => {
    const network = new FakeNetwork();
    const ends = [
      start("perf write-bw -n 20 -d fake0 --address 127.0.0.1/8", network),
      start(`perf write-bw localhost -n 20 ${at(kClient)}`, network),
    ];
    const [, client] = await Promise.all(ends.map(({ finished }) => finished));
    expect(client?.status, client?.stderr).toBe(0);
  });

  it("takes what hands that know perftest type", async () => {
    const habits = "-b --report_gbits -F -i 1 --cpu_util -n 20";
    const { server, client } = await both(`perf write-bw ${habits}`, `perf write-bw ${kServer} ${habits} -R -x 0`);
    for (const end of [server, client]) {
      expect(end?.status, end?.stderr).toBe(0);
      expect(end?.stdout).toContain("RDMA_Write Bidirectional BW Test");
      expect(end?.stdout).toContain("BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]    CPU_Util[%]\n");
      expect(end?.stdout).toMatch(/\n 65536 {6}20 {15}\d+\.\d\d +\d+\.\d\d *\t\t {3}\d\.\d{6}\t {4}\d+\.\d\d\n/);
    }
    const json = await both(`perf send-bw -n 20 -b`, `perf send-bw ${kServer} -n 20 -b --json`);
    expect(perfSchema.parse(JSON.parse(json.client?.stdout ?? ""))).toMatchObject({
      bidirectional: true,
      results: [{ message_tx: 20, message_complete_rx: 20, cpu_utilization: expect.any(Number) }],
    });
  });

  it("uses the address that has the GID", async () => {
    const line = `perf write-bw ${kServer} -d fake0 --address ${kClient}/24 --address fd00::2/64 -n 5`;
    for (const [index, addresses] of [
      ["0", ["10.0.0.2/24"]],
      ["1", ["fd00::2/64"]],
    ] as const) {
      const { opened } = await start(`${line} -x ${index}`).finished;
      expect(opened).toMatchObject([{ address: addresses }]);
    }
  });

  it("explains at both ends that they run different tests", async () => {
    const { server, client } = await both("perf write-bw -n 20", `perf read-bw ${kServer} -n 20 -q 2`);
    expect([server?.status, client?.status]).toEqual([1, 1]);
    expect(server?.stderr).toBe(
      "error: the client at 10.0.0.2 asks for read-bw -q 2 -s 65536 -n 20, and this is write-bw -q 1 -s 65536 -n 20\n" +
        "  hint: give both sides the same test and options\n",
    );
    expect(client?.stderr).toContain("error: the server at 10.0.0.1 runs write-bw -q 1 -s 65536 -n 20, and this is");
  });

  it("runs all sizes from 2 B to 8 MiB", async () => {
    const { client } = await both("perf send-bw -a -n 5", `perf send-bw ${kServer} -a -n 5 --report-gbits`);
    const rows = [...(client?.stdout ?? "").matchAll(/^ (\d+) +5 /gm)].map(([, bytes]) => Number(bytes));
    expect(rows).toEqual(Array.from({ length: 23 }, (_, i) => 2 ** (i + 1)));
    expect(client?.stdout).toContain("BW average[Gb/sec]");
  });

  it.each([
    ["perf write-bw -d x -s 0", "--size 0: not a size from 1 B to 1 GiB"],
    ["perf write-bw -d x -s 1parsec", "1parsec"],
    ["perf write-bw -d x -n 4", "--iters 4: not a number from 5 to 1000000000"],
    ["perf write-bw -d x -a -s 4", "-a and -s exclude each other"],
    ["perf write-bw -d x -a -D 1", "-a and -D exclude each other"],
    ["perf write-bw -d x -D 0", "--duration 0: not a time above 0"],
    ["perf write-bw -d x --rate-limit 2", "no unit"],
    ["perf send-lat -d x -q 2", "send-lat sends one message at a time"],
    ["perf send-lat -d x -b", "send-lat sends one message at a time: -q, -t, -b and --rate-limit are for bandwidth"],
    ["perf write-bw -d x --address 10.0.0.1/24 -x 3", "-x 3: x has no such GID here\n  hint: it has -x 0: 10.0.0.1/24"],
    ["perf write-bw --nic x -x 1", "-x 1: connections on a daemon's NIC are at its first address, -x 0"],
    ["perf write-bw -d x --output result.json", "--output result.json: not a figure\n  hint: it is one of bandwidth"],
    ["perf write-bw -d x --output latency", "--output latency: not a figure of write-bw"],
    ["perf send-lat -d x --output bandwidth", "--output bandwidth: not a figure of send-lat\n  hint: --output=latency"],
    ["ping -d x -c", "-c: whom to ping?\n  hint: -c ADDRESS, or -c -a ADDRESS"],
    ["ping -d x -c 10.0.0.1 -a 10.0.0.2", "-c 10.0.0.1 and -a 10.0.0.2 are two servers"],
    ["ping -d x -s -a 10.0.0.2", "-a 10.0.0.2: a server listens on all addresses of its NIC"],
    ["perf write-bw -d x -i 2", "--ib-port 2: not a number from 1 to 1"],
    ["perf send-lat -d no-such-interface", "there is no interface no-such-interface"],
    ["ping -d x --address 10.0.0.300/24", "error: --address: 10.0.0.300/24 is not an IP address with a prefix length"],
    ["ping -d x", "either -c ADDRESS or -s"],
    ["ping -d x -s -c 10.0.0.1", "either -c ADDRESS or -s"],
    ["ping -d x -s -S 25", "--size 25: not a number from 26 to 65535"],
  ])("%s is bad usage", async (line, message) => {
    const { status, stderr } = await start(line).finished;
    expect(status).toBe(2);
    expect(stderr).toContain(message);
  });

  it("says what to do when nobody serves", async () => {
    const network = new FakeNetwork();
    network.device(kServer);
    const { status, stderr } = await start(`perf write-bw ${kServer} ${at(kClient)}`, network).finished;
    expect(status).toBe(1);
    expect(stderr).toMatch(
      /^error: 10\.0\.0\.1 port 18515 rejected the connection.*\n {2}hint: start the server first/,
    );
  });

  it.each([
    ["perf send-bw", "SIGINT", 130],
    ["perf write-lat", "SIGTERM", 143],
    ["ping -s", "SIGINT", 130],
  ])("%s that waits ends at %s", async (line, name, expected) => {
    const network = new FakeNetwork();
    const signals = new EventEmitter();
    const { finished } = start(`${line} ${at(kServer)}`, network, signals);
    while (!network.devices[0]?.listeners.size) await new Promise(setImmediate);
    signals.emit(name);
    expect(await finished).toMatchObject({ status: expected });
    expect(network.devices[0]?.closed).toBe(true);
    expect(signals.listenerCount(name)).toBe(0);
  });

  it("ends in the middle of a run at SIGINT, and the other end says why", async () => {
    const network = new FakeNetwork();
    const signals = new EventEmitter();
    const server = start(`perf write-bw -n 1000000000 ${at(kServer)}`, network);
    const client = start(`perf write-bw ${kServer} -n 1000000000 ${at(kClient)}`, network, signals);
    while (!client.text.stdout.includes("#bytes")) await new Promise(setImmediate);
    signals.emit("SIGINT");
    expect(await client.finished).toMatchObject({ status: 130, stderr: "" });
    const { status, stderr } = await server.finished;
    expect(status).toBe(1);
    expect(stderr).toContain("error: the peer closed the connection\n  hint: ");
  });

  it("passes on what is missing, with its remedy", async () => {
    const program = new Command("weir").exitOverride();
    const context = { signals: new EventEmitter() } as unknown as CliContext;
    const refused = async () => {
      throw new WeirError("cannot open a packet socket", { hint: "CAP_NET_RAW" });
    };
    addPerfOn(refused, program, context, () => {});
    const line = ["perf", "write-bw", "-d", "x", "--address", "10.0.0.1/24"];
    await expect(program.parseAsync(line, { from: "user" })).rejects.toThrow("cannot open a packet socket");
  });
});

describe("weir ping", () => {
  it("prints texts as rping does, and what they took", async () => {
    const { server, client } = await both("ping -s -v", `ping -c ${kServer} -C 2 -v -V`);
    expect([server?.status, client?.status]).toEqual([0, 0]);
    const text = "rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqr";
    expect(client?.stdout.split("\n")[0]).toBe(`ping data: ${text}`);
    expect(client?.stdout).toMatch(/\n2 pings, all unchanged, round trip min\/avg\/max [\d.]+\/[\d.]+\/[\d.]+ us\n$/);
    expect(server?.stdout.split("\n")[0]).toBe(`server ping data: ${text}`);
    expect(server?.stderr).toBe("listening on port 7174\n");
  });

  it("prints one JSON document", async () => {
    const { client } = await both("ping -s -p 9000", `ping -c -a ${kServer} -C 3 -S 100 -V -p 9000 --json`);
    expect(JSON.parse(client?.stdout ?? "")).toMatchObject({
      role: "client",
      peer: kServer,
      port: 9000,
      size: 100,
      pings: 3,
      validated: true,
      round_trip_us: { min: expect.any(Number), avg: expect.any(Number), max: expect.any(Number) },
    });
  });

  it("fails when a text comes back changed", async () => {
    const network = new FakeNetwork();
    network.alter = (bytes) => {
      if (bytes.length > 16) bytes.writeUInt8(0x2a, 30);
    };
    const { client, server } = await both("ping -s", `ping -c ${kServer} -C 2 -V`, network);
    expect([client?.status, server?.status]).toEqual([1, 0]);
    expect(client?.stderr).toContain("error: ping 0: the text came back changed\n  hint: ");
  });

  it("opens the interface with the addresses that it is given", async () => {
    const { opened } = await start(`ping -c ${kServer} ${at(kClient)} --address fd77::9/64`).finished;
    expect(opened).toEqual([{ interface: "fake0", address: ["10.0.0.2/24", "fd77::9/64"] }]);
  });
});
