/** Words on congestion in a captured frame: the comment beside it in a pcapng file. */
import { kEtherType } from "../../wire/headers.js";
import { kPriorities } from "../../wire/priority.js";
import { type Frames, kFrameKinds, kRefusals } from "./frames.js";

/** The rate of the link by which pause quanta are told as times. */
export interface CommentRate {
  /** Rate, bit/s; 0: quanta are not told as times. */
  rate: number;
  /** Whether the rate is that of the network that a scenario means, and not that of the link that stands for it. */
  meant: boolean;
}

const kEcn = ["Not-ECT: cannot be marked", "ECT(1)", "ECT(0)", "CE: congestion experienced"] as const;
/** One quantum is the time of so many bits at the link's rate (IEEE 802.3 annex 31B). */
const kQuantumBits = 512;
/** Ethernet header and opcode. */
const kParameters = 16;
const kPauseLength = 18;
const kPfcLength = 34;
const kCnmPdu = 24;
const kCnmUnit = 64;

/** Comment in ASCII, "" if there is nothing to say. A frame that was cut too short gets a shorter one. Any bytes are safe. */
export function commentOn(frame: Frames, rate: CommentRate): string {
  const statements = [statement(frame, rate)];
  if (frame.refusal !== 0) statements.push(`not understood: ${kRefusals[frame.refusal]}`);
  if (frame.segmentSize > 0) {
    statements.push(`super-frame: the interface cuts it into segments of ${frame.segmentSize} bytes`);
  } else if (frame.needsChecksum) {
    statements.push("checksum left to the interface");
  }
  return statements.filter((text) => text !== "").join("; ");
}

/** Whether the comment depends only on the frame's kind, its refusal and the sender's work, not on its bytes. */
export function saysTheSame({ kind }: Frames): boolean {
  const name = kFrameKinds[kind];
  return name === "roce" || name === "other" || name === "mac_control";
}

function statement(frame: Frames, rate: CommentRate): string {
  switch (kFrameKinds[frame.kind]) {
    case "pfc":
      return pfc(frame.frame(), rate);
    case "pause":
      return pause(frame.frame(), rate);
    case "cnm":
      return cnm(frame.frame());
    case "cnp":
      return `CNP for QP 0x${frame.destinationQp.toString(16)} (reaction point cuts)`;
    case "mac_control":
      return "MAC control of an unknown kind";
    case "roce":
      return frame.isIp ? (kEcn[frame.ecn] ?? "") : "";
    default:
      return frame.isIp && frame.ecn !== 0 ? (kEcn[frame.ecn] ?? "") : "";
  }
}

/** Comment on a PFC frame: priorities of one pause stand together. */
function pfc(bytes: Uint8Array, rate: CommentRate): string {
  if (bytes.length < kPfcLength) return "";
  const view = viewOf(bytes);
  const enable = view.getUint8(kParameters + 1);
  const groups = new Map<number, number[]>();
  for (const priority of kPriorities) {
    if (((enable >> priority) & 1) === 0) continue;
    const quanta = view.getUint16(kParameters + 2 + 2 * priority);
    groups.set(quanta, [...(groups.get(quanta) ?? []), priority]);
  }
  const told = [...groups].map(([quanta, priorities]) => {
    const which = `${priorities.length === 1 ? "priority" : "priorities"} ${priorities.join(", ")}`;
    return `${which} ${paused(quanta, rate)}`;
  });
  return `PFC: ${told.join(", ") || "no priority"}`;
}

function pause(bytes: Uint8Array, rate: CommentRate): string {
  if (bytes.length < kPauseLength) return "";
  return `PAUSE: the link ${paused(viewOf(bytes).getUint16(kParameters), rate)}`;
}

function paused(quanta: number, { rate, meant }: CommentRate): string {
  if (quanta === 0) return "may send";
  const time =
    rate > 0 ? ` = ${duration((quanta * kQuantumBits * 1e9) / rate)} at ${speed(rate)}${meant ? " (meant)" : ""}` : "";
  return `paused for ${quanta} quanta${time}`;
}

/** Comment on a CNM; see native/wire/qcn.h. */
function cnm(bytes: Uint8Array): string {
  const view = viewOf(bytes);
  let at = 12;
  if (at + 2 <= bytes.length && view.getUint16(at) === kEtherType.vlan) at += 4;
  if (at + 2 <= bytes.length && view.getUint16(at) === kEtherType.cnTag) at += 4;
  at += 2;
  if (at + kCnmPdu > bytes.length || at + kCnmPdu + view.getUint16(at + 22) > bytes.length) return "";
  const queue = view.getInt16(at + 10) * kCnmUnit;
  const change = view.getInt16(at + 12) * kCnmUnit;
  return [
    `CNM for priority ${view.getUint8(at + 14) >> 5}: fb ${view.getUint8(at + 1) & 63} of 63 (reaction point cuts)`,
    `queue ${Math.abs(queue)} B ${queue < 0 ? "below" : "above"} its set point`,
    `${Math.abs(change)} B ${change < 0 ? "less" : "more"} than at the sample before`,
    `congestion point ${view
      .getBigUint64(at + 2)
      .toString(16)
      .padStart(16, "0")}`,
  ].join(", ");
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function duration(ns: number): string {
  if (ns < 1e3) return `${significant(ns)} ns`;
  return ns < 1e6 ? `${significant(ns / 1e3)} us` : `${significant(ns / 1e6)} ms`;
}

function speed(rate: number): string {
  return rate >= 1e9 ? `${significant(rate / 1e9)} Gb/s` : `${significant(rate / 1e6)} Mb/s`;
}

/** Four digits, without zeros at the end. */
function significant(value: number): string {
  return String(Number(value.toPrecision(4)));
}
