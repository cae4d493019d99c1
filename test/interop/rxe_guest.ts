/** Small guests with Soft-RoCE: rxe0 on eth0. They are in emulation on every machine, which tests of full queues count on. */
import { fileURLToPath } from "node:url";
import type { NetworkNamespace } from "../../src/host/namespace.js";
import { GuestImage } from "../guests/capability.js";
import { Guest, tapDevice } from "../guests/guest.js";

export const kRxeImage = new GuestImage("interop", fileURLToPath(new URL("guest/build.sh", import.meta.url)));

export interface RxeOptions {
  /** IPv4 address with prefix length. */
  ipv4: string;
  ipv6: string;
  /** MTU of eth0, bytes. 1500 gives a path MTU of 1024, 4176 of 4096. */
  mtu: number;
}

/** Boots one on an existing tap. */
export function startRxeGuest(
  namespace: NetworkNamespace,
  tap: string,
  { ipv4, ipv6, mtu }: RxeOptions,
): Promise<Guest> {
  return Guest.start(namespace, {
    image: kRxeImage.folder(),
    boot: [`rxe.ip=${ipv4} rxe.ip6=${ipv6} rxe.mtu=${mtu}`],
    accelerator: "tcg",
    cpus: 1,
    memory: 384,
    devices: tapDevice(tap, guestMac(ipv4), `virtio-net-pci,host_mtu=${mtu}`),
  });
}

/** MAC address of the guest with this address. */
export function guestMac(ipv4: string): string {
  const octets = (ipv4.split("/")[0] ?? "").split(".").map((octet) => Number(octet).toString(16).padStart(2, "0"));
  return `52:54:${octets.join(":")}`;
}
