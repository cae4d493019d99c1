/** Sends single RoCEv2 frames and judges the answers. */
import { kRocePort } from "../wire/headers.js";
import type { ProbeNetwork } from "./network.js";
import type { Answer, ProbeReport } from "./report.js";
import {
  buildProbe,
  describeFrame,
  type Ecn,
  kAcknowledge,
  kCnp,
  type RoceFrame,
  readFrame,
  readUnreachable,
  type Unreachable,
} from "./roce_frame.js";

export interface ProbeOptions {
  /** Frames to send. */
  count: number;
  qpn: number;
  ecn: Ecn;
  /** Time to wait for answers after the last frame, ms. */
  timeout: number;
  signal: AbortSignal;
  /** Returns a number from 0 to 1, exclusive. */
  random: () => number;
}

/** Time between two frames: longer than an NP leaves between two CNPs (50 us), shorter than a person waits. */
const kIntervalMs = 50;
const kGraceMs = 20;
/** Frames of other traffic that are kept as evidence. */
const kMostOthers = 10;
/** DSCP of lossless RoCE in NVIDIA's convention: priority 3. */
const kDscp = 26;

/**
 * Probes a host. Fails with a WeirError where raw sockets cannot be opened or there is no route. Ends `timeout` after the last
 * frame, when aborted, or at once when everything that can be learned is known.
 */
export async function probe(network: ProbeNetwork, host: string, options: ProbeOptions): Promise<ProbeReport> {
  const address = await network.resolve(host);
  const source = await network.sourceFor(address);
  const sourcePort = 0xc000 + Math.floor(options.random() * 0x4000);
  const answers: Answer[] = [];
  const quoted: Unreachable[] = [];
  let failure: Error | undefined;
  let sent = 0;
  let others = 0;
  let started = 0;
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, options.signal]);
  const enough = () =>
    answers.some(({ kind }) => kind === "cnp" || kind === "icmp" || (kind !== "other" && options.ecn !== "ce"));

  const onPacket = (packet: Buffer) => {
    const time_ms = Math.round((network.now() - started) * 1000) / 1000;
    const frame = readFrame(packet);
    if (frame?.source === address) {
      const answer = fromFrame(frame, time_ms);
      // A frame that is no answer may be traffic, or our own when this host probes itself.
      if (answer.kind !== "other") answers.push(answer);
      else if (source !== address && others++ < kMostOthers) answers.push(answer);
    }
    const refusal = readUnreachable(packet);
    if (refusal?.destination === address && refusal.sourcePort === sourcePort) {
      quoted.push(refusal);
      const detail = `ICMP ${describeUnreachable(refusal.code)}, quotes ECN ${refusal.ecn}`;
      answers.push({ kind: "icmp", detail, source: refusal.source, time_ms });
    }
    if (sent === options.count && enough()) over.abort();
  };
  const link = await network.open(onPacket, (error) => {
    failure ??= error;
    over.abort();
  });
  try {
    started = network.now();
    const psn = firstPsn(options.random);
    while (sent < options.count && !signal.aborted) {
      if (sent > 0) await network.sleep(kIntervalMs, signal);
      const identification = 1 + Math.floor(options.random() * 0xffff);
      const { qpn, ecn } = options;
      await link.send(
        buildProbe({
          source,
          destination: address,
          sourcePort,
          identification,
          dscp: kDscp,
          ecn,
          qpn,
          psn: psn + sent,
        }),
      );
      sent++;
    }
    if (!enough()) await network.sleep(options.timeout, signal);
    // The kernel's refusal may come a moment before the answer of a NIC that shares its address.
    if (enough()) await network.sleep(Math.min(options.timeout, kGraceMs), options.signal);
  } finally {
    link.close();
  }
  if (failure) throw failure;
  const judged = verdict(options.ecn, answers, quoted);
  const notes: string[] = [];
  if (!link.portIsOurs) notes.push(`UDP ${kRocePort} of this host belongs to another socket or an rxe device`);
  if (judged.responder === "answers" && quoted.length > 0)
    notes.push("the responder's kernel refuses what its NIC answers");
  const { qpn, ecn } = options;
  return { address, source, qpn, ecn, sent, ...judged, answers, notes };
}

/**
 * First PSN, out of the way of traffic: in the past of a queue pair that began at 0 and of half of all others, which makes a probe
 * a duplicate there (answered, and forgotten); ahead of the other half, which answer with a NAK and wait for the PSNs between.
 */
function firstPsn(random: () => number): number {
  return 0xc0_0000 + Math.floor(random() * 0x20_0000);
}

function fromFrame(frame: RoceFrame, time_ms: number): Answer {
  const { source, ecn, qpn, psn, opcode, syndrome } = frame;
  const acknowledges = opcode === kAcknowledge;
  const kind = opcode === kCnp ? "cnp" : !acknowledges ? "other" : (syndrome ?? 0) >> 5 === 0 ? "ack" : "nak";
  return { kind, detail: describeFrame(frame), source, time_ms, ecn, qpn, psn, icrc_ok: frame.icrcOk };
}

function verdict(sent: Ecn, answers: readonly Answer[], quoted: readonly Unreachable[]) {
  const has = (...kinds: Answer["kind"][]) =>
    answers.some(({ kind, icrc_ok }) => kinds.includes(kind) && icrc_ok !== false);
  const responder = has("ack", "nak", "cnp", "other") ? "answers" : has("icmp") ? "refused" : "silent";
  const arrived = has("cnp") ? "ce" : quoted[0]?.ecn;
  if (arrived === undefined) return { responder, path_ecn: "unknown" } as const;
  // A congested switch on the way may mark: ECT asks for that, and the mark came through.
  const marked = arrived === "ce" && sent !== "not-ect";
  const path_ecn = arrived === sent || marked ? "survives" : "changed";
  return { responder, path_ecn, arrived_ecn: arrived } as const;
}

function describeUnreachable(code: number): string {
  const names: Readonly<Record<number, string>> = {
    0: "network unreachable",
    1: "host unreachable",
    2: "protocol unreachable",
    3: "port unreachable",
    9: "network prohibited",
    10: "host prohibited",
    13: "prohibited by a filter",
  };
  return names[code] ?? `unreachable, code ${code}`;
}
