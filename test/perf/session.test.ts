import { describe, expect, it } from "vitest";
import type { PerfOptions, PerfTest } from "../../src/perf/options.js";
import { kPerfTests } from "../../src/perf/options.js";
import { perfSchema, reportOf } from "../../src/perf/report.js";
import { type Row, run } from "../../src/perf/run.js";
import { Session } from "../../src/perf/session.js";
import { FakeNetwork } from "./fake_network.js";

const kServer = "10.0.0.1";
const kClient = "10.0.0.2";

function optionsFor(test: PerfTest, over: Partial<PerfOptions> = {}): PerfOptions {
  return { test, port: 18515, sizes: [4096], iterations: 20, qps: 1, depth: 8, gbits: false, ...over };
}

interface Ran {
  rows: Row[];
  session: Session;
}

/** Both ends to their ends; `serverOptions` only where they differ. */
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

/** Lengths of what the client said on the control connection; in lat and send tests data are of another length. */
function steps(network: FakeNetwork, dataBytes: readonly number[]): number[] {
  return network.sent
    .filter(({ from, opcode, bytes }) => from === kClient && opcode === "send" && !dataBytes.includes(bytes.length))
    .map(({ bytes }) => bytes.length);
}

const kBeginning = [16, 4, 4, 2];
const times = (n: number, length = 56) => Array<number>(n).fill(length);

describe("a test between two ends", () => {
  // Counted in perftest 4.5: write_bw.c, read_bw.c, send_bw.c, write_lat.c, send_lat.c.
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
      // The client says its figures behind ten other steps, and the server answers each.
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

  it("says so when the other end has another number of queue pairs", async () => {
    const options = optionsFor("write-bw");
    const outcome = both(new FakeNetwork(), options, { ...options, qps: 2 });
    await expect(outcome).rejects.toThrow("the peer is out of step: it opened 1 of 2 queue pairs");
  });

  it("says so when the other end's memory is smaller", async () => {
    const options = optionsFor("write-bw", { sizes: [65536] });
    await expect(both(new FakeNetwork(), options, { ...options, sizes: [4096] })).rejects.toThrow("rem_access_err");
  });
});
