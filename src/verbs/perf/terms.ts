/**
 * Terms of a test that two ends must have in common, told before anything else. perftest tells nothing of this: its ends wait for
 * messages that never come. A Weir that asks puts it into the private data of its first connection request, which perftest does
 * not look at; a Weir that is asked for another test puts its own into its refusal.
 */
import { isLatency, isSend, kPerfTests, type PerfOptions } from "./options.js";

const kMagic = Buffer.from("weirperf1", "latin1");
const kBytes = kMagic.length + 2 + 5 * 4;

export interface Terms {
  test: number;
  bidirectional: boolean;
  isTimed: boolean;
  qps: number;
  /** Number of sizes, and the first and the last one, in bytes. */
  sizes: number;
  first: number;
  last: number;
  /** 0 when timed. */
  iterations: number;
}

export function termsOf({ test, bidirectional, seconds, qps, sizes, iterations }: PerfOptions): Terms {
  return {
    test: kPerfTests.indexOf(test),
    bidirectional,
    isTimed: seconds !== undefined,
    qps,
    sizes: sizes.length,
    first: sizes[0] ?? 0,
    last: sizes.at(-1) ?? 0,
    iterations: seconds === undefined ? iterations : 0,
  };
}

export function encodeTerms({ test, bidirectional, isTimed, qps, sizes, first, last, iterations }: Terms): Buffer {
  const message = Buffer.alloc(kBytes);
  kMagic.copy(message);
  let at = message.writeUInt8(test, kMagic.length);
  at = message.writeUInt8(Number(bidirectional) | (Number(isTimed) << 1), at);
  for (const value of [qps, sizes, first, last, iterations]) at = message.writeUInt32BE(value, at);
  return message;
}

/** Decodes private data of a request or a refusal, which may be padded; undefined: they are not from Weir. */
export function decodeTerms(data: Uint8Array): Terms | undefined {
  const message = Buffer.from(data);
  if (message.length < kBytes || !kMagic.equals(message.subarray(0, kMagic.length))) return;
  let at = kMagic.length;
  const [test, flags] = [message.readUInt8(at++), message.readUInt8(at++)];
  const [qps, sizes, first, last, iterations] = Array.from({ length: 5 }, (_, i) => message.readUInt32BE(at + 4 * i));
  return {
    test,
    bidirectional: (flags & 1) !== 0,
    isTimed: (flags & 2) !== 0,
    qps,
    sizes,
    first,
    last,
    iterations,
  } as Terms;
}

/** Tells whether they can be two ends of one test. For WRITEs and READs one way, a server has only to have enough room. */
export function goTogether(client: Terms, server: Terms): boolean {
  const { test, bidirectional, qps } = server;
  if (client.test !== test || client.bidirectional !== bidirectional || client.qps !== qps) return false;
  const name = kPerfTests[test];
  if (name === undefined) return false;
  if (!bidirectional && !isSend(name) && !isLatency(name)) return client.last <= server.last;
  const sameSizes = client.sizes === server.sizes && client.first === server.first && client.last === server.last;
  const sameLength = client.isTimed === server.isTimed && client.iterations === server.iterations;
  // With SENDs one way the client says when it is over.
  return sameSizes && (sameLength || (name === "send-bw" && !bidirectional));
}

/** Describes terms as on a command line. */
export function describeTerms({ test, bidirectional, isTimed, qps, sizes, last, iterations }: Terms): string {
  return [
    kPerfTests[test] ?? "another test",
    ...(bidirectional ? ["-b"] : []),
    `-q ${qps}`,
    sizes > 1 ? "-a" : `-s ${last}`,
    isTimed ? "-D" : `-n ${iterations}`,
  ].join(" ");
}
