/** perftest's and rping's protocols between two ends of ours, where what one says reaches the other changed. */
import { WeirError } from "../../../src/base/error.js";
import { kPerfTests, type PerfOptions } from "../../../src/verbs/perf/options.js";
import { pingClient, pingServer } from "../../../src/verbs/perf/ping.js";
import { describeRow, describeStart, perfSchema, reportOf } from "../../../src/verbs/perf/report.js";
import { type Row, run } from "../../../src/verbs/perf/run.js";
import { Session } from "../../../src/verbs/perf/session.js";
import { FakeNetwork } from "../../verbs/perf/fake_network.js";
import { Finding, type Input } from "../input.js";
import { kindOf } from "../mutate.js";
import type { Part } from "../protocols.js";

const kServer = "10.0.0.1";
const kClient = "10.0.0.2";
/** Ends that wait for what never comes are ended, ms. */
const kPatienceMs = 100;
/** Bytes of messages that are changed: control messages have no more. */
const kControl = 64;

export async function openPeers(): Promise<Part> {
  return {
    async run(input) {
      const network = new FakeNetwork();
      const moved: string[] = [];
      network.alter = (bytes) => {
        if (bytes.length <= kControl && input.once(8)) alter(input, bytes);
        moved.push(bytes.toString("hex", 0, kControl));
      };
      const stop = new AbortController();
      const timer = setTimeout(() => stop.abort(), kPatienceMs);
      try {
        const ends = input.once(2) ? pings(network, input, stop.signal) : perf(network, input, stop.signal);
        // The first end that fails ends the other.
        for (const end of ends) end.catch(() => closeAll(network, stop));
        const outcomes = await Promise.allSettled(ends);
        return outcomes.map((outcome) => {
          if (outcome.status === "fulfilled") return "done";
          const { reason } = outcome;
          if (reason instanceof WeirError) return kindOf(reason.message);
          if (reason === stop.signal.reason) return "stopped";
          throw new Finding((reason as Error).message, moved.join("\n"), { cause: reason });
        });
      } finally {
        clearTimeout(timer);
        closeAll(network, stop);
      }
    },
  };
}

function closeAll(network: FakeNetwork, stop: AbortController): void {
  stop.abort();
  for (const device of network.devices) device.close();
}

function alter(input: Input, bytes: Buffer): void {
  for (let changes = 1 + input.below(3); changes > 0; changes--) {
    const at = input.below(bytes.length);
    if (at < bytes.length)
      bytes[at] = input.once(2) ? (bytes[at] as number) ^ input.byte() : input.pick([0, 0x7f, 0x80, 0xff]);
  }
}

function pings(network: FakeNetwork, input: Input, signal: AbortSignal): Promise<unknown>[] {
  const [server, client] = [network.device(kServer).verbs, network.device(kClient).verbs];
  const options = { port: 7174, size: input.pick([26, 64, 4096]), count: 3, verify: input.once(2) };
  return [
    pingServer(
      server,
      7174,
      signal,
      () => {},
      () => {},
    ),
    pingClient(client, kServer, options, signal, () => {}),
  ];
}

function perf(network: FakeNetwork, input: Input, signal: AbortSignal): Promise<unknown>[] {
  const test = input.pick(kPerfTests);
  const options: PerfOptions = {
    test,
    port: 18_515,
    sizes: input.pick([[64], [2, 4096], [65_536]]),
    iterations: 5,
    qps: 1 + input.below(3),
    depth: 4,
    bidirectional: test.endsWith("-bw") && input.once(2),
    gbits: input.once(2),
    cpuUtil: false,
  };
  const devices = { server: network.device(kServer), client: network.device(kClient) };
  return (["server", "client"] as const).map(async (role) => {
    const rows: Row[] = [];
    const session = new Session(devices[role].verbs, role, options, signal);
    try {
      await session.open(role === "client" ? kServer : undefined);
      describeStart(session);
      await run(session, (row) => rows.push(row));
      for (const row of rows) describeRow(session, row);
      perfSchema.parse(JSON.parse(JSON.stringify(reportOf(session, rows))));
    } finally {
      await session.close();
    }
  });
}
