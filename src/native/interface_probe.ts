/**
 * Asks the kernel what an interface is and can do: rtnetlink(7) for its kind, the generic netlink family `netdev` (Linux 6.3)
 * for XDP, ethtool for driver, queues, rings, offloads, flow control and speed. Reads only. What the kernel or driver does not tell
 * stays unknown, which is not an error: an ordinary user may ask everything here.
 *
 * Numbers are those of <linux/rtnetlink.h>, <linux/if_link.h>, <linux/genetlink.h>, <linux/netdev.h> and <linux/ethtool.h>.
 */
import { closeSync, readSync, writeSync } from "node:fs";
import { aligned, attribute, attributesIn, kHeader, messageOf, text, word } from "./netlink.js";
import type { InterfaceProbe, KernelSockets } from "./types.js";

const kFamily = { inet: 2, inet6: 10, netlink: 16, xdp: 44 } as const;
const kSocket = { datagram: 2, raw: 3 } as const;
const kNetlink = { route: 0, generic: 16 } as const;
const kMessage = { error: 2, done: 3, getLink: 18, getAddress: 22, control: 16 } as const;
const kRequest = 1;
const kDump = 0x300;
const kLink = { address: 1, name: 3, mtu: 4, master: 10, info: 18, extensions: 29, xdp: 43 } as const;
const kInfo = { kind: 1, slaveKind: 4 } as const;
const kXdpAttached = 2;
const kWithoutStatistics = 8;
const kFlags = { up: 1, loopback: 8, running: 0x40 } as const;
const kScopeLink = 253;
const kControl = { getFamily: 3, id: 1, name: 2 } as const;
const kNetdev = { getDevice: 1, index: 1, features: 3, metadata: 5 } as const;
const kXdpModes = ["none", "native", "generic", "hardware", "several"] as const;
const kXdpFeatures = ["basic", "redirect", "ndo-xmit", "xsk-zerocopy", "hw-offload", "rx-sg", "ndo-xmit-sg"];
const kXdpMetadata = ["timestamp", "hash", "vlan-tag"];

const kErrno = { EACCES: "EACCES", EPERM: "EPERM", ENODEV: 19 } as const;
const kLongestName = 15;
/** One link with all its attributes takes 2 KiB or so. */
const kAnswerBytes = 64 * 1024;

/** @throws Error with a code: ENODEV when there is no such interface, or why the namespace cannot be entered or the kernel not asked. */
export function probeInterface(kernel: KernelSockets, name: string, namespacePath?: string): InterfaceProbe {
  const open: number[] = [];
  const socket = (domain: number, type: number, protocol: number) => {
    const descriptor = kernel.openSocket(domain, type, protocol, namespacePath);
    open.push(descriptor);
    return descriptor;
  };
  try {
    const route = socket(kFamily.netlink, kSocket.raw, kNetlink.route);
    const { index, ...link } = askLink(route, name);
    const datagrams = socket(kFamily.inet, kSocket.datagram, 0);
    const xdp_programs = refusal(() => kernel.tryXdpProgram());
    const peer_xdp = kernel.peerRunsXdp(datagrams, name);
    return {
      ...link,
      ...askEthtool(kernel, datagrams, name),
      ...askXdp(socket(kFamily.netlink, kSocket.raw, kNetlink.generic), index),
      addressed: hasAddress(route, index),
      xdp_sockets: refusal(() => socket(kFamily.xdp, kSocket.raw, 0)),
      xdp_programs,
      peer_xdp,
      // Trying takes tens of milliseconds.
      ...((peer_xdp || link.loopback) && { live_frames: xdp_programs || refusal(() => kernel.tryLiveFrames()) }),
    };
  } finally {
    for (const descriptor of open) closeSync(descriptor);
  }
}

type LinkFacts = Pick<
  InterfaceProbe,
  "kind" | "master" | "master_kind" | "loopback" | "up" | "running" | "mtu" | "mac" | "xdp_attached"
>;

function askLink(route: number, name: string): LinkFacts & { index: number } {
  const [link] = name.length > kLongestName ? [] : askRoute(route, kMessage.getLink, { name });
  if (link === undefined) {
    throw Object.assign(new Error(`there is no interface ${name}: No such device`), {
      code: "ENODEV",
      errno: kErrno.ENODEV,
      syscall: "netlink",
      hint: "ip link lists the interfaces there are",
    });
  }
  const attributes = attributesIn(link, 16);
  const info = attributesIn(attributes.get(kLink.info));
  const xdp = attributesIn(attributes.get(kLink.xdp));
  const flags = link.readUInt32LE(8);
  const mac = attributes.get(kLink.address);
  const master = attributes.get(kLink.master)?.readUInt32LE();
  return {
    index: link.readUInt32LE(4),
    kind: text(info.get(kInfo.kind)),
    master: master === undefined ? "" : nameOf(route, master),
    master_kind: text(info.get(kInfo.slaveKind)),
    loopback: (flags & kFlags.loopback) !== 0,
    up: (flags & kFlags.up) !== 0,
    running: (flags & kFlags.running) !== 0,
    mtu: attributes.get(kLink.mtu)?.readUInt32LE() ?? 0,
    mac: mac?.length === 6 ? mac.readUIntBE(0, 6) : 0,
    xdp_attached: kXdpModes[xdp.get(kXdpAttached)?.[0] ?? 0] ?? "several",
  };
}

function nameOf(route: number, index: number): string {
  const [link] = askRoute(route, kMessage.getLink, { index });
  return link === undefined ? "" : text(attributesIn(link, 16).get(kLink.name));
}

function hasAddress(route: number, index: number): boolean {
  return askRoute(route, kMessage.getAddress, {}).some((address) => {
    if (address.readUInt32LE(4) !== index) return false;
    const [family, scope] = [address[0], address[3]];
    return family === kFamily.inet || (family === kFamily.inet6 && scope !== kScopeLink);
  });
}

/** Links by name or index, or all addresses. */
function askRoute(route: number, type: number, { name, index = 0 }: { name?: string; index?: number }): Buffer[] {
  const dump = type === kMessage.getAddress;
  const fixed = Buffer.alloc(dump ? 8 : 16);
  if (dump) return ask(route, type, fixed, kDump);
  fixed.writeUInt32LE(index, 4);
  const extensions = attribute(kLink.extensions, word(kWithoutStatistics));
  const named = name === undefined ? [] : [attribute(kLink.name, Buffer.from(`${name}\0`))];
  return ask(route, type, Buffer.concat([fixed, ...named, extensions]));
}

/** Kernels before 6.3 have no such family: nothing is known then. */
function askXdp(generic: number, index: number): Pick<InterfaceProbe, "xdp_features" | "xdp_metadata"> {
  const command = (number: number, code: number, value: Buffer) =>
    Buffer.concat([Buffer.from([number, 1, 0, 0]), attribute(code, value)]);
  const request = command(kControl.getFamily, kControl.name, Buffer.from("netdev\0"));
  const [about] = ask(generic, kMessage.control, request);
  const family = attributesIn(about, 4).get(kControl.id)?.readUInt16LE();
  if (family === undefined) return {};
  const [device] = ask(generic, family, command(kNetdev.getDevice, kNetdev.index, word(index)));
  const attributes = attributesIn(device, 4);
  const words = (code: number, names: readonly string[]) => {
    const mask = attributes.get(code)?.readUInt32LE();
    return mask === undefined ? undefined : names.filter((_, bit) => ((mask >> bit) & 1) !== 0);
  };
  return known({
    xdp_features: words(kNetdev.features, kXdpFeatures),
    xdp_metadata: words(kNetdev.metadata, kXdpMetadata),
  });
}

type EthtoolFacts = Pick<
  InterfaceProbe,
  | ("driver" | "bus" | "speed" | "offloads" | "pause")
  | ("receive_queues" | "transmit_queues" | "receive_ring" | "transmit_ring")
>;

function askEthtool(kernel: KernelSockets, socket: number, name: string): EthtoolFacts {
  /** Every structure starts with its command. */
  const ask = (command: number, bytes: number, fill: (data: Buffer) => void = () => {}) => {
    const data = Buffer.alloc(bytes);
    data.writeUInt32LE(command, 0);
    fill(data);
    return kernel.ethtool(socket, name, data) ? data : undefined;
  };
  /** Reads words at these places, which count in words. */
  const words = (command: number, bytes: number, ...places: number[]) => {
    const data = ask(command, bytes);
    return places.map((place) => data?.readUInt32LE(4 * place));
  };
  const flag = (command: number, bit?: number) => {
    const [value] = words(command, 8, 1);
    return value === undefined ? undefined : (bit === undefined ? value : value & bit) !== 0;
  };
  const driver = ask(0x03, 196);
  const [rx, tx, combined = 0] = words(0x3c, 36, 5, 6, 8);
  const [receive_ring, transmit_ring] = words(0x10, 36, 5, 8);
  const [autoneg, rxPause, txPause] = words(0x12, 16, 1, 2, 3).map((on) => (on === undefined ? undefined : on !== 0));
  return {
    driver: text(driver?.subarray(4, 36)),
    bus: text(driver?.subarray(100, 132)),
    offloads: known({
      tso: flag(0x1e),
      gso: flag(0x23),
      gro: flag(0x2b),
      lro: flag(0x25, 1 << 15),
      tx: flag(0x16),
      rx: flag(0x14),
      txvlan: flag(0x25, 1 << 7),
      rxvlan: flag(0x25, 1 << 8),
    }),
    pause: known({ autoneg, rx: rxPause, tx: txPause }),
    ...known({
      speed: askSpeed(ask),
      receive_queues: rx === undefined ? undefined : combined + rx,
      transmit_queues: tx === undefined ? undefined : combined + tx,
      receive_ring,
      transmit_ring,
    }),
  };
}

/** The first call asks how long the bit maps of link modes are; the second has room for them. */
function askSpeed(ask: (command: number, bytes: number, fill?: (data: Buffer) => void) => Buffer | undefined) {
  const kLinkSettings = { command: 0x4c, bytes: 48 + 3 * 127 * 4, speed: 4, modeWords: 15 } as const;
  const { command, bytes, modeWords } = kLinkSettings;
  const wanted = ask(command, bytes)?.readInt8(modeWords) ?? 0;
  if (wanted >= 0) return undefined;
  const megabits = ask(command, bytes, (data) => data.writeInt8(-wanted, modeWords))?.readUInt32LE(kLinkSettings.speed);
  return megabits === undefined || megabits === 0xffff_ffff ? undefined : megabits * 1e6;
}

/** Returns why the action is refused; "": it is not. */
function refusal(action: () => unknown): string {
  try {
    action();
    return "";
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    return code === kErrno.EACCES ? kErrno.EPERM : code; // the verifier's word for the same
  }
}

/** The answers to one question, without their headers; none if the kernel refuses. */
function ask(socket: number, type: number, body: Buffer, flags = 0): Buffer[] {
  writeSync(socket, messageOf(type, kRequest | flags, body));
  const answers: Buffer[] = [];
  for (;;) {
    const heard = Buffer.alloc(kAnswerBytes);
    const end = readSync(socket, heard);
    for (let at = 0; at + kHeader <= end; ) {
      const length = heard.readUInt32LE(at);
      const kind = heard.readUInt16LE(at + 4);
      if (length < kHeader || kind === kMessage.error || kind === kMessage.done) return answers;
      answers.push(heard.subarray(at + kHeader, Math.min(at + length, end)));
      at += aligned(length);
    }
    if (flags === 0 || end === 0) return answers;
  }
}

/** Leaves out the facts that are undefined. */
function known<T extends object>(facts: T): { [Name in keyof T]: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) as {
    [Name in keyof T]: Exclude<T[Name], undefined>;
  };
}
