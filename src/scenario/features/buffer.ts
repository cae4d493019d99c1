/** Packet memory of a switch: shared by all ports, with headroom for what comes after a pause (DCQCN paper, section 4). */
import { z } from "zod";
import { choice, type Full, field, integer, section, size, type With } from "../../base/fields.js";
import type { SwitchFeature } from "./feature.js";

/** Largest packet memory, bytes: deep-buffered routers have 8 GB for each chip. */
export const kMostMemory = 64e9;

export const bufferSchema = section({
  total: size("Packet memory of the switch, shared by all ports.", { default: "12MB", min: 1_000, max: kMostMemory }),
  headroom: size(
    "t_flight: kept per port and priority for what arrives after a pause was sent. In scenarios `auto`: at each port what its link needs, by rate, delay, MTU and the response time that IEEE 802.3 allows, as `weir plan` has it.",
    { default: "22.4KB", max: kMostMemory, word: "auto" },
  ),
  priorities: integer(
    "Number of priorities that headroom is kept for, on each port. With fewer than 8, lossy ones have no memory of their own, and lossless traffic can keep CNPs out.",
    1,
    8,
    8,
  ),
  beta: field(
    z.number().positive().max(1024),
    "Dynamic threshold: t_PFC = beta (B - P n t_flight - s) / P, with s the bytes held. Greater than 0, to 1024.",
    8,
  ),
  mode: choice("How t_PFC is found: from the free buffer, or fixed.", ["dynamic", "static"], "dynamic"),
  threshold: size("t_PFC of static mode, per ingress port and priority. Default: (B - P n t_flight) / (P n).", {
    max: kMostMemory,
  }),
  xon_offset: size("An ingress queue is resumed this far below t_PFC. Default: two MTU.", { max: kMostMemory }),
  lossy_alpha: field(
    z.number().positive().max(1024),
    "An egress queue without PFC may hold this many times the free shared buffer. Greater than 0, to 1024.",
    1,
  ),
});

/** Packet memory in full. `threshold` is filled in also for dynamic mode, and unused there. */
export interface BufferConfig
  extends With<Full<typeof bufferSchema>, { headroom: number; threshold: number; xon_offset: number }> {
  /** True when `headroom` was found by the links. */
  automatic: boolean;
  /** Bytes that ports with headroom of their own reserve beyond `headroom`; negative where that is less. */
  besides: number;
}

/** Thresholds that a port can have in place of its switch's. */
export type PortThresholds = Pick<BufferConfig, "headroom" | "beta" | "threshold" | "xon_offset" | "lossy_alpha">;

export const portThresholdsOf = ({ headroom, beta, threshold, xon_offset, lossy_alpha }: PortThresholds) => ({
  headroom,
  beta,
  fixed_threshold: threshold,
  xon_offset,
  lossy_alpha,
});

/** The feature; buffer_check.ts judges it. */
export const kBuffer = {
  native: ({ buffer }, { latenessHeadroom }) => ({
    buffer: {
      total: buffer.total,
      headroom: buffer.headroom,
      priorities: buffer.priorities,
      beta: buffer.beta,
      threshold: buffer.mode,
      fixed_threshold: buffer.threshold,
      xon_offset: buffer.xon_offset,
      lossy_alpha: buffer.lossy_alpha,
      lateness_headroom: latenessHeadroom,
    },
  }),
  report: ({ buffer: { mode, priorities } }) => ({ thresholds: { mode, priorities } }),
} satisfies SwitchFeature<{ buffer: BufferConfig }>;
