/** `weir ping`: rping's client and server. */
import { Option } from "commander";
import { peerAddress } from "../verbs/peer_address.js";
import { kPingPort, kPingSize, kPingSizes, type Ping, pingClient, pingServer } from "../verbs/perf/ping.js";
import { type AddVerb, type CliContext, kExit, UsageError } from "./context.js";
import {
  addDeviceOptions,
  type DeviceChoice,
  integer,
  type OpenDevice,
  openRealDevice,
  withDevice,
} from "./device_options.js";
import { untilSignal } from "./stop_signals.js";

interface PingChoice extends DeviceChoice {
  client?: string | true;
  a?: string;
  server?: boolean;
  count?: number;
  size: number;
  verbose?: boolean;
  validate?: boolean;
  port: number;
  json?: boolean;
}

const kHelp = `
Speaks rping's protocol with Weir or with rping (rdma-core): for each ping the server reads the client's memory by RDMA READ
and writes the text back by RDMA WRITE. Needs CAP_NET_RAW, except with --nic. An --address that the kernel does not have is answered for by Weir.

Examples:
  weir ping -s -d eth1                                   serve one client; the other side: rping -c -a <address> -v
  weir ping -c -a 10.0.0.2 -d eth1 -C 1000 -V            1000 pings, every byte compared
  weir ping -c fd77::1 -d veth0 --address fd77::9/64 -v  from an address of its own; prints the texts

Exit status: 0 all pings came back, 1 they did not or an error, 2 bad usage, 130 and 143 after SIGINT and SIGTERM.
`;

export const addPing: AddVerb = (parent, context, done) => addPingOn(openRealDevice, parent, context, done);

/** Adds the verb for devices of the caller's. */
export function addPingOn(open: OpenDevice, ...[parent, context, done]: Parameters<AddVerb>): void {
  addDeviceOptions(parent.command("ping"))
    .description("ping by RDMA, as rping does")
    .option("-c, --client [address]", "ping the server there; its address here or with -a")
    .option("-a <address>", "address or name of the server, as rping has it")
    .option("-s, --server", "serve one client")
    .option("-C, --count <n>", "pings (default: no end)", integer("--count", 1, 2 ** 31 - 1))
    .addOption(
      new Option("-S, --size <bytes>", "bytes of a ping")
        .argParser(integer("--size", ...kPingSizes))
        .default(kPingSize),
    )
    .option("-v, --verbose", "print the texts")
    .option("-V, --validate", "compare what comes back")
    .option("-p, --port <port>", "RDMA CM port", integer("--port", 1, 65_535), kPingPort)
    .option("--json", "one JSON document on stdout at the end")
    .addHelpText("after", kHelp)
    .action(async (choice: PingChoice) => {
      const client = clientOf(choice);
      done(await untilSignal(context, (signal) => runPing(open, context, { ...choice, client }, signal)));
    });
}

/** Address to ping: `-c ADDRESS`, or `-c -a ADDRESS` as in rping. Undefined: it serves. */
function clientOf({ client, server, a: address }: PingChoice): string | undefined {
  const hint = "weir ping -s -d eth1 on one host, -c ADDRESS on the other";
  if (server) {
    if (client !== undefined) throw new UsageError("either -c ADDRESS or -s", { hint });
    if (address !== undefined) {
      throw new UsageError(`-a ${address}: a server listens on all addresses of its NIC`, {
        hint: "--address gives the NIC an address of its own",
      });
    }
    return;
  }
  if (client === undefined) throw new UsageError("either -c ADDRESS or -s", { hint });
  if (client === true) {
    if (address === undefined) throw new UsageError("-c: whom to ping?", { hint: "-c ADDRESS, or -c -a ADDRESS" });
    return address;
  }
  if (address !== undefined && address !== client)
    throw new UsageError(`-c ${client} and -a ${address} are two servers`);
  return client;
}

async function runPing(
  open: OpenDevice,
  { stdout, stderr }: CliContext,
  choice: Omit<PingChoice, "client"> & { client: string | undefined },
  signal: AbortSignal,
) {
  const { client, size, port, count = Number.POSITIVE_INFINITY, validate = false, verbose, json } = choice;
  /** us */
  const taken = { pings: 0, sum: 0, min: Number.POSITIVE_INFINITY, max: 0 };
  const onPing = ({ text, time }: Ping) => {
    taken.pings++;
    taken.sum += time;
    taken.min = Math.min(taken.min, time);
    taken.max = Math.max(taken.max, time);
    if (verbose && !json) stdout.write(`${client === undefined ? "server " : ""}ping data: ${text}\n`);
  };
  const report = () => {
    const { pings, sum, min, max } = taken;
    const times = pings === 0 ? undefined : { min, avg: sum / pings, max };
    if (json) {
      const end =
        client === undefined ? { role: "server" } : { role: "client", peer: client, size, validated: validate };
      stdout.write(`${JSON.stringify({ ...end, port, pings, round_trip_us: times }, undefined, 2)}\n`);
    } else if (times !== undefined) {
      const figures = [times.min, times.avg, times.max].map((time) => time.toFixed(1)).join("/");
      stdout.write(`${pings} pings${validate ? ", all unchanged" : ""}, round trip min/avg/max ${figures} us\n`);
    }
  };
  return withDevice(open, choice, signal, async (device) => {
    try {
      if (client !== undefined)
        await pingClient(
          device,
          await peerAddress(device, client),
          { port, size, count, verify: validate },
          signal,
          onPing,
        );
      else await pingServer(device, port, signal, () => stderr.write(`listening on port ${port}\n`), onPing);
    } finally {
      report();
    }
    return kExit.ok;
  });
}
