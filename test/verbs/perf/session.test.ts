import { describe, expect, it } from "vitest";
import { WeirError } from "../../../src/base/error.js";
import type { PerfOptions, PerfTest } from "../../../src/verbs/perf/options.js";
import { kPerfTests } from "../../../src/verbs/perf/options.js";
import { describeRow, perfSchema, reportOf } from "../../../src/verbs/perf/report.js";
import { type Row, run } from "../../../src/verbs/perf/run.js";
import { Session } from "../../../src/verbs/perf/session.js";
import { FakeNetwork } from "./fake_network.js";

const kServer = "10.0.0.1";
const kClient = "10.0.0.2";

function optionsFor(test: PerfTest, over: Partial<PerfOptions> = {}): PerfOptions {
  return {
    test,
    port: 18515,
    sizes: [4096],
    iterations: 20,
    qps: 1,
    depth: 8,
    bidirectional: false,
    gbits: false,
    cpuUtil: false,
    ...over,
  };
}

interface Ran {
  rows: Row[];
  session: Session;
}

/** Runs both ends to their ends; `serverOptions` only where they differ. */
async function both(
  network: FakeNetwork,
  options: PerfOptions,
  serverOptions = options,
): Promise<{ client: Ran; server: Ran }> {
  const signal = new AbortController().signal;
  const devices = { server: network.device(kServer), client: network.device(kClient) };
  const end = async (role: "client" | "server", own: PerfOptions): Promise<Ran> => {
    const rows: Row[] = [];
    const session = new Session(devices[role].verbs, role, own, signal);
    try {
      await session.open(role === "client" ? kServer : undefined);
      await run(session, (row) => rows.push(row));
    } finally {
      await session.close();
    }
    return { rows, session };
  };
  const [server, client] = await Promise.all([end("server", serverOptions), end("client", options)]);
  return { client, server };
}

/** Lengths of the client's messages on the control connection; in lat and send tests data are of another length. */
function steps(network: FakeNetwork, dataBytes: readonly number[]): number[] {
  return network.sent
    .filter(({ from, opcode, bytes }) => from === kClient && opcode === "send" && !dataBytes.includes(bytes.length))
    .map(({ bytes }) => bytes.length);
}

const kBeginning = [16, 4, 4, 2];
const times = (n: number, length = 56) => Array<number>(n).fill(length);

describe("a test between two ends", () => {
  // Numbers are counted in perftest 4.5: write_bw.c, read_bw.c, send_bw.c, write_lat.c, send_lat.c.
  it.each<[PerfTest, number, number[], number[]]>([
    ["write-bw", 1, [4096], [...times(2), ...times(3), 56, ...times(5, 8), 56]],
    ["write-bw", 3, [4096], [...times(2), ...times(7), 56, ...times(5, 8), 56]],
    ["read-bw", 2, [4096, 8192], [...times(2), ...times(5), 56, ...times(5, 8), 56]],
    ["send-bw", 2, [4096], [...times(2), ...times(5), 56, 56]],
    ["send-bw", 1, [4096, 8192], [...times(2), ...times(3), 56, 56, 56, 56, 56]],
    ["write-lat", 1, [4096], [...times(2), ...times(4)]],
    ["write-lat", 1, [4096, 8192], [...times(2), ...times(4)]],
    ["send-lat", 1, [4096, 8192], [...times(2), ...times(3), 56, 56, 56]],
  ])("takes perftest's steps: %s, %d queue pairs, sizes %j", async (test, qps, sizes, expected) => {
    const network = new FakeNetwork();
    const { client } = await both(network, optionsFor(test, { qps, sizes }));
    expect(steps(network, sizes)).toEqual([...kBeginning, ...expected]);
    expect(client.rows.map(({ size }) => size)).toEqual(sizes);
  });

  it.each(kPerfTests)("moves every message once, and reports it: %s", async (test) => {
    const network = new FakeNetwork();
    const qps = test.endsWith("-bw") ? 3 : 1;
    const { client, server } = await both(network, optionsFor(test, { qps }));
    const data = network.sent.filter(({ bytes }) => bytes.length === 4096);
    expect(data).toHaveLength(test.endsWith("-lat") ? 40 : 60);
    for (const { rows, session } of [client, server]) {
      const report = perfSchema.parse(reportOf(session, rows));
      const [row] = report.results;
      const sent = row?.message_tx ?? 0;
      const received = row?.message_complete_rx ?? 0;
      const sends = (session.role === "client") !== (test === "read-bw");
      expect([sent, received]).toEqual(test.endsWith("-lat") ? [20, 20] : sends ? [60, 0] : [0, 60]);
      expect(row?.cpu_seconds).toBeGreaterThanOrEqual(0);
    }
  });

  it("gives the server of write-bw the client's figures, whatever unit each of them shows", async () => {
    const options = optionsFor("write-bw");
    const { client, server } = await both(new FakeNetwork(), options, { ...options, gbits: true });
    const [theirs] = reportOf(client.session, client.rows).results;
    const [ours] = reportOf(server.session, server.rows).results;
    expect(ours?.data_rx_rate).toBeCloseTo(theirs?.data_tx_rate ?? 0, 6);
    expect(ours?.data_peak_rate).toBeCloseTo(theirs?.data_peak_rate ?? 0, 6);
  });

  it.each<[string, number, (figure: Buffer) => void]>([
    ["no size", 0, (size) => size.fill(0x7f, 0, 8)],
    ["no number of messages", 1, (count) => count.fill(0x7f, 0, 8)],
    ["no best rate", 2, (peak) => peak.writeDoubleBE(-1)],
    ["no average", 3, (average) => average.writeDoubleBE(1e-320)],
    ["no rate of messages", 4, (rate) => rate.writeDoubleBE(Number.POSITIVE_INFINITY)],
  ])("takes over nothing of a client's figures that can be %s", async (_, figure, falsify) => {
    const network = new FakeNetwork();
    const saidBy = (end: string) => network.sent.filter(({ from, opcode }) => from === end && opcode === "send").length;
    network.alter = (bytes) => {
      // The client tells its figures behind ten other steps, and the server answers each.
      if (saidBy(kClient) === 10 + figure && saidBy(kServer) === 10 + figure) falsify(bytes);
    };
    const ran = both(network, optionsFor("write-bw"));
    if (figure < 2) return expect(ran).rejects.toThrow("the peer is out of step: it tells of ");
    const { server } = await ran;
    const [row] = perfSchema.parse(JSON.parse(JSON.stringify(reportOf(server.session, server.rows)))).results;
    expect(row).toMatchObject({ size: 4096, message_complete_rx: 0, data_rx_rate: 0 });
  });

  it.each(kPerfTests)("ends after a time: %s", async (test) => {
    const { client } = await both(new FakeNetwork(), optionsFor(test, { seconds: 0.02, sizes: [1000] }));
    expect(client.rows).toHaveLength(1);
  });

  it("never has more under way than the depth, and keeps to the rate", async () => {
    const network = new FakeNetwork();
    // 20 messages of 4000 B at 32 Mbit/s: 1 ms each; the fake queue refuses what is too much.
    const { client } = await both(network, optionsFor("send-bw", { sizes: [4000], depth: 2, rate: 32e6 }));
    const [row] = client.rows;
    expect(row?.sample).toMatchObject({ messages: 20 });
    expect(row?.time).toBeGreaterThan(17);
  });

  // Sizes of perftest 4.5's messages with -b.
  const figures = times(5, 8);
  it.each<[PerfTest, number, number[], number[]]>([
    ["write-bw", 1, [4096], [...times(2), ...times(3), 56, ...figures, 56]],
    ["read-bw", 2, [4096, 8192], [...times(2), ...times(5), 56, 56, ...figures, 56, 56, ...figures, 56]],
    ["send-bw", 2, [4096], [...times(2), ...times(5), 56, ...figures, 56]],
    ["send-bw", 1, [4096, 8192], [...times(2), ...times(3), 56, ...figures, 56, 56, ...figures, 56, 56]],
  ])("takes perftest's steps both ways: %s, %d queue pairs, sizes %j", async (test, qps, sizes, expected) => {
    const network = new FakeNetwork();
    const { client, server } = await both(network, optionsFor(test, { qps, sizes, bidirectional: true }));
    expect(steps(network, sizes)).toEqual([...kBeginning, ...expected]);
    for (const { rows } of [client, server]) expect(rows.map(({ size }) => size)).toEqual(sizes);
  });

  it.each(["write-bw", "read-bw", "send-bw"] as const)(
    "moves every message once each way, and tells both: %s",
    async (test) => {
      const network = new FakeNetwork();
      const { client, server } = await both(network, optionsFor(test, { qps: 3, bidirectional: true }));
      for (const address of [kClient, kServer]) {
        const data = network.sent.filter(({ from, bytes }) => from === address && bytes.length === 4096);
        expect(data).toHaveLength(60);
      }
      const reports = [client, server].map(({ session, rows }) => perfSchema.parse(reportOf(session, rows)));
      for (const report of reports) {
        expect(report.bidirectional).toBe(true);
        const moved = { message_tx: 60, tx_bytes: 60 * 4096, message_complete_rx: 60, rx_bytes: 60 * 4096 };
        expect(report.results).toMatchObject([moved]);
      }
      // One end has received what the other has sent.
      const [one, other] = reports.map(({ results }) => results[0]);
      expect(one?.data_rx_rate).toBeCloseTo(other?.data_tx_rate ?? 0, 6);
      expect(other?.data_rx_rate).toBeCloseTo(one?.data_tx_rate ?? 0, 6);
      // Its table has the sum of both.
      const sum = (one?.data_rx_rate ?? 0) + (one?.data_tx_rate ?? 0);
      const gigabits = { ...client.session.options, gbits: true };
      Object.assign(client.session, { options: gigabits });
      const [, , , , average] = describeRow(client.session, client.rows[0] as Row).split(/\s+/);
      expect(Number(average)).toBeCloseTo(sum, 1);
    },
  );

  it.each(["write-bw", "read-bw", "send-bw"] as const)("ends after a time, both ways: %s", async (test) => {
    // The machine decides how long it takes until something counts.
    for (let seconds = 0.02; ; seconds *= 4) {
      const options = optionsFor(test, { seconds, sizes: [1000], bidirectional: true });
      const { client, server } = await both(new FakeNetwork(), options);
      expect([client.rows.length, server.rows.length]).toEqual([1, 1]);
      const told = [client, server].map(({ rows }) => rows[0]?.peer?.messages ?? 0);
      if (told.every((messages) => messages > 0)) return;
      expect(seconds, `messages ${told}`).toBeLessThan(5);
    }
  });
});

/** Errors with which the ends have failed. */
async function failures(network: FakeNetwork, options: PerfOptions, serverOptions: PerfOptions): Promise<WeirError[]> {
  const signal = new AbortController().signal;
  const end = async (role: "client" | "server", own: PerfOptions) => {
    const session = new Session(network.device(role === "client" ? kClient : kServer).verbs, role, own, signal);
    try {
      await session.open(role === "client" ? kServer : undefined);
      await run(session, () => {});
    } finally {
      await session.close();
    }
  };
  const ended = await Promise.allSettled([end("server", serverOptions), end("client", options)]);
  return ended.map((each) => (each.status === "rejected" ? (each.reason as WeirError) : new WeirError("none")));
}

describe("two ends with different options", () => {
  it.each<[string, Partial<PerfOptions>, Partial<PerfOptions>, string, string]>([
    ["tests", { test: "read-bw" }, {}, "read-bw -q 1 -s 4096 -n 20", "write-bw -q 1 -s 4096 -n 20"],
    ["numbers of queue pairs", { qps: 1 }, { qps: 2 }, "write-bw -q 1 ", "write-bw -q 2 "],
    ["directions", {}, { bidirectional: true }, "write-bw -q 1", "write-bw -b -q 1"],
    ["sizes", { sizes: [65_536] }, { sizes: [4096] }, "-s 65536", "-s 4096"],
    ["sizes, of SENDs", { test: "send-bw", sizes: [64] }, { test: "send-bw" }, "-s 64", "-s 4096"],
    ["numbers of sizes", { test: "send-bw", sizes: [2, 4096] }, { test: "send-bw" }, "-a", "-s 4096"],
    ["lengths", { test: "send-lat" }, { test: "send-lat", iterations: 30 }, "-n 20", "-n 30"],
    ["kinds of length", { test: "write-lat", seconds: 1 }, { test: "write-lat" }, "-D", "-n 20"],
  ])("of Weir: both say what each of them runs: %s", async (_, client, server, asked, served) => {
    const options = optionsFor("write-bw");
    const found = await failures(new FakeNetwork(), { ...options, ...client }, { ...options, ...server });
    for (const { hint } of found) expect(hint).toBe("give both sides the same test and options");
    const [ofServer, ofClient] = found.map(({ message }) => message);
    expect(ofServer).toMatch(new RegExp(`^the client at 10.0.0.2 asks for .*${asked}.*, and this is .*${served}`));
    expect(ofClient).toMatch(new RegExp(`^the server at 10.0.0.1 runs .*${served}.*, and this is .*${asked}`));
  });

  it.each<[string, Partial<PerfOptions>, Partial<PerfOptions>]>([
    ["a server with more room", { sizes: [64] }, { sizes: [4096] }],
    ["a server of WRITEs that counts on other numbers", { iterations: 5 }, { iterations: 50 }],
    ["a client of SENDs that runs for a time", { test: "send-bw", seconds: 0.01 }, { test: "send-bw" }],
  ])("go together all the same: %s", async (_, client, server) => {
    const options = optionsFor("write-bw");
    const { client: ran } = await both(new FakeNetwork(), { ...options, ...client }, { ...options, ...server });
    expect(ran.rows).toHaveLength(1);
  });

  it("one of them perftest's: the other says so when it has another number of queue pairs", async () => {
    const network = new FakeNetwork();
    network.isSilent = true;
    const options = optionsFor("write-bw");
    const [server, client] = await failures(network, options, { ...options, qps: 2 });
    expect(server?.message).toBe("the peer is out of step: it opened 1 of 2 queue pairs");
    expect(client?.message).toBe("the peer closed the connection");
    for (const { hint } of [server, client] as WeirError[]) expect(hint).toMatch(/same options|go together/);
  });

  it("one of them perftest's: both say so when the server's memory is smaller", async () => {
    const network = new FakeNetwork();
    network.isSilent = true;
    const options = optionsFor("write-bw", { sizes: [65_536] });
    const [server, client] = await failures(network, options, { ...options, sizes: [4096] });
    expect(client?.message).toContain("rem_access_err");
    expect(server?.message).toBe("the peer closed the connection");
    expect(server?.hint).toContain("the options of the two sides must go together");
  });
});

describe("the memory that a test takes", () => {
  it("is refused where the host has less, with what to do", () => {
    const options = optionsFor("write-bw", { qps: 1024, sizes: [2 ** 30] });
    const device = new FakeNetwork().device(kClient);
    expect(() => new Session(device.verbs, "client", options, new AbortController().signal)).toThrow(
      /^1024 queue pairs with messages of this size take 1024\.0 GiB, and \d+\.\d GiB are available$/,
    );
    expect(device.regions.size).toBe(0);
  });

  it("is a region of each queue pair, so that none is larger than a region may be", () => {
    const options = optionsFor("write-bw", { qps: 3, sizes: [1 << 20] });
    const device = new FakeNetwork().device(kClient);
    const session = new Session(device.verbs, "client", options, new AbortController().signal);
    const lengths = [...device.regions.values()].map(({ byteLength }) => byteLength);
    expect(lengths.filter((length) => length === 2 << 20)).toHaveLength(3);
    expect(new Set(session.local.map(({ rkey }) => rkey)).size).toBe(3);
  });
});
