/** An interface of the kernel's set up by rtnetlink(7), whose messages are those of <linux/if_link.h> and <linux/if_addr.h>. */
import { macBytes } from "../wire/address.js";
import { attribute, command, word } from "./netlink.js";

const kNew = { link: 16, address: 20 } as const;
const kLink = { address: 1, mtu: 4 } as const;
const kAddress = { address: 1, local: 2, flags: 8 } as const;
const kUp = 1;
const kCreate = 0x400;
/** The address is not looked for on the link first (RFC 4862): it is the router's by its file. */
const kNoDad = 2;

/** @throws Error with a code: EINVAL for an MTU that it cannot have, EPERM, ... */
export function setUpLink(socket: number, index: number, mac: number, mtu: number): void {
  const before = Buffer.alloc(16);
  before.writeInt32LE(index, 4);
  const up = Buffer.from(before);
  up.writeUInt32LE(kUp, 8);
  up.writeUInt32LE(kUp, 12);
  const wanted = [attribute(kLink.address, macBytes(mac)), attribute(kLink.mtu, word(mtu))];
  command(socket, kNew.link, 0, Buffer.concat([before, ...wanted]));
  command(socket, kNew.link, 0, up);
}

/** @param address It has 4 or 16 bytes. @throws Error with a code: EEXIST, EACCES where IPv6 is off, ... */
export function addAddress(socket: number, index: number, address: Buffer, length: number): void {
  const fixed = Buffer.from([address.length === 4 ? 2 : 10, length, 0, 0, 0, 0, 0, 0]);
  fixed.writeInt32LE(index, 4);
  const own = [attribute(kAddress.local, address), attribute(kAddress.address, address)];
  const body = Buffer.concat([fixed, ...own, attribute(kAddress.flags, word(kNoDad))]);
  command(socket, kNew.address, kCreate, body);
}
