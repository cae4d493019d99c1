/** Backends that `auto` picks, and its reasons; guesses about PFC frames. */
import { describe, expect, it } from "vitest";
import { type BackendPort, chooseBackend } from "../../src/host/backend.js";
import { describeKind, describeProbe, describeXdp, macControl, pfcState } from "../../src/host/port_probe.js";
import type { InterfaceProbe } from "../../src/native/types.js";
import { kHardware, kVeth } from "../daemon/probes.js";

const auto = { receive: "auto", transmit: "auto", xdp_mode: "auto", ring: 512 } as const;
const shaped: BackendPort = { interface: "dev", rate: 1e9, mtu: 1500, backend: auto };
const unshaped: BackendPort = { ...shaped, rate: 0 };

const kTakes: InterfaceProbe = { ...kVeth, xdp_features: [...(kVeth.xdp_features ?? []), "ndo-xmit"] };
const kXdp: InterfaceProbe = { ...kTakes, peer_xdp: true };

function pick(role: "switch" | "nic", port: BackendPort, probe: InterfaceProbe | string) {
  const { receive, transmit, reason, warnings } = chooseBackend(role, port, probe);
  expect(warnings).toEqual([]);
  return `${receive} ${transmit}: ${reason}`;
}

describe("auto", () => {
  it.each<[string, "switch" | "nic", BackendPort, InterfaceProbe | string, string]>([
    ["an unshaped veth", "switch", unshaped, kVeth, "af_packet af_packet: a veth without a rate"],
    ["a shaped veth", "switch", shaped, kVeth, "af_packet af_xdp: a veth that is shaped"],
    [
      "a veth whose other end takes XDP frames, for sockets",
      "switch",
      unshaped,
      kTakes,
      "af_packet af_packet: a veth without a rate: the kernel's super-frames and unfinished checksums pass whole",
    ],
    [
      "a veth with XDP at its other end",
      "switch",
      unshaped,
      kXdp,
      "af_packet live: a veth whose other end runs an XDP",
    ],
    ["a shaped one", "switch", shaped, kXdp, "af_packet af_xdp: a veth that is shaped"],
    [
      "a NIC's",
      "nic",
      { ...shaped, rate: 10e9 },
      kXdp,
      "af_packet live: a veth whose other end runs an XDP program: live frames as long as it does; by packet sockets few at a time, and super-frames without it",
    ],
    ["a slow NIC's", "nic", { ...shaped, rate: 1e9 }, kXdp, "af_packet af_xdp: a veth that is shaped"],
    [
      "a NIC's without the rights to send live frames",
      "nic",
      { ...shaped, rate: 10e9 },
      { ...kXdp, live_frames: "EPERM" },
      "af_packet af_packet: a veth of a fast NIC: RoCEv2 packets pass in super-frames; an XDP program runs at the other end, but no live frames to it: not allowed (EPERM), run as root",
    ],
    [
      "one without the rights to send live frames",
      "switch",
      unshaped,
      { ...kXdp, live_frames: "EPERM" },
      "af_packet af_packet: a veth without a rate: the kernel's super-frames and unfinished checksums pass whole; an XDP program runs at the other end, but no live frames to it: not allowed (EPERM), run as root",
    ],
    [
      "one of a kernel without",
      "switch",
      unshaped,
      { ...kXdp, live_frames: "EINVAL" },
      "pass whole; an XDP program runs at the other end, but no live frames to it: not to be had (EINVAL)",
    ],
    [
      "one with several queues",
      "switch",
      unshaped,
      { ...kXdp, transmit_queues: 2 },
      "af_packet af_packet: a veth without a rate: the kernel's super-frames and unfinished checksums pass whole; an XDP program runs at the other end, but no live frames to it: 2 queues, order would be lost",
    ],
    [
      "one that receives by AF_XDP, as was asked for",
      "switch",
      { ...unshaped, backend: { ...auto, receive: "af_xdp" } },
      kXdp,
      "af_xdp af_packet: a veth without a rate: the kernel's super-frames and unfinished checksums pass whole; an XDP program runs at the other end, but no live frames to it: they are picked beside packet sockets only",
    ],
    ["a slow NIC's veth", "nic", shaped, kVeth, "af_packet af_xdp: a veth that is shaped"],
    [
      "a NIC's veth",
      "nic",
      { ...shaped, rate: 10e9 },
      kVeth,
      "af_packet af_packet: a veth of a fast NIC: RoCEv2 packets pass in super-frames; single packets of many paced queue pairs, which cannot be joined, are cheaper by transmit: af_xdp",
    ],
    [
      "a veth, where XDP sockets are refused",
      "nic",
      shaped,
      { ...kVeth, xdp_sockets: "EPERM" },
      "af_packet af_packet: AF_XDP sockets: not allowed (EPERM); for af_xdp: run as root, or with CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF",
    ],
    [
      "a veth of a kernel without XDP sockets",
      "switch",
      shaped,
      { ...kVeth, xdp_sockets: "EAFNOSUPPORT" },
      "af_packet af_packet: AF_XDP sockets: not to be had (EAFNOSUPPORT)",
    ],
    // Sending takes no program.
    ["a veth without bpf", "nic", shaped, { ...kVeth, xdp_programs: "EPERM" }, "af_packet af_xdp: a veth"],
    ["a tap", "switch", shaped, { ...kVeth, kind: "tun", driver: "tun" }, "af_packet af_packet: tap"],
    ["a bridge", "switch", unshaped, { ...kVeth, kind: "bridge", xdp_features: [] }, "af_packet af_packet: bridge"],
    ["lo", "switch", shaped, { ...kVeth, kind: "", loopback: true }, "af_packet af_packet: loopback"],
    [
      "a NIC with XDP",
      "switch",
      unshaped,
      kHardware,
      "af_xdp af_xdp: zero-copy in its driver (ice), a socket for each receive queue",
    ],
    [
      "one that copies",
      "nic",
      shaped,
      { ...kHardware, xdp_features: ["basic", "redirect"] },
      "af_xdp af_xdp: native XDP in its driver (ice), a socket for each receive queue",
    ],
    [
      "one without",
      "nic",
      shaped,
      { ...kHardware, xdp_features: [] },
      "af_packet af_packet: its driver has no native XDP",
    ],
    [
      "one of an old kernel",
      "nic",
      shaped,
      (({ xdp_features: _, ...rest }) => rest)(kHardware),
      "af_packet af_packet: whether its driver has XDP is not known",
    ],
    [
      "many queues",
      "switch",
      unshaped,
      { ...kHardware, receive_queues: 80 },
      "af_packet af_packet: 80 receive queues, and AF_XDP takes 64 at most; for af_xdp: ethtool -L dev combined 64",
    ],
    [
      "the host's own interface",
      "switch",
      unshaped,
      { ...kHardware, addressed: true },
      "af_packet af_packet: the host has an address there, and AF_XDP would take all frames from it; for af_xdp: ip address flush dev dev",
    ],
    // A NIC leaves the kernel what is not its own.
    ["the same, of a NIC", "nic", shaped, { ...kHardware, addressed: true }, "af_xdp af_xdp: zero-copy"],
    [
      "someone else's program",
      "switch",
      unshaped,
      { ...kHardware, xdp_attached: "native" },
      "af_packet af_packet: another XDP program is attached; for af_xdp: ip link set dev xdp off",
    ],
    [
      "no right to load programs",
      "switch",
      unshaped,
      { ...kHardware, xdp_programs: "EPERM" },
      "af_packet af_packet: loading XDP programs: not allowed (EPERM); for af_xdp: run as root",
    ],
    [
      "VLAN tags taken out",
      "switch",
      unshaped,
      { ...kHardware, xdp_metadata: [], offloads: { rxvlan: true } },
      "af_packet af_packet: the interface takes VLAN tags out of frames, and does not tell XDP; for af_xdp: ethtool -K dev rxvlan off",
    ],
    [
      "jumbo frames in one buffer",
      "switch",
      { ...unshaped, mtu: 9000 },
      { ...kHardware, xdp_features: ["basic", "redirect"] },
      "af_packet af_packet: MTU 9000, and its driver hands frames to XDP in one buffer only",
    ],
    ["an interface that cannot be probed", "nic", shaped, "gone", "af_packet af_packet: not probed: gone"],
  ])("%s", (_, role, port, probe, expected) => expect(pick(role, port, probe)).toContain(expected));
});

describe("what the file asks for", () => {
  const wish = (
    backend: Partial<BackendPort["backend"]>,
    probe: InterfaceProbe = kVeth,
    port: Partial<BackendPort> = {},
  ) => chooseBackend("switch", { ...unshaped, ...port, backend: { ...auto, ...backend } }, probe);

  it("wins, one direction by one", () => {
    expect(wish({ receive: "af_xdp", transmit: "af_xdp", ring: 64 })).toEqual({
      receive: "af_xdp",
      transmit: "af_xdp",
      xdp_mode: "native",
      ring: 64,
      live_for_xdp: false,
      reason: "as configured",
      warnings: [],
    });
    expect(wish({ transmit: "af_xdp" })).toMatchObject({ receive: "af_packet", transmit: "af_xdp" });
    const asked = { transmit: "live", live_for_xdp: false, warnings: [] };
    expect(wish({ receive: "af_xdp", transmit: "live" }, kTakes)).toMatchObject(asked);
    expect(wish({}, kXdp)).toMatchObject({ transmit: "live", live_for_xdp: true });
    expect(wish({ receive: "af_packet" }, kHardware)).toMatchObject({ receive: "af_packet", transmit: "af_xdp" });
  });

  it("decides the mode of XDP, which is else native where the driver has it", () => {
    expect(wish({ xdp_mode: "generic" }).xdp_mode).toBe("generic");
    expect(wish({}).xdp_mode).toBe("native");
    expect(wish({}, { ...kVeth, xdp_features: [] }).xdp_mode).toBe("generic");
  });

  it("is met with warnings of what will be lost", () => {
    const xdp = { receive: "af_xdp", transmit: "af_xdp" } as const;
    expect(wish(xdp, { ...kVeth, receive_queues: 80 }).warnings).toEqual([
      "80 receive queues, and AF_XDP takes 64 at most; remedy: ethtool -L dev combined 64",
    ]);
    expect(wish(xdp, kVeth, { mtu: 9000 }).warnings).toEqual([
      expect.stringMatching(/^MTU 9000 with af_xdp in: .*ip link set PEER gso_max_segs 1$/),
    ]);
    expect(wish(xdp, kVeth, { mtu: 3498 }).warnings).toEqual([]);
    expect(wish({ ...xdp, xdp_mode: "generic" }).warnings).toEqual([
      expect.stringMatching(/^tags .*ethtool -K PEER txvlan off tx-vlan-stag-hw-insert off$/),
      expect.stringMatching(/^Generic XDP: .*ip link set PEER gso_max_segs 1$/),
    ]);
    expect(wish(xdp, { ...kVeth, addressed: true }).warnings).toEqual([
      expect.stringContaining("AF_XDP would take all frames from it"),
    ]);
    expect(wish({ transmit: "live" }).warnings).toEqual([
      "it takes no live frames, they leave by af_packet; remedy: in the namespace of its peer, ethtool -K PEER gro on",
    ]);
    expect(wish({ transmit: "af_xdp", receive: "af_packet" }, { ...kVeth, receive_queues: 80 }).warnings).toEqual([]);
  });
});

describe("MAC control frames", () => {
  it.each<[Partial<InterfaceProbe>, string, string]>([
    [{}, "yes", "a veth passes every frame"],
    [{ kind: "tun", driver: "tun" }, "yes", "a tap passes every frame"],
    [{ kind: "", driver: "", loopback: true }, "yes", "the loopback passes every frame"],
    [{ kind: "bridge" }, "no", "a Linux bridge drops MAC control frames"],
    [{ kind: "vlan" }, "no", "MAC control frames carry no tag: they end at the interface below"],
    [{ kind: "bond" }, "unlikely", "interfaces of kind bond are not known to pass MAC control frames"],
    [{ kind: "", driver: "virtio_net" }, "unlikely", "bridges of hypervisors drop MAC control frames"],
    [{ kind: "", driver: "" }, "unknown", "the driver is not known"],
    [
      { kind: "", driver: "mlx5_core", pause: { rx: true } },
      "no",
      "the MAC (mlx5_core) obeys PAUSE by itself and keeps MAC control frames",
    ],
    [
      { kind: "", driver: "igb", pause: { rx: false } },
      "unlikely",
      "most MACs keep MAC control frames, whatever the driver (igb) asks",
    ],
  ])("%j: %s", (more, reaches, reason) => expect(macControl({ ...kVeth, ...more })).toEqual({ reaches, reason }));

  it("make PFC possible, or not", () => {
    const state = (reaches: ReturnType<typeof macControl>["reaches"], enabled = true) =>
      pfcState(enabled, { reaches, reason: "" });
    expect(state("yes")).toBe("works");
    expect(state("no")).toBe("not possible here");
    expect(state("unlikely")).toBe("not possible here");
    expect(state("unknown")).toBe("unknown");
    expect(state("no", false)).toBe("off");
  });
});

describe("a probe in words", () => {
  it("names the hardware, as far as it is known", () => {
    expect(describeKind(kHardware)).toBe("hardware (ice, 0000:03:00.0)");
    expect(describeKind({ ...kHardware, driver: "", bus: "N/A" })).toBe("hardware");
    expect(describeKind({ ...kVeth, kind: "tun" })).toBe("tap");
  });

  it("is one line", () => {
    expect(describeProbe({ ...kHardware, pause: { rx: true, tx: true } })).toBe(
      "hardware (ice, 0000:03:00.0); 100 Gb/s; MTU 1500; queues 1/1; rings 2048/256; " +
        "offloads tso gso tx rx txvlan; XDP native, zero-copy, several buffers; flow control rx/tx",
    );
  });

  it("tells what XDP there is, and that it is taken", () => {
    expect(describeXdp({ ...kVeth, xdp_features: [] })).toBe("generic");
    expect(describeXdp({ ...kVeth, xdp_attached: "generic" })).toBe("native, several buffers, a program is attached");
    const { xdp_features: _, ...old } = kVeth;
    expect(describeXdp(old)).toBe("unknown");
  });
});
