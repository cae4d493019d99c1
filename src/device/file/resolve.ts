// From a daemon's file as written to its configuration in full: defaults merged, interfaces looked up. Judges nothing.
import { isIP, isIPv6 } from "node:net";
import type { Problem } from "../../base/error.js";
import { type Full, filled } from "../../base/fields.js";
import type { Findings } from "../../base/findings.js";
import { resolveCongestion } from "../../congestion/section.js";
import type { BackendWish } from "../../host/backend.js";
import type { InterfaceFacts } from "../../host/interface.js";
import { hostSchema, switchSchema } from "../../scenario/device_schema.js";
import { dscpOf, kPriorities, resolveHost, resolveSwitch, resolveTransport } from "../../scenario/resolve.js";
import { transportSchema } from "../../scenario/schema.js";
import { canonicalAddress } from "../../wire/address.js";
import {
  kListening,
  type NicDaemonInput,
  nicDaemonSchema,
  portSchema,
  programsSchema,
  queuePairSchema,
  type SwitchDaemonInput,
  switchDaemonSchema,
  workerSchema,
} from "./schema.js";
import type {
  NicDaemonConfig,
  Peer,
  QueuePairConfig,
  SwitchDaemonConfig,
  SwitchDaemonPort,
  WorkerPlace,
} from "./types.js";

/** `path` is where the interface is named in the file. */
export type Inspector = (name: string, namespace: string | undefined, path: Problem["path"]) => InterfaceFacts;

const kDefaultCnpvs = [3];
/** Programs want their bytes across more than even spacing: as late as a poll loop beside them is. */
const kProgramBurstSeconds = 100e-6;
const kFirstQpn = 0x11;

type DaemonInput = Pick<NicDaemonInput, "name" | "metrics" | "dashboard" | "control">;

function common({ name, metrics, dashboard, control }: DaemonInput, fallbackName: string, kind: "switch" | "nic") {
  const sections = kListening[kind];
  return {
    name: name ?? fallbackName,
    metrics:
      metrics === false ? undefined : { ...filled(kListening.nic.metrics), ...filled(sections.metrics, metrics) },
    dashboard: dashboard ? filled(sections.dashboard, dashboard === true ? {} : dashboard) : undefined,
    control,
  };
}

type BackendFields = Pick<Full<typeof portSchema>, "backend" | "receive" | "transmit" | "xdp_mode" | "ring">;

function backendOf({ backend, receive, transmit = backend, xdp_mode, ring }: BackendFields): BackendWish {
  receive ??= backend === "live" ? "af_xdp" : backend;
  return { receive, transmit, xdp_mode, ring };
}

function placeOf({ cpu = -1, polling }: Full<typeof workerSchema>): WorkerPlace {
  return { cpu, polling };
}

export function resolveSwitchDaemon(
  input: SwitchDaemonInput,
  fallbackName: string,
  inspect: Inspector,
): SwitchDaemonConfig {
  const own = common(input, fallbackName, "switch");
  const ports = input.ports.map((written, i): SwitchDaemonPort => {
    const { limits, backend, receive, transmit, xdp_mode, ring, impairment, ...port } = filled(portSchema, written);
    const facts = inspect(port.interface, port.namespace, ["ports", i, "interface"]);
    const byPriority = kPriorities.map((priority) => limits?.[`${priority}`]);
    return {
      ...port,
      name: port.name ?? port.interface,
      namespace: port.namespace,
      mtu: port.mtu ?? facts.mtu,
      mac: facts.mac,
      priority_rates: byPriority.map((limit) => limit?.rate ?? 0),
      queue_limits: byPriority.map((limit) => limit?.buffer ?? 0),
      impairment: written.impairment && impairment,
      backend: backendOf({ backend, receive, transmit, xdp_mode, ring }),
    };
  });
  const {
    ports: _,
    workers = [{}],
    static_fdb,
    name: _n,
    metrics: _m,
    dashboard: _d,
    control: _c,
    ...section
  } = filled(switchDaemonSchema, input);
  return {
    kind: "switch",
    ...own,
    ports,
    workers: workers.map((worker) => placeOf(filled(workerSchema, worker))),
    switch: resolveSwitch(
      own.name,
      { ...filled(switchSchema, {}), ...section },
      ports.map((port) => port.mtu),
    ),
    static_fdb,
  };
}

export function resolveNicDaemon(
  input: NicDaemonInput,
  fallbackName: string,
  inspect: Inspector,
  found: Findings,
): NicDaemonConfig {
  const own = common(input, fallbackName, "nic");
  const facts = inspect(input.interface, input.namespace, ["interface"]);
  const full = filled(nicDaemonSchema, input);
  const addresses = [full.address].flat();
  const backend = backendOf(full);
  // What AF_XDP takes from the kernel has no neighbour discovery among it.
  if (addresses.some(isIPv6) && backend.receive === "auto") backend.receive = "af_packet";
  const { rate, path_mtu, line_rate_start, initial_rate, cnp, receive_buffer, qcn } = full;
  const caughtUp = full.programs === false ? 0 : Math.round((rate / 8) * kProgramBurstSeconds);
  const { burst = Math.max(filled(hostSchema, {}).burst, caughtUp) } = full;
  const host = { path_mtu, line_rate_start, initial_rate, burst, cnp, receive_buffer, qcn };
  const { pfc, trust, default_priority } = full;
  const written = { pfc, scheduler: full.scheduler, trust, dscp_map: full.dscp_map, default_priority };
  const { scheduler, dscp_map } = resolveSwitch(own.name, filled(switchSchema, written), []);
  return {
    kind: "nic",
    ...own,
    port: {
      name: full.interface,
      interface: full.interface,
      namespace: full.namespace,
      rate,
      mtu: full.mtu ?? facts.mtu,
      mac: full.mac ?? facts.mac,
      backend,
    },
    worker: placeOf(full.worker),
    address: addresses[0] ?? "",
    addresses,
    vlan: full.vlan,
    host: resolveHost(own.name, host, rate, kDefaultCnpvs),
    classes: { pfc, scheduler, trust, dscp_map, default_priority },
    congestion: resolveCongestion(full.congestion, rate, found),
    transport: resolveTransport(
      filled(transportSchema, typeof full.transport === "string" ? { type: full.transport } : full.transport),
    ),
    queue_pairs: resolveQueuePairs(full, dscp_map, found),
    programs: full.programs === false ? undefined : filled(programsSchema, full.programs === true ? {} : full.programs),
  };
}

function resolveQueuePairs(
  { peers, queue_pairs }: Full<typeof nicDaemonSchema>,
  map: number[],
  found: Findings,
): QueuePairConfig[] {
  const first = queue_pairs[0]?.qpn ?? kFirstQpn;
  return queue_pairs.flatMap((written, i): QueuePairConfig[] => {
    const pair = filled(queuePairSchema, written);
    const peer = peers.find(({ name }) => name === pair.peer) ?? peerAt(pair.peer, peers);
    if (peer === undefined) {
      const names = peers.map(({ name }) => name);
      found.unknown(["queue_pairs", i, "peer"], "peer", pair.peer, names);
      return [];
    }
    const { name, priority, qpn = first + i, remote_qpn = first + i, dscp = dscpOf(map, priority) } = pair;
    if (qpn !== first + i) {
      const message = `${hex(qpn)} does not follow the one before`;
      found.problem(["queue_pairs", i, "qpn"], message, `queue pairs are numbered in order: ${hex(first + i)}`);
    }
    const send = written.send && pair.send;
    return [{ name, peer, qpn: first + i, remote_qpn, priority, dscp, send }];
  });
}

/** Undefined: `text` is no address. */
function peerAt(text: string, peers: Peer[]): Peer | undefined {
  if (isIP(text) === 0) return undefined;
  const address = canonicalAddress(text);
  return peers.find((peer) => peer.address === address) ?? { name: address, address, mac: undefined };
}

const hex = (qpn: number) => `0x${qpn.toString(16)}`;
