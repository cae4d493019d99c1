/** The request `capture` of a control socket: its arguments, its refusals, and the beginning of its answer. */
import { z } from "zod";
import { WeirError } from "../../base/error.js";
import { kCaptureKinds } from "../../native/types.js";

export type CaptureKind = keyof typeof kCaptureKinds;
export const kKindNames = Object.keys(kCaptureKinds) as CaptureKind[];

/** Bytes of a frame; with fewer, comments on PFC frames and CNMs would lack the figures in them. */
export const kSnaplen = { least: 128, most: 262_144 } as const;
const kMostPorts = 4096;
const kLongestName = 255;

const kHints: Readonly<Record<string, string>> = {
  ports: "must be a list of names of ports",
  snaplen: `must be ${kSnaplen.least} to ${kSnaplen.most} bytes`,
  kinds: `must be a list of some of ${kKindNames.join(", ")}`,
};

const schema = z.strictObject({
  request: z.string(),
  /** Names of ports; all if left out. */
  ports: z.array(z.string().max(kLongestName)).min(1).max(kMostPorts).optional(),
  snaplen: z.int().min(kSnaplen.least).max(kSnaplen.most).default(kSnaplen.most),
  kinds: z.array(z.enum(kKindNames)).min(1).max(kKindNames.length).default(kKindNames),
});

/** Answer to the request. Blocks of a pcapng file follow, of packets and capture/counts.ts. */
export const captureStart = z.object({
  kind: z.enum(["switch", "nic"]),
  name: z.string(),
  version: z.string(),
  /** Most bytes of a frame. */
  snaplen: z.uint32(),
  /** Captured ports, in the order of the interfaces' numbers. `speed`: that of the link as it runs, bit/s; 0: unlimited. */
  ports: z.array(z.object({ name: z.string(), description: z.string(), speed: z.number().min(0) })),
});
export type CaptureStart = z.infer<typeof captureStart>;

/** @throws WeirError that names the argument. */
export function parseCaptureRequest(request: object): z.output<typeof schema> {
  const { success, data, error } = schema.safeParse(request);
  if (success) return data;
  const [issue] = error.issues;
  const field = issue?.code === "unrecognized_keys" ? issue.keys[0] : String(issue?.path[0] ?? "");
  const hint = kHints[field ?? ""];
  throw new WeirError(`capture: ${hint === undefined ? `there is no argument ${field}` : `${field} is wrong`}`, {
    hint: hint ?? `known: ${Object.keys(kHints).join(", ")}`,
  });
}

export function kindsMask(kinds: readonly CaptureKind[]): number {
  return kinds.reduce((mask, kind) => mask | kCaptureKinds[kind], 0);
}
