/** `weir perf`: bandwidth and latency as perftest measures them. */
import { Argument, Option } from "commander";
import { parseRate, parseSize, parseTime } from "../base/units.js";
import { writeWhole } from "../base/write_file.js";
import { peerAddress } from "../verbs/peer_address.js";
import {
  defaultsOf,
  isLatency,
  kAllSizes,
  kDefaultPort,
  kPerfTests,
  type PerfOptions,
  type PerfTest,
} from "../verbs/perf/options.js";
import {
  describeCost,
  describeFigure,
  describeRow,
  describeStart,
  type Figure,
  kFigures,
  reportOf,
} from "../verbs/perf/report.js";
import { type Row, run } from "../verbs/perf/run.js";
import { Session } from "../verbs/perf/session.js";
import { type AddVerb, type CliContext, kExit, UsageError } from "./context.js";
import {
  addDeviceOptions,
  addressesOf,
  type DeviceChoice,
  integer,
  type OpenDevice,
  openRealDevice,
  withDevice,
} from "./device_options.js";
import { parsed } from "./quantity.js";
import { untilSignal } from "./stop_signals.js";

interface PerfChoice extends DeviceChoice {
  size?: number;
  all?: boolean;
  iters?: number;
  duration?: number;
  qp: number;
  txDepth?: number;
  mtu?: number;
  port: number;
  rateLimit?: number;
  reportGbits?: boolean;
  report_gbits?: boolean;
  bidirectional?: boolean;
  gidIndex?: number;
  cpuUtil?: boolean;
  cpu_util?: boolean;
  json?: boolean;
  output?: Figure;
  out_json?: boolean;
  out_json_file?: string;
}

const kMostBytes = 2 ** 30;
/** Default of perftest's --out_json. */
const kJsonFile = "perftest_out.json";
const kMostQps = 1024;
const kMtus = ["256", "512", "1024", "2048", "4096"];

const kHelp = `
Without a server's address it is the server, and waits for one client. Give both sides the same options. The other side may be
Weir or perftest 4.5 or later with -R (ib_write_bw -R ...); parameters are exchanged over RDMA CM, as -R has it. Needs CAP_NET_RAW,
except with --nic. An --address that the kernel does not have is answered for by Weir.

Examples:
  weir perf write-bw -d eth1 -s 1MiB -q 4 -D 10                 server
  weir perf write-bw 10.0.0.2 -d eth1 -s 1MiB -q 4 -D 10        client: four queue pairs, ten seconds
  weir perf send-lat 10.0.0.2 -d eth1 -n 10000 --json
  weir perf write-bw 10.0.0.2 -d eth1 -b -D 10 -F -x 0          both ways, as hands that know perftest type it
  weir perf write-bw 10.0.0.2 --nic roce0 -D 10                 by a running weir nic, as an ordinary user
  weir perf read-bw 10.0.0.2 -d veth0 --address 10.0.0.9/24 -a  all sizes, from an address of its own

Exit status: 0 measured, 1 an error, 2 bad usage, 130 and 143 after SIGINT and SIGTERM.
`;

export const addPerf: AddVerb = (parent, context, done) => addPerfOn(openRealDevice, parent, context, done);

/** Adds the verb for devices of the caller's. */
export function addPerfOn(open: OpenDevice, ...[parent, context, done]: Parameters<AddVerb>): void {
  addDeviceOptions(parent.command("perf"))
    .description("measure bandwidth and latency, as perftest does")
    .addArgument(new Argument("<test>", "what to measure").choices(kPerfTests))
    .argument("[server]", "address or name of the server; none: be the server")
    .option("-s, --size <bytes>", "bytes of a message (default: 65536, latency 2)", size)
    .option("-a, --all", "all sizes from 2 B to 8 MiB")
    .option("-n, --iters <n>", "messages of each queue pair (default: 1000, write-bw 5000)", integer("--iters", 5, 1e9))
    .option("-D, --duration <seconds>", "run for so long; the first and the last quarter do not count", seconds)
    .option("-q, --qp <n>", "queue pairs", integer("--qp", 1, kMostQps), 1)
    .option(
      "-t, --tx-depth <n>",
      "messages under way for each queue pair (default: 128)",
      integer("--tx-depth", 1, 32_768),
    )
    .addOption(new Option("-m, --mtu <bytes>", "path MTU (default: what fits the interface)").choices(kMtus))
    .option("-b, --bidirectional", "both ends send; figures are of both together (bandwidth only)")
    .option("-R, --rdma-cm", "connect by RDMA CM; always so, taken because perftest needs it")
    .option("-p, --port <port>", "RDMA CM port", integer("--port", 1, 65_535), kDefaultPort)
    .option("--rate-limit <rate>", "payload of all queue pairs together, such as 2Gbps", rate)
    .option("--report-gbits", "Gb/sec instead of MiB/sec; also --report_gbits")
    .addOption(new Option("--report_gbits").hideHelp())
    .option("--cpu-util", "how busy the host's CPUs were; also --cpu_util")
    .addOption(new Option("--cpu_util").hideHelp())
    .option(
      "-x, --gid-index <n>",
      "use the NIC's address with this GID, as programs number them: 0 is its first address",
      integer("--gid-index", 0, 255),
    )
    .option("-i, --ib-port <n>", "port of the device: it has one, 1", integer("--ib-port", 1, 1))
    .option("-F, --CPU-freq", "nothing: CPU frequencies do not matter here; taken because perftest needs it")
    .option("--json", "one JSON document on stdout at the end, and nothing else")
    .option("--output <figure>", "that figure alone on stdout: bandwidth, message_rate or latency", figure)
    .option("--out_json", `write the document to ${kJsonFile}, or to --out_json_file`)
    .option("--out_json_file <file>", "write the document to this file too")
    .addHelpText("after", kHelp)
    .action(async (test: PerfTest, server: string | undefined, choice: PerfChoice) => {
      const options = optionsOf(test, choice);
      done(await untilSignal(context, (signal) => runPerf(open, context, server, choice, options, signal)));
    });
}

function optionsOf(test: PerfTest, choice: PerfChoice): PerfOptions {
  const defaults = defaultsOf(test);
  const { qp, duration, rateLimit, mtu, iters = defaults.iterations, txDepth = defaults.depth } = choice;
  if (choice.all && choice.size !== undefined) throw new UsageError("-a and -s exclude each other");
  if (choice.all && duration !== undefined) throw new UsageError("-a and -D exclude each other", { hint: "use -n" });
  if (isLatency(test) && (qp > 1 || rateLimit !== undefined || choice.txDepth !== undefined || choice.bidirectional)) {
    throw new UsageError(`${test} sends one message at a time: -q, -t, -b and --rate-limit are for bandwidth`);
  }
  if (choice.output !== undefined && isLatency(test) !== (choice.output === "latency")) {
    const hint = isLatency(test) ? "--output=latency" : "--output=bandwidth or --output=message_rate";
    throw new UsageError(`--output ${choice.output}: not a figure of ${test}`, { hint });
  }
  if (choice.output !== undefined && choice.json) throw new UsageError("--json and --output exclude each other");
  return {
    test,
    port: choice.port,
    sizes: choice.all ? kAllSizes : [choice.size ?? defaults.size],
    iterations: iters,
    qps: qp,
    depth: duration === undefined ? Math.min(txDepth, iters) : txDepth,
    bidirectional: choice.bidirectional ?? false,
    gbits: choice.reportGbits ?? choice.report_gbits ?? false,
    cpuUtil: choice.cpuUtil ?? choice.cpu_util ?? false,
    ...(duration !== undefined && { seconds: duration }),
    ...(rateLimit !== undefined && { rate: rateLimit }),
    ...(mtu !== undefined && { mtu: Number(mtu) }),
  };
}

async function runPerf(
  open: OpenDevice,
  { stdout }: CliContext,
  server: string | undefined,
  choice: PerfChoice,
  options: PerfOptions,
  signal: AbortSignal,
): Promise<number> {
  const { json, output: only } = choice;
  const file = choice.out_json_file ?? (choice.out_json ? kJsonFile : undefined);
  const print = (text: string) => void (json || only !== undefined || stdout.write(text));
  return withDevice(open, chosenAddress(choice), signal, async (device) => {
    const rows: Row[] = [];
    const session = new Session(device, server === undefined ? "server" : "client", options, signal);
    try {
      if (server === undefined) print(kWaiting);
      await session.open(server === undefined ? undefined : await peerAddress(device, server));
      print(describeStart(session));
      await run(session, (row) => {
        rows.push(row);
        print(describeRow(session, row));
        if (only !== undefined) stdout.write(describeFigure(session, row, only));
      });
      print(describeCost(rows));
    } finally {
      await session.close();
    }
    const document = `${JSON.stringify(reportOf(session, rows), undefined, 2)}\n`;
    if (json) stdout.write(document);
    if (file !== undefined) writeWhole(file, document);
    return kExit.ok;
  });
}

/** Chooses the address by its GID, if one is asked for. */
function chosenAddress(choice: PerfChoice): DeviceChoice {
  const { device, gidIndex: index } = choice;
  if (index === undefined) return choice;
  if (device === undefined) {
    if (index === 0 || choice.nic === undefined) return choice;
    throw new UsageError(`-x ${index}: connections on a daemon's NIC are at its first address, -x 0`);
  }
  const { address = addressesOf(device) } = choice;
  const own = address[index];
  if (own !== undefined) return { device, address: [own] };
  throw new UsageError(`-x ${index}: ${device} has no such GID here`, {
    hint: `it has ${address.map((prefix, i) => `-x ${i}: ${prefix}`).join(", ")}`,
  });
}

const kStars = "*".repeat(36);
const kWaiting = `\n${kStars}\n* Waiting for client to connect... *\n${kStars}\n`;

function size(text: string): number {
  const bytes = /^\d+$/.test(text) ? Number(text) : parsed("--size", text, parseSize);
  if (bytes >= 1 && bytes <= kMostBytes) return bytes;
  throw new UsageError(`--size ${text}: not a size from 1 B to 1 GiB`);
}

function figure(text: string): Figure {
  const found = kFigures.find((name) => name === text);
  if (found !== undefined) return found;
  throw new UsageError(`--output ${text}: not a figure`, {
    hint: `it is one of ${kFigures.join(", ")}, as in perftest; --out_json_file ${text} writes the JSON document to a file`,
  });
}

function seconds(text: string): number {
  const time = /^\d+(\.\d+)?$/.test(text) ? Number(text) : parsed("--duration", text, parseTime) / 1e9;
  if (time > 0) return time;
  throw new UsageError(`--duration ${text}: not a time above 0`);
}

function rate(text: string): number {
  const bits = parsed("--rate-limit", text, parseRate);
  if (bits > 0) return bits;
  throw new UsageError(`--rate-limit ${text}: not a rate above 0`);
}
