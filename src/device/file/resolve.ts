// From a daemon's file as written to its configuration in full: defaults merged, interfaces looked up. Judges nothing.

import type { z } from "zod";
import type { Problem } from "../../base/error.js";
import { defaultsOf } from "../../base/fields.js";
import { merge } from "../../base/merge.js";
import { congestionSchema, resolveCongestionSection } from "../../congestion/section.js";
import type { BackendWish } from "../../host/backend.js";
import type { InterfaceFacts } from "../../host/interface.js";
import type { Findings } from "../../scenario/check_device.js";
import { unknownName } from "../../scenario/check_topology.js";
import { type HostInput, hostSchema, type SwitchInput, switchSchema } from "../../scenario/device_schema.js";
import { dscpOf, IMPAIRMENT_DEFAULTS, resolveHost, resolveSwitch } from "../../scenario/resolve.js";
import {
  type DaemonInput,
  kDashboardPorts,
  kMetricsPorts,
  kMostLearned,
  type NicDaemonInput,
  nicDaemonSchema,
  type SwitchDaemonInput,
  sendSchema,
} from "./schema.js";
import type {
  DaemonPort,
  DashboardConfig,
  MetricsConfig,
  NicDaemonConfig,
  QueuePairConfig,
  SwitchDaemonConfig,
  SwitchDaemonPort,
  WorkerPlace,
} from "./types.js";

/** `path` is where the interface is named in the file. */
export type Inspector = (name: string, namespace: string | undefined, path: Problem["path"]) => InterfaceFacts;

const SWITCH_DEFAULTS = switchSchema.parse(defaultsOf(switchSchema));
const HOST_DEFAULTS = hostSchema.parse(defaultsOf(hostSchema));
const CONGESTION_DEFAULTS = congestionSchema.parse(defaultsOf(congestionSchema));
const DEFAULT_CNPVS = [3];
const SEND_DEFAULTS = sendSchema.parse(defaultsOf(sendSchema)) as {
  operation: "write";
  message: number;
  start: number;
};
const { rate: NIC_RATE } = nicDaemonSchema.pick({ rate: true }).parse(defaultsOf(nicDaemonSchema.pick({ rate: true })));

function common(input: DaemonInput, fallbackName: string, kind: "switch" | "nic") {
  const address = "127.0.0.1";
  const defaults: MetricsConfig = { address, port: kMetricsPorts[kind], per_qp: false, node_infiniband: false };
  const metrics = { ...defaults, ...definedOnly(input.metrics || {}) };
  return {
    name: input.name ?? fallbackName,
    metrics: input.metrics === false ? undefined : metrics,
    dashboard: dashboardOf(input.dashboard, { address, port: kDashboardPorts[kind] }),
    control: input.control,
  };
}

function dashboardOf(input: DaemonInput["dashboard"], defaults: DashboardConfig): DashboardConfig | undefined {
  if (input === undefined || input === false) return undefined;
  return { ...defaults, ...definedOnly(input === true ? {} : input) };
}

function definedOnly<T extends object>(object: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as never;
}

type BackendInput = Pick<NicDaemonInput, "backend" | "receive" | "transmit" | "xdp_mode" | "ring">;

function backendOf({ backend = "auto", receive, transmit, xdp_mode = "auto", ring = 512 }: BackendInput): BackendWish {
  return { receive: receive ?? backend, transmit: transmit ?? backend, xdp_mode, ring };
}

function placeOf({ cpu = -1, polling = "interrupt" }: NonNullable<NicDaemonInput["worker"]>): WorkerPlace {
  return { cpu, polling };
}

const PRIORITIES = ["0", "1", "2", "3", "4", "5", "6", "7"] as const;
type Priority = (typeof PRIORITIES)[number];

export function resolveSwitchDaemon(
  input: SwitchDaemonInput,
  fallbackName: string,
  inspect: Inspector,
): SwitchDaemonConfig {
  const own = common(input, fallbackName, "switch");
  const byPriority = (limit: (priority: Priority) => number | undefined) => PRIORITIES.map((p) => limit(p) ?? 0);
  const ports = input.ports.map((port, i): SwitchDaemonPort => {
    const facts = inspect(port.interface, port.namespace, ["ports", i, "interface"]);
    return {
      name: port.name ?? port.interface,
      interface: port.interface,
      namespace: port.namespace,
      rate: port.rate ?? 0,
      mtu: port.mtu ?? facts.mtu,
      mac: facts.mac,
      priorityRates: byPriority((p) => port.limits?.[p]?.rate),
      queueLimits: byPriority((p) => port.limits?.[p]?.buffer),
      maxLearnedAddresses: port.max_learned_addresses ?? kMostLearned,
      stormControl: { broadcast: 0, unknown_unicast: 0, multicast: 0, ...definedOnly(port.storm_control ?? {}) },
      impairment: port.impairment && { ...IMPAIRMENT_DEFAULTS, ...definedOnly(port.impairment) },
      backend: backendOf(port),
      worker: port.worker ?? 0,
    };
  });
  const { ports: _, workers, static_fdb, name: _name, metrics: _m, dashboard: _d, control: _c, ...written } = input;
  const section = merge<SwitchInput>(SWITCH_DEFAULTS, { forwarding: "learning" }, written);
  const mtus = ports.map((port) => port.mtu);
  return {
    kind: "switch",
    ...own,
    ports,
    workers: (workers ?? [{}]).map(placeOf),
    switch: resolveSwitch(own.name, section, mtus),
    static_fdb: static_fdb ?? [],
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
  const rate = input.rate ?? (NIC_RATE as number);
  const port: DaemonPort = {
    name: input.interface,
    interface: input.interface,
    namespace: input.namespace,
    rate,
    mtu: input.mtu ?? facts.mtu,
    mac: input.mac ?? facts.mac,
    backend: backendOf(input),
  };
  const { path_mtu, line_rate_start, initial_rate, burst, cnp, receive_buffer, qcn } = input;
  const host = merge<HostInput>(HOST_DEFAULTS, {
    path_mtu,
    line_rate_start,
    initial_rate,
    burst,
    cnp,
    receive_buffer,
    qcn,
  });
  const { pfc, scheduler, trust, dscp_map, default_priority } = input;
  const classes = merge<SwitchInput>(SWITCH_DEFAULTS, { pfc, scheduler, trust, dscp_map, default_priority });
  const resolved = resolveSwitch(own.name, classes, [port.mtu]);
  const congestion = merge<z.output<typeof congestionSchema>>(CONGESTION_DEFAULTS, input.congestion);
  return {
    kind: "nic",
    ...own,
    port,
    worker: placeOf(input.worker ?? {}),
    address: input.address,
    host: resolveHost(own.name, host, rate, DEFAULT_CNPVS),
    classes: {
      pfc: resolved.pfc,
      scheduler: resolved.scheduler,
      trust: resolved.trust,
      dscp_map: resolved.dscp_map,
      default_priority: resolved.default_priority,
    },
    congestion: resolveCongestionSection(congestion, rate, found),
    queue_pairs: resolveQueuePairs(input, resolved.dscp_map, found),
  };
}

function resolveQueuePairs(input: NicDaemonInput, map: number[], found: Findings): QueuePairConfig[] {
  const peers = input.peers ?? [];
  const first = input.queue_pairs?.[0]?.qpn ?? 0x11;
  return (input.queue_pairs ?? []).flatMap((pair, i): QueuePairConfig[] => {
    const peer = peers.find(({ name }) => name === pair.peer);
    if (peer === undefined) {
      const path = ["queue_pairs", i, "peer"];
      const { message, hint } = unknownName(
        path,
        "peer",
        pair.peer,
        peers.map(({ name }) => name),
      );
      found.problem(path, message, hint);
      return [];
    }
    const qpn = first + i;
    if (pair.qpn !== undefined && pair.qpn !== qpn) {
      const message = `${hex(pair.qpn)} does not follow the one before`;
      found.problem(["queue_pairs", i, "qpn"], message, `queue pairs are numbered in order: ${hex(qpn)}`);
    }
    const priority = pair.priority ?? 3;
    const { send } = pair;
    return [
      {
        name: pair.name,
        peer,
        qpn,
        remote_qpn: pair.remote_qpn ?? qpn,
        priority,
        dscp: pair.dscp ?? dscpOf(map, priority),
        send: send && { ...SEND_DEFAULTS, rate: send.rate, bytes: send.bytes, ...definedOnly(send) },
      },
    ];
  });
}

const hex = (qpn: number) => `0x${qpn.toString(16)}`;
