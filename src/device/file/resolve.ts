// Turns a daemon's file as written into its configuration in full: defaults merged, interfaces looked up. Judges nothing.
import { isIP, isIPv6 } from "node:net";
import { resolve as resolvePath } from "node:path";
import type { Problem } from "../../base/error.js";
import { type Full, filled } from "../../base/fields.js";
import type { Findings } from "../../base/findings.js";
import { resolveCongestion, resolveGroups } from "../../congestion/section.js";
import type { BackendWish } from "../../host/backend.js";
import type { InterfaceFacts } from "../../host/interface.js";
import { hostSchema, switchSchema } from "../../scenario/device_schema.js";
import { dscpOf, resolveHost, resolveSwitch } from "../../scenario/resolve_device.js";
import { resolveTransport } from "../../scenario/transport.js";
import { transportSchema } from "../../scenario/transport_schema.js";
import type { SwitchConfig } from "../../scenario/types.js";
import { canonicalAddress } from "../../wire/address.js";
import { kPriorities } from "../../wire/priority.js";
import { kFirstQpn } from "../behaviour.js";
import { resolveRouter } from "./router.js";
import {
  kDcbx,
  kListening,
  lldpSchema,
  type NicDaemonInput,
  type NicInput,
  nicDaemonSchema,
  portSchema,
  programsSchema,
  queuePairSchema,
  rateChangeSchema,
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
import { resolveVlans } from "./vlans.js";

/** Looks up an interface. `path` is where the interface is named in the file. */
export type Inspector = (name: string, namespace: string | undefined, path: Problem["path"]) => InterfaceFacts;

const kDefaultCnpvs = [3];
/** Burst for programs, which want throughput more than even spacing: the lateness of a poll loop beside them. */
const kProgramBurstSeconds = 100e-6;

type DaemonInput = Pick<NicDaemonInput, "name" | "metrics" | "dashboard" | "control" | "lldp"> &
  Pick<SwitchDaemonInput, "dcbx">;

function common(
  { name, metrics, dashboard, control, lldp, dcbx }: DaemonInput,
  fallbackName: string,
  kind: "switch" | "nic",
) {
  const sections = kListening[kind];
  return {
    name: name ?? fallbackName,
    metrics:
      metrics === false ? undefined : { ...filled(kListening.nic.metrics), ...filled(sections.metrics, metrics) },
    dashboard: dashboard ? filled(sections.dashboard, dashboard === true ? {} : dashboard) : undefined,
    control,
    lldp: (lldp ?? dcbx) ? filled(lldpSchema, typeof lldp === "object" ? lldp : {}) : undefined,
  };
}

/** DCBX in full. `fallback`: the priority of RoCEv2, where the file does not set it. */
function dcbxOf(kind: "switch" | "nic", dcbx: SwitchDaemonInput["dcbx"], fallback: number | undefined) {
  if (!dcbx) return undefined;
  const { roce_priority = fallback, ...full } = { ports: {}, ...filled(kDcbx[kind], dcbx === true ? {} : dcbx) };
  return { ...full, willing: full.willing ?? false, roce_priority };
}

type BackendFields = Pick<Full<typeof portSchema>, "backend" | "receive" | "transmit" | "xdp_mode" | "ring">;

function backendOf({ backend, receive, transmit = backend, xdp_mode, ring }: BackendFields): BackendWish {
  receive ??= backend === "live" ? "af_xdp" : backend;
  return { receive, transmit, xdp_mode, ring };
}

/** Chooses packet sockets for a port with a delay: frames that are under way fill their rings, and those of AF_XDP are small. */
const withDelay = (delay: number, wish: BackendWish): BackendWish =>
  delay > 0 && wish.receive === "auto" ? { ...wish, receive: "af_packet" } : wish;

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
      vlans: resolveVlans(written.vlans),
      impairment: written.impairment && impairment,
      backend: withDelay(port.delay, backendOf({ backend, receive, transmit, xdp_mode, ring })),
    };
  });
  const {
    ports: _,
    workers = [{}],
    static_fdb,
    changes,
    telemetry,
    faults,
    router,
    name: _n,
    metrics: _m,
    dashboard: _d,
    control: _c,
    lldp: _lldp,
    dcbx,
    ...section
  } = filled(switchDaemonSchema, input);
  const resolved = resolveSwitch(own.name, { ...filled(switchSchema, {}), ...section }, ports);
  return {
    kind: "switch",
    ...own,
    dcbx: dcbxOf("switch", dcbx, lowest(resolved.pfc)),
    ports,
    workers: workers.map((worker) => placeOf(filled(workerSchema, worker))),
    switch: resolved,
    static_fdb,
    changes: changes.map((change) => filled(rateChangeSchema, change)).sort((a, b) => a.at - b.at),
    telemetry,
    faults,
    router: router === false ? undefined : resolveRouter(router, ports[0]?.mac ?? 0),
  };
}

/** Resolves a NIC. Files that it names are relative to `directory`. */
export function resolveNicDaemon(
  input: NicInput,
  fallbackName: string,
  directory: string,
  inspect: Inspector,
  found: Findings,
): NicDaemonConfig {
  const own = common(input, fallbackName, "nic");
  const facts = inspect(input.interface, input.namespace, ["interface"]);
  const full = filled(nicDaemonSchema, input);
  const addresses = [input.address].flat();
  const backend = backendOf(full);
  // The frames that AF_XDP takes from the kernel do not include those of neighbour discovery.
  if (addresses.some(isIPv6) && backend.receive === "auto") backend.receive = "af_packet";
  const { rate, path_mtu, line_rate_start, initial_rate, cnp, ack, receive_buffer, trimmed_dscp, pause_storm, qcn } =
    full;
  const caughtUp = full.programs === false ? 0 : Math.round((rate / 8) * kProgramBurstSeconds);
  const { burst = Math.max(filled(hostSchema, {}).burst, caughtUp) } = full;
  const host = {
    path_mtu,
    line_rate_start,
    initial_rate,
    burst,
    cnp,
    ack,
    receive_buffer,
    trimmed_dscp,
    pause_storm,
    qcn,
  };
  const { trust, default_priority } = full;
  const written = { pfc: full.pfc, scheduler: full.scheduler, trust, dscp_map: full.dscp_map, default_priority };
  const { pfc, scheduler, dscp_map } = resolveSwitch(own.name, filled(switchSchema, written), []);
  const queue_pairs = resolveQueuePairs(full, dscp_map, found);
  const programs =
    full.programs === false ? undefined : filled(programsSchema, full.programs === true ? {} : full.programs);
  return {
    kind: "nic",
    ...own,
    dcbx: dcbxOf("nic", full.dcbx, queue_pairs[0]?.priority ?? programs?.priority),
    port: {
      name: input.interface,
      interface: input.interface,
      namespace: full.namespace,
      rate,
      mtu: full.mtu ?? facts.mtu,
      mac: full.mac ?? facts.mac,
      backend,
    },
    worker: placeOf(full.worker),
    address: addresses[0] ?? "",
    addresses,
    gateways: (full.gateway === undefined ? [] : [full.gateway].flat()).map(({ address, prefix }) => ({
      address,
      prefix: prefix ?? (isIPv6(address) ? 64 : 24),
    })),
    vlan: full.vlan,
    host: resolveHost(own.name, host, rate, (groups) => resolveGroups(full.congestion, groups, rate), {
      priorities: kDefaultCnpvs,
    }),
    classes: { pfc, scheduler, trust, dscp_map, default_priority },
    congestion: resolveCongestion(full.congestion, rate, (file) => resolvePath(directory, file), found),
    transport: resolveTransport(
      filled(transportSchema, typeof full.transport === "string" ? { type: full.transport } : full.transport),
    ),
    queue_pairs,
    programs,
    faults: full.faults,
  };
}

const lowest = ({ enabled, by, priorities }: SwitchConfig["pfc"]) =>
  enabled && by === "pfc" && priorities.length > 0 ? Math.min(...priorities) : undefined;

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

/** Finds the peer with an address; undefined when `text` is no address. */
function peerAt(text: string, peers: Peer[]): Peer | undefined {
  if (isIP(text) === 0) return undefined;
  const address = canonicalAddress(text);
  return peers.find((peer) => peer.address === address) ?? { name: address, address, mac: undefined };
}

const hex = (qpn: number) => `0x${qpn.toString(16)}`;
