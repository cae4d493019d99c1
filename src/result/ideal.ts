/** Ideal completion times: the time that a message takes alone in the empty network. */

import type { Hop } from "../scenario/fabric.js";
import type { Flow } from "../scenario/types.js";
import { kCnTagBytes, kHeaderBytes, kTelemetryBytes, wireBytes } from "../wire/frame_size.js";

export interface IdealMessage {
  bytes: number;
  /** Longer transfers are sent as messages of this many bytes. */
  message: number;
  pathMtu: number;
  operation: Flow["operation"];
  /** Packets in flight. A READ is asked for in parts of a quarter of them. */
  window: number;
  /** Packets carry a CN-TAG. */
  tagged: boolean;
  /** Packets and acknowledgements have a header for telemetry. */
  telemetry: boolean;
  /** Limit to the rate, bit/s; undefined: the link's. */
  rateCap: number | undefined;
  /** True: complete when the acknowledgement is back; false: when the last bit has arrived. */
  reliable: boolean;
}

/** RDMA extended header, in the first packet of a WRITE and the request of a READ. */
const kReth = 16;
/** ACK extended header, in the first and the last packet that answer the request of a READ, too. */
const kAeth = 4;
/**
 * Packets at either end of a message that are followed one by one. The others between them are alike, and come at the slowest link's pace.
 */
const kFollowed = 32;

/**
 * Completion time in ns. Each link i of the path sends packet p as soon as it has it whole and the packet before has left:
 *
 *     T(p, i) = max(T(p, i - 1) + delay(i - 1), T(p - 1, i)) + 8 w(p) / rate(i)
 *     T(p, 0) = T(p - 1, 0) + 8 w(p - 1) / rateCap
 *
 * with w(p) the bytes that the packet takes of a link (58 bytes of headers, 4 more with a CN-TAG, 64 more with telemetry, 16 more in the first packet of a WRITE,
 * 4 more in those that begin and end an answer to a READ, payload padded to 4 bytes, 24 of FCS, preamble and gap). The message is there at
 * T(n, k) + delay(k), which is all packets on the slowest link, one packet on each other link, and propagation. Reliable: plus an
 * acknowledgement on each link of the way back, sum of 8 x 86 / rate(i) + delay(i) (64 bytes more with telemetry), after it, or the request of a READ before it,
 * of 98 bytes. Links of rate 0 take no time. A frame is there at a whole ns, rounded down, as it is for the
 * native core's links.
 */
export function idealTime(path: readonly Hop[], transfer: IdealMessage): number {
  const links = path.map(({ link }) => ({ perByte: link.rate > 0 ? 8e9 / link.rate : 0, delay: link.delay }));
  const capPerByte = transfer.rateCap === undefined ? 0 : 8e9 / transfer.rateCap;
  const back = (bytes: number) => links.reduce((sum, { perByte, delay }) => sum + whole(bytes * perByte) + delay, 0);
  const telemetry = transfer.telemetry ? kTelemetryBytes : 0;
  const headers = kHeaderBytes + (transfer.tagged ? kCnTagBytes : 0) + telemetry;
  const done = new Float64Array(links.length);
  let released = transfer.operation === "read" ? back(wireBytes(headers + kReth)) : 0;
  const send = (bytes: number) => {
    let at = released;
    links.forEach(({ perByte, delay }, i) => {
      const before = done[i] as number;
      done[i] = (at > whole(before) ? at : before) + bytes * perByte;
      at = whole(done[i] as number) + delay;
    });
    released += bytes * capPerByte;
  };
  const skip = (bytes: number) => {
    let slowest = capPerByte;
    released += bytes * capPerByte;
    links.forEach(({ perByte }, i) => {
      slowest = Math.max(slowest, perByte);
      done[i] = (done[i] as number) + bytes * slowest;
    });
  };
  for (let left = transfer.bytes; left > 0; left -= transfer.message) {
    sendMessage(Math.min(left, transfer.message), transfer, headers, send, skip);
  }
  const arrived = whole(done.at(-1) ?? 0) + (links.at(-1)?.delay ?? 0);
  const acknowledged = transfer.reliable && transfer.operation !== "read";
  return acknowledged ? arrived + back(wireBytes(kHeaderBytes + kAeth + telemetry)) : arrived;
}

/** Rounds down, but forgives what doubles have lost. */
function whole(ns: number): number {
  return Math.floor(ns + 1e-6);
}

/** Counts those of the first packets that begin or end a part of `part` packets. */
function ends(packets: number, part: number): number {
  return part === 1 ? packets : Math.ceil(packets / part) + Math.floor(packets / part);
}

/** Hands each packet's link bytes to `send`, and those of a long row of equal ones, together, to `skip`. */
function sendMessage(
  bytes: number,
  { pathMtu, operation, window }: IdealMessage,
  headers: number,
  send: (bytes: number) => void,
  skip: (bytes: number) => void,
): void {
  const count = Math.ceil(bytes / pathMtu);
  const skipped = Math.max(0, count - 2 * kFollowed);
  const part = Math.max(1, Math.floor(window / 4));
  const extension = (i: number) => {
    if (operation === "read") return i % part === 0 || i % part === part - 1 || i === count - 1 ? kAeth : 0;
    return operation === "write" && i === 0 ? kReth : 0;
  };
  for (let i = 0; i < count; i++) {
    if (i === kFollowed && skipped > 0) {
      const extensions = operation === "read" ? kAeth * (ends(i + skipped, part) - ends(i, part)) : 0;
      skip(skipped * wireBytes(headers + 4 * Math.ceil(pathMtu / 4)) + extensions);
      i += skipped;
    }
    send(wireBytes(headers + 4 * Math.ceil(Math.min(pathMtu, bytes - i * pathMtu) / 4) + extension(i)));
  }
}
