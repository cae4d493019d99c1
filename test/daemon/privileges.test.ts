/** Capabilities that a daemon keeps. */
import { expect, it } from "vitest";
import { capabilitiesFor, type PrivilegedPort } from "../../src/daemon/privileges.js";

const kPlain: PrivilegedPort = { namespace: null, receive: "af_packet", transmit: "af_packet" };

it.each([
  ["packet sockets", [kPlain], ["CAP_NET_RAW"]],
  ["a port in another namespace", [kPlain, { ...kPlain, namespace: "/run/netns/x" }], ["CAP_NET_RAW", "CAP_SYS_ADMIN"]],
  [
    "one in a process's",
    [{ ...kPlain, namespace: "/proc/17/ns/net" }],
    ["CAP_NET_RAW", "CAP_SYS_ADMIN", "CAP_SYS_PTRACE"],
  ],
  ["AF_XDP out", [{ ...kPlain, transmit: "af_xdp" }], ["CAP_NET_RAW", "CAP_IPC_LOCK"]],
  [
    "AF_XDP both ways",
    [{ ...kPlain, receive: "af_xdp", transmit: "af_xdp" }],
    ["CAP_NET_RAW", "CAP_IPC_LOCK", "CAP_NET_ADMIN", "CAP_BPF"],
  ],
  ["live frames out", [{ ...kPlain, transmit: "live" }], ["CAP_NET_RAW", "CAP_IPC_LOCK", "CAP_BPF"]],
] as const)("with %s", (_, ports, names) => {
  expect(capabilitiesFor(ports)).toEqual(names);
});
