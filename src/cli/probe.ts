/** `weir probe`: finds out whether there is a RoCEv2 responder, and whether ECN marks survive the path to it. */
import { Option } from "commander";
import { parseTime } from "../base/units.js";
import { kFirstQpn } from "../device/behaviour.js";
import { listen } from "../probe/listen.js";
import { type ProbeNetwork, realNetwork } from "../probe/network.js";
import { probe } from "../probe/probe.js";
import type { Arrival, ProbeReport } from "../probe/report.js";
import { type Ecn, kEcn } from "../probe/roce_frame.js";
import { type AddVerb, type CliContext, kExit, UsageError } from "./context.js";
import { parsed } from "./quantity.js";
import { untilSignal } from "./stop_signals.js";

interface ProbeOptions {
  count?: number;
  qpn: number;
  ecn: Ecn;
  /** ms */
  timeout?: number;
  listen?: boolean;
  json?: boolean;
}

const kProbes = 3;
const kTimeoutMs = 1000;

const kHelp = `
Sends RC WRITE ONLY frames of zero bytes, which name no memory; probe a queue pair without traffic, from the address that
it is connected to. Needs CAP_NET_RAW and the package raw-socket; IPv4 only.

Examples:
  weir probe 10.0.0.2 --ecn ce            a CNP that comes back proves that CE marks arrive
  weir probe 10.0.0.2 --qpn 0x12 --json
  weir probe --listen                     on the other host: the ECN bits that arrive

Exit status: 0 something answered, 1 nothing did or an error, 2 bad usage.
`;

export const addProbe: AddVerb = (parent, context, done) => addProbeOn(realNetwork, parent, context, done);

/** Adds the verb for a network of the caller's. */
export function addProbeOn(network: ProbeNetwork, ...[parent, context, done]: Parameters<AddVerb>): void {
  parent
    .command("probe")
    .description("send single RoCEv2 frames and see what comes back, or print those that arrive")
    .argument("[address]", "IPv4 address or name of the responder")
    .option("--count <n>", `frames to send, or to wait for (default: ${kProbes}; with --listen no end)`, natural)
    .option("--qpn <n>", "queue pair to probe", queuePair, kFirstQpn)
    .addOption(new Option("--ecn <field>", "ECN field of the frames").choices(kEcn).default("ect0"))
    .option("--timeout <time>", "how long to wait for answers (default: 1s), or to listen", milliseconds)
    .option("--listen", "send nothing, print RoCEv2 frames that arrive at this host")
    .option("--json", "one JSON document on stdout; with --listen one per frame and line")
    .addHelpText("after", kHelp)
    .action(async (address: string | undefined, options: ProbeOptions) => {
      if ((address === undefined) !== (options.listen === true)) {
        throw new UsageError(options.listen ? "--listen takes no address" : "no address to probe", {
          hint: "weir probe ADDRESS, or weir probe --listen",
        });
      }
      done(
        await untilSignal(context, (signal) =>
          address === undefined
            ? runListen(context, network, options, signal)
            : runProbe(context, network, address, options, signal),
        ),
      );
    });
}

async function runProbe(
  { stdout }: CliContext,
  network: ProbeNetwork,
  address: string,
  { count = kProbes, timeout = kTimeoutMs, qpn, ecn, json }: ProbeOptions,
  signal: AbortSignal,
): Promise<number> {
  const result = await probe(network, address, { count, timeout, qpn, ecn, signal, random: Math.random });
  stdout.write(json ? `${JSON.stringify(result, undefined, 2)}\n` : describe(result));
  return result.responder === "answers" ? kExit.ok : kExit.failure;
}

async function runListen(
  { stdout, stderr }: CliContext,
  network: ProbeNetwork,
  { count, timeout = Number.POSITIVE_INFINITY, json }: ProbeOptions,
  signal: AbortSignal,
): Promise<number> {
  const seen = new Map<Ecn, number>();
  const arrived = await listen(network, {
    count: count ?? Number.POSITIVE_INFINITY,
    timeout,
    signal,
    onReady: (portIsOurs) =>
      void stderr.write(
        `listening for RoCEv2${portIsOurs ? "" : "; UDP 4791 belongs to another socket or an rxe device"}\n`,
      ),
    onArrival: (arrival) => {
      seen.set(arrival.ecn, (seen.get(arrival.ecn) ?? 0) + 1);
      stdout.write(`${json ? JSON.stringify(arrival) : describeArrival(arrival)}\n`);
    },
  });
  const byEcn = [...seen].map(([ecn, n]) => `${ecn} ${n}`).join(", ");
  stderr.write(`${arrived} frame${arrived === 1 ? "" : "s"}${arrived === 0 ? "" : `: ${byEcn}`}\n`);
  return arrived > 0 && arrived >= (count ?? 0) ? kExit.ok : kExit.failure;
}

const kResponder = {
  answers: "answers",
  refused: "none: the packets were refused",
  silent: "silent: there is none, or no such queue pair that is connected to this address, or a filter",
} as const;

function describe(result: ProbeReport): string {
  const { address, source, sent, qpn, ecn } = result;
  const lines = [`probe ${address} from ${source}: ${sent} x RC WRITE ONLY of 0 bytes to QPN ${hex(qpn)}, ECN ${ecn}`];
  for (const answer of result.answers) {
    const about = [
      ...(answer.qpn === undefined ? [] : [`for QPN ${hex(answer.qpn)}`]),
      ...(answer.psn === undefined || answer.kind === "cnp" ? [] : [`PSN ${answer.psn}`]),
      ...(answer.ecn === undefined ? [] : [`ECN ${answer.ecn}`]),
      ...(answer.icrc_ok === false ? ["ICRC WRONG"] : []),
    ];
    lines.push(`  ${[`${answer.time_ms.toFixed(3)} ms  ${answer.detail} from ${answer.source}`, ...about].join(", ")}`);
  }
  lines.push(`responder  ${kResponder[result.responder]}`, `path ECN   ${describePath(result)}`);
  return [...lines, ...result.notes.map((note) => `note       ${note}`), ""].join("\n");
}

function describePath({ path_ecn, arrived_ecn, ecn, answers }: ProbeReport): string {
  if (path_ecn === "unknown") {
    return ecn === "ce" ? "unknown: no CNP came back" : "unknown: only --ecn ce is answered by a CNP";
  }
  const witness = answers.some(({ kind }) => kind === "cnp") ? "the CNP says so" : "the header that ICMP quotes";
  return `${path_ecn}: sent ${ecn}, arrived ${arrived_ecn} (${witness})`;
}

function describeArrival({ time_ms, source, destination, name, qpn, psn, ecn, dscp, ttl, icrc_ok }: Arrival): string {
  return (
    `${time_ms.toFixed(3)} ms  ${source} -> ${destination}  ECN ${ecn}, DSCP ${dscp}, TTL ${ttl}, ` +
    `${name} QPN ${hex(qpn)} PSN ${psn}, ICRC ${icrc_ok ? "ok" : "WRONG"}`
  );
}

function hex(qpn: number): string {
  return `0x${qpn.toString(16)}`;
}

function natural(text: string): number {
  return integer("--count", text, 1, 1_000_000);
}

function queuePair(text: string): number {
  return integer("--qpn", text, 0, 0xff_ffff);
}

function integer(option: string, text: string, least: number, most: number): number {
  const value = /^(0x[0-9a-f]+|\d+)$/i.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most)) {
    throw new UsageError(`${option} ${text}: not a number from ${least} to ${most}`);
  }
  return value;
}

function milliseconds(text: string): number {
  return parsed("--timeout", text, parseTime) / 1e6;
}
