/**
 * Chooses the backends by which a port receives and transmits: those that the file asks for, or else those that suit its
 * interface best, and says why.
 */

import type { InterfaceProbe, NativeBackend, NativePort } from "../native/types.js";
import { describeKind } from "./port_probe.js";

export interface BackendChoice {
  receive: ReceiveBackend;
  transmit: NativeBackend;
  xdp_mode: NonNullable<NativePort["xdp_mode"]>;
  ring: number;
  /** Live frames leave only while the other end of the veth runs an XDP program; else all by `receive`. */
  live_for_xdp: boolean;
  /** Says why they were chosen, and what would make the port faster. */
  reason: string;
  /** Say what does not work as it stands, with the remedy. */
  warnings: string[];
}

/** Backends that receive; live frames only transmit. */
export type ReceiveBackend = Exclude<NativeBackend, "live">;

/** Settings of a file for the way between interface and Weir. */
export interface BackendWish {
  receive: "auto" | ReceiveBackend;
  transmit: "auto" | NativeBackend;
  xdp_mode: "auto" | NonNullable<NativePort["xdp_mode"]>;
  ring: number;
}

/** Fields of a port by which its backends are chosen. */
export interface BackendPort {
  interface: string;
  /** bit/s; 0: unlimited. */
  rate: number;
  mtu: number;
  backend: BackendWish;
  /** Programs are to have packet sockets of their own. */
  direct?: boolean;
}

/** bit/s. Packets of a slower NIC leave one by one: their spacing is the reason why it is slow. */
export const kSuperFrameRate = 10e9;

/** Receive queues of an interface that AF_XDP takes (native/io/xdp_program.h). */
const kMostXdpQueues = 64;

/** The longest IP packet that a veth hands to XDP in one page; senders' super-frames come in several, or not at all. */
const kOneBufferMtu = 3498;

/** @param probe A text says why there is no probe. */
export function chooseBackend(
  role: "switch" | "nic",
  port: BackendPort,
  probe: InterfaceProbe | string,
): BackendChoice {
  const { backend: wish } = port;
  const own = automatic(role, port, probe);
  const receive = wish.receive === "auto" ? own.both[0] : wish.receive;
  const transmit = wish.transmit === "auto" ? own.both[1] : wish.transmit;
  const native = typeof probe !== "string" && (probe.xdp_features?.includes("basic") ?? false);
  const xdp_mode = wish.xdp_mode === "auto" ? (native ? "native" : "generic") : wish.xdp_mode;
  const automatically = wish.receive === "auto" || wish.transmit === "auto";
  const live_for_xdp = wish.transmit === "auto" && transmit === "live";
  const choice = { receive, transmit, xdp_mode, ring: wish.ring, live_for_xdp };
  const warnings = typeof probe === "string" ? [] : [...warningsOf(role, port, probe, choice)];
  return { ...choice, reason: automatically ? own.reason : "as configured", warnings };
}

interface Automatic {
  /** Backends to receive and to transmit. */
  both: readonly [ReceiveBackend, NativeBackend];
  reason: string;
}

const kPacketSockets = ["af_packet", "af_packet"] as const;
const kLive = ["af_packet", "live"] as const;
const kMixed = ["af_packet", "af_xdp"] as const;
const kXdp = ["af_xdp", "af_xdp"] as const;

function automatic(role: "switch" | "nic", port: BackendPort, probe: InterfaceProbe | string): Automatic {
  const packets = (reason: string, remedy?: string): Automatic => ({
    both: kPacketSockets,
    reason: remedy === undefined ? reason : `${reason}; for af_xdp: ${remedy}`,
  });
  if (typeof probe === "string") return packets(`not probed: ${probe}`);
  const { kind, loopback, xdp_sockets, xdp_programs } = probe;
  const features = probe.xdp_features ?? [];
  if (kind === "veth") {
    if (role === "switch" && port.rate === 0) {
      const whole = "the kernel's super-frames and unfinished checksums pass whole";
      const few = `few at a time, ${whole}`;
      return unshaped(probe, port.backend.receive, { what: "a veth without a rate", whole, few, but: "" });
    }
    if (role === "nic" && port.rate >= kSuperFrameRate) {
      const whole = "RoCEv2 packets pass in super-frames";
      const few = "few at a time, and super-frames without it";
      const but = "; single packets of many paced queue pairs, which cannot be joined, are cheaper by transmit: af_xdp";
      return unshaped(probe, port.backend.receive, { what: "a veth of a fast NIC", whole, few, but });
    }
    if (xdp_sockets !== "") return packets(...noRights("AF_XDP sockets", xdp_sockets));
    const reason =
      "a veth that is shaped: a packet socket's ring in is cheapest for its senders, AF_XDP out cheapest for Weir";
    return { both: kMixed, reason };
  }
  if (kind !== "" || loopback) {
    return packets(`${describeKind(probe)}: packet sockets are best there`);
  }
  if (port.direct === true) return packets("programs have paths of their own, by packet sockets");
  if (!features.includes("basic") || !features.includes("redirect")) {
    return packets(
      probe.xdp_features === undefined ? "whether its driver has XDP is not known" : "its driver has no native XDP",
    );
  }
  if (xdp_sockets !== "") return packets(...noRights("AF_XDP sockets", xdp_sockets));
  if (xdp_programs !== "") return packets(...noRights("loading XDP programs", xdp_programs));
  if (probe.xdp_attached !== "none") {
    return packets("another XDP program is attached", `ip link set ${port.interface} xdp off`);
  }
  const [problem] = receiveProblems(role, port, probe, "native");
  if (problem !== undefined) return packets(problem.what, problem.remedy);
  const copies = features.includes("xsk-zerocopy") ? "zero-copy" : "native XDP";
  return { both: kXdp, reason: `${copies} in its driver (${probe.driver}), a socket for each receive queue` };
}

/**
 * Chooses for a veth that is not shaped. Live frames are for XDP at the other end: in sockets of the kernel each takes a page.
 * Where a veth has several queues, they would take another one than the frames of packet sockets, and overtake them.
 * @param what The port is; `whole`: what is good about packet sockets; `few`: what leaves by them beside live frames; `but`: for
 * what they are not the best.
 */
function unshaped(
  probe: InterfaceProbe,
  receive: BackendWish["receive"],
  { what, whole, few, but }: { what: string; whole: string; few: string; but: string },
): Automatic {
  const packets = (why: string): Automatic => ({ both: kPacketSockets, reason: `${what}: ${whole}${why}` });
  if (!probe.peer_xdp) return packets(but);
  const there = "; an XDP program runs at the other end, but no live frames to it: ";
  if (receive === "af_xdp") return packets(`${there}they are picked beside packet sockets only`);
  if ((probe.transmit_queues ?? 1) > 1) return packets(`${there}${probe.transmit_queues} queues, order would be lost`);
  const { live_frames: refusal = "" } = probe;
  if (refusal === "EPERM") return packets(`${there}not allowed (EPERM), run as root`);
  if (refusal !== "") return packets(`${there}not to be had (${refusal})`);
  const reason = `a veth whose other end runs an XDP program: live frames as long as it does; by packet sockets ${few}`;
  return { both: kLive, reason };
}

const takesXdpFrames = (features: InterfaceProbe["xdp_features"]) => features?.includes("ndo-xmit") ?? false;

function noRights(what: string, error: string): [reason: string, remedy?: string] {
  if (error === "EPERM")
    return [`${what}: not allowed (EPERM)`, "run as root, or with CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF"];
  return [`${what}: not to be had (${error})`];
}

/** Yields what would be lost if AF_XDP received. */
function* receiveProblems(
  role: "switch" | "nic",
  port: BackendPort,
  probe: InterfaceProbe,
  mode: BackendChoice["xdp_mode"],
): Iterable<{ what: string; remedy: string }> {
  const { interface: netdev } = port;
  if (role === "switch" && probe.addressed) {
    yield {
      what: "the host has an address there, and AF_XDP would take all frames from it",
      remedy: `ip address flush dev ${netdev}`,
    };
  }
  const queues = probe.receive_queues ?? 1;
  if (queues > kMostXdpQueues) {
    yield {
      what: `${queues} receive queues, and AF_XDP takes ${kMostXdpQueues} at most`,
      remedy: `ethtool -L ${netdev} combined ${kMostXdpQueues}`,
    };
  }
  const tagsTold = mode === "native" && probe.xdp_metadata?.includes("vlan-tag");
  if (probe.kind === "veth" && !tagsTold) {
    yield {
      what: "tags that senders leave to this veth are lost: XDP is not told of them",
      remedy: "in the namespace of its peer, ethtool -K PEER txvlan off tx-vlan-stag-hw-insert off",
    };
  } else if (probe.offloads.rxvlan && !tagsTold) {
    yield {
      what: "the interface takes VLAN tags out of frames, and does not tell XDP",
      remedy: `ethtool -K ${netdev} rxvlan off`,
    };
  }
  if (port.mtu > kOneBufferMtu && mode === "native" && !(probe.xdp_features ?? []).includes("rx-sg")) {
    yield {
      what: `MTU ${port.mtu}, and its driver hands frames to XDP in one buffer only`,
      remedy: `an MTU of ${kOneBufferMtu} or less`,
    };
  }
}

function* warningsOf(
  role: "switch" | "nic",
  port: BackendPort,
  probe: InterfaceProbe,
  { receive, transmit, xdp_mode }: Pick<BackendChoice, "receive" | "transmit" | "xdp_mode">,
): Iterable<string> {
  if (transmit === "live" && probe.xdp_features !== undefined && !takesXdpFrames(probe.xdp_features)) {
    const veth = "in the namespace of its peer, ethtool -K PEER gro on";
    yield `it takes no live frames, they leave by ${receive}; remedy: ${probe.kind === "veth" ? veth : `transmit: ${receive}`}`;
  }
  if (receive !== "af_xdp") return;
  for (const { what, remedy } of receiveProblems(role, port, probe, xdp_mode)) yield `${what}; remedy: ${remedy}`;
  if (probe.kind === "veth" && (port.mtu > kOneBufferMtu || xdp_mode === "generic")) {
    const why = xdp_mode === "generic" ? "Generic XDP" : `MTU ${port.mtu} with af_xdp in`;
    yield `${why}: the kernel does not cut super-frames before this veth, and they are lost; remedy: in the namespace of its peer, ip link set PEER gso_max_segs 1`;
  }
}
