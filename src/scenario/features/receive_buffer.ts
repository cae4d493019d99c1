/** The memory of a NIC whose host is slow: it fills, and pauses the peer. */
import { type Full, rate, section, size, type With } from "../../base/fields.js";
import { formatSize } from "../../base/units.js";
import type { HostFeature } from "./feature.js";

export const receiveBufferSchema = section({
  size: size("Bytes the NIC holds for a slow host.", { default: "1MB", min: 10_000, max: 1e9 }),
  rate: rate("Rate at which the host takes data from the NIC.", { default: "unlimited", zero: "unlimited" }),
  xoff: size("Fill at which the NIC pauses its peer. Default: half the size.", { max: 1e9 }),
  xon: size("Fill at which the NIC lets its peer go on. Default: half of xoff.", { max: 1e9 }),
});

/** Receive memory in full: it drains at `rate` bit/s (0 = at once); PFC goes out at `xoff`, and again at `xon`. */
export type ReceiveBuffer = With<Full<typeof receiveBufferSchema>, { xoff: number; xon: number }>;

export function resolveReceiveBuffer(written: Full<typeof receiveBufferSchema>): ReceiveBuffer {
  const { xoff = Math.floor(written.size / 2), xon = Math.floor(xoff / 2) } = written;
  return { ...written, xoff, xon };
}

export const kReceiveBuffer = {
  check: (host, at, found) => {
    const { size, xoff, xon } = host.receive_buffer;
    if (xoff > size) {
      const message = `${formatSize(xoff)} is more than the size ${formatSize(size)}`;
      found.problem(
        at("receive_buffer", "xoff"),
        message,
        "xoff must be less than size, with room for what is under way",
      );
    }
    if (xon > xoff) {
      const message = `${formatSize(xon)} is more than xoff ${formatSize(xoff)}`;
      found.problem(at("receive_buffer", "xon"), message, "xon must be between 0 and xoff");
    }
  },
  native: ({ receive_buffer: { size, rate, xoff, xon } }) => ({ receive_buffer: { size, drain: rate, xoff, xon } }),
} satisfies HostFeature<{ receive_buffer: ReceiveBuffer }>;
