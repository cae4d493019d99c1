/** Says in words what a port's interface is and can do; and whether PFC frames reach user space there. */
import { formatRate } from "../base/units.js";
import type { InterfaceProbe, NativeAddon } from "../native/types.js";

/** Says whether MAC control frames (0x8808: PAUSE, PFC) that arrive reach user space. */
export interface MacControl {
  reaches: "yes" | "unlikely" | "no" | "unknown";
  reason: string;
}

export interface PortProbe extends InterfaceProbe {
  mac_control: MacControl;
}

/** Returns the probe, or why there is none. */
export function probePort(
  addon: Pick<NativeAddon, "probeInterface">,
  name: string,
  namespace: string | undefined,
): PortProbe | string {
  try {
    const probe = addon.probeInterface(name, namespace);
    return { ...probe, mac_control: macControl(probe) };
  } catch (error) {
    return (error as Error).message;
  }
}

/** Kinds with software at both ends: every frame passes. */
const kTransparent: Readonly<Record<string, string>> = {
  veth: "a veth",
  tun: "a tap",
  dummy: "a dummy",
  netkit: "a netkit",
};

/** Guesses by kind and driver; frames that have come are better evidence. */
export function macControl(probe: InterfaceProbe): MacControl {
  const { kind, driver, pause, loopback } = probe;
  if (loopback) return { reaches: "yes", reason: "the loopback passes every frame" };
  const transparent = kTransparent[kind];
  if (transparent !== undefined) return { reaches: "yes", reason: `${transparent} passes every frame` };
  if (kind === "bridge") return { reaches: "no", reason: "a Linux bridge drops MAC control frames" };
  if (kind === "vlan") {
    return { reaches: "no", reason: "MAC control frames carry no tag: they end at the interface below" };
  }
  if (kind !== "")
    return { reaches: "unlikely", reason: `interfaces of kind ${kind} are not known to pass MAC control frames` };
  if (driver === "virtio_net") {
    return { reaches: "unlikely", reason: "bridges of hypervisors drop MAC control frames" };
  }
  if (driver === "") return { reaches: "unknown", reason: "the driver is not known" };
  if (pause.rx)
    return { reaches: "no", reason: `the MAC (${driver}) obeys PAUSE by itself and keeps MAC control frames` };
  return { reaches: "unlikely", reason: `most MACs keep MAC control frames, whatever the driver (${driver}) asks` };
}

/** Says whether a port can do PFC. Sending always works; it is the peer's frames that may not arrive. */
export type PfcState = "off" | "works" | "not possible here" | "unknown";

export function pfcState(enabled: boolean, { reaches }: MacControl): PfcState {
  if (!enabled) return "off";
  if (reaches === "yes") return "works";
  return reaches === "unknown" ? "unknown" : "not possible here";
}

/** Returns such as "veth", "tap", "hardware (ice, 0000:03:00.0)". */
export function describeKind({ kind, driver, bus, loopback }: InterfaceProbe): string {
  if (loopback) return "loopback";
  if (kind === "tun") return "tap";
  if (kind !== "") return kind;
  const known = [driver, bus].filter((text) => text !== "" && text !== "N/A");
  return known.length === 0 ? "hardware" : `hardware (${known.join(", ")})`;
}

/** Offloads that are on; undefined: the kernel tells of none. */
export function offloadsOn({ offloads }: InterfaceProbe): string[] | undefined {
  const entries = Object.entries(offloads);
  return entries.length === 0 ? undefined : entries.flatMap(([name, on]) => (on ? [name] : []));
}

/** Says what the interface has of XDP: "native, zero-copy, several buffers". */
export function describeXdp({ xdp_features: features, xdp_attached: attached }: InterfaceProbe): string {
  const words = features?.includes("basic")
    ? [
        "native",
        ...(features.includes("xsk-zerocopy") ? ["zero-copy"] : []),
        ...(features.includes("rx-sg") ? ["several buffers"] : []),
      ]
    : [features === undefined ? "unknown" : "generic"];
  return [...words, ...(attached === "none" ? [] : ["a program is attached"])].join(", ");
}

/** One line for logs and people. */
export function describeProbe(probe: InterfaceProbe): string {
  const { receive_queues: rx, transmit_queues: tx, receive_ring, transmit_ring, speed, pause } = probe;
  const flow = [...(pause.rx ? ["rx"] : []), ...(pause.tx ? ["tx"] : [])].join("/");
  return [
    describeKind(probe),
    ...(speed === undefined ? [] : [formatRate(speed)]),
    `MTU ${probe.mtu}`,
    ...(rx === undefined ? [] : [`queues ${rx}/${tx ?? "?"}`]),
    ...(receive_ring === undefined ? [] : [`rings ${receive_ring}/${transmit_ring ?? "?"}`]),
    `offloads ${offloadsOn(probe)?.join(" ") ?? "unknown"}`,
    `XDP ${describeXdp(probe)}`,
    ...(flow === "" ? [] : [`flow control ${flow}`]),
  ].join("; ");
}
