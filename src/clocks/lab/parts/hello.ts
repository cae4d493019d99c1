/**
 * Hellos that parts of a lab send each other on the links that join them: Ethernet frames of their own, which the lab's devices never see.
 */
import { z } from "zod";
import { kMostParts } from "../../../scenario/parts.js";
import { buildEthernet } from "../../../wire/ethernet.js";
import { kEthernetHeader } from "../../../wire/headers.js";

/** Local Experimental EtherType 1 (IEEE 802, clause 9.2.4). */
export const kHelloEthertype = 0x88b5;
/** Group address of the frames: locally administered. */
const kGroup = 0x0357_4500_0001;
/** Longest `why`, characters: with it and all parts a hello is no longer than the least MTU that a link may have. */
const kLongestWhy = 70;

/** States of a part. `ready`: all is open; `calm`: traffic is over and no frame is under way; `ended`: it is gone. */
export const kStates = ["waiting", "ready", "running", "calm", "ended"] as const;
export type PartState = (typeof kStates)[number];

const count = z.int().min(0);
const time = z.number();

/** Hello of a part. Times are ns of the sender's CLOCK_MONOTONIC unless the field says otherwise. */
const helloSchema = z.object({
  /** Digest of the scenario with all that was set: both ends run the same. */
  digest: z.string().max(64),
  /** Position of the sender among the parts, and that of the link that this is sent on among the scenario's. */
  part: count,
  link: count,
  /** Number of the run: the time at which the first part began, ms since 1970 by its clock; 0: the sender has not heard of it. */
  run: count,
  sent: time,
  /** The latest hello from the other end: its `sent`, and its time of arrival. */
  heard: z.tuple([time, time]).nullable(),
  /** Time by which the first part's clock is ahead of the sender's, ns, and over how many links that is known. */
  root: z.tuple([time, count]).nullable(),
  /** Start of traffic, by the first part's clock. */
  start: time.nullable(),
  /** State of each part, by its position in kStates, and a number that is higher than those of its states before. */
  states: z
    .array(
      z.tuple([
        z
          .int()
          .min(0)
          .max(kStates.length - 1),
        count,
      ]),
    )
    .max(kMostParts),
  /** Reason why the sender has ended before its time. */
  why: z.string().max(kLongestWhy).optional(),
});
export type Hello = z.output<typeof helloSchema>;

/** @param source MAC address of the interface that it is sent on. */
export function encodeHello(hello: Hello, source: number): Buffer {
  const { why } = hello;
  const told = why === undefined ? hello : { ...hello, why: why.slice(0, kLongestWhy) };
  return buildEthernet(kGroup, source, kHelloEthertype, Buffer.from(JSON.stringify(told)));
}

/** Returns undefined for a frame that is no hello. */
export function decodeHello(frame: Buffer): Hello | undefined {
  try {
    // Short frames are padded on the way.
    const text = frame.subarray(kEthernetHeader).toString("utf8").replace(/\0+$/, "");
    return helloSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
