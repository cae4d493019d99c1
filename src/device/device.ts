/** A running switch or NIC, of a daemon or a lab: its identity, state and counts, for control sockets, dashboards, metrics and captures. */

import { WeirError } from "../base/error.js";
import { macText } from "../base/mac.js";
import { hasAlpha, hasStages, hasWindow } from "../congestion/flow_state.js";
import { type Counter, type Counters, type CounterTable, countersOf } from "../native/counters.js";
import type { CounterDescription, NativeAddon, NativeWorker } from "../native/types.js";
import { settingsOf } from "../scenario/port_profiles.js";
import type { Congestion, HostConfig, SwitchConfig, TrafficClasses } from "../scenario/types.js";
import { kPriorities } from "../wire/priority.js";
import { switchSettings } from "./behaviour.js";
import { type CaptureEvents, Captures } from "./captures.js";
import type { ControlRequest, Stream } from "./control_server.js";
import { type FaultRequest, parseKill } from "./fault_request.js";
import { DeviceFaults, type FaultPort } from "./faults.js";
import type { RouterConfig } from "./file/router.js";
import type { SwitchDaemonPort } from "./file/types.js";
import type {
  ControlRequests,
  DcbxReport,
  FaultReport,
  FdbEntry,
  LldpReport,
  NeighborReport,
  PortStatus,
  ProgramIdentity,
  ProgramReport,
  QosReport,
  QueuePairReport,
  ReactionPointReport,
  RouteReport,
  Status,
  SwitchReport,
} from "./protocol.js";
import { neighborsOf, routesOf } from "./router.js";

/** A port with the further facts that metrics tell of it. */
export type DevicePort = PortStatus & { transitions: number };

/** Present configuration of a switch; its ports in their order, those of labs without limits. */
export interface SwitchSetting {
  config: SwitchConfig;
  router?: RouterConfig | undefined;
  ports: readonly (Pick<SwitchDaemonPort, "name"> & Partial<SwitchDaemonPort>)[];
}

/** Present configuration of a NIC; its queue pairs in their order. */
export interface NicSetting {
  classes: TrafficClasses;
  /** Size of the receive buffer, bytes. */
  receiveBuffer: number;
  congestion: Congestion;
  qcn: HostConfig["qcn"];
  pairs: readonly { peer: string; priority: number; unresolved?: boolean }[];
}

/** Source of a device's facts: a daemon has one device, a lab several. */
export interface DeviceSource {
  readonly kind: Status["kind"];
  readonly name: string;
  /** Wall time = meant time * scale; 1 for daemons. A Device tells meant times. */
  readonly scale: number;
  readonly addon: Pick<NativeAddon, "Capture">;
  /** The worker that runs the device, and its number there. */
  readonly worker: Pick<
    NativeWorker,
    "switchState" | "forwardingTable" | "forwardingEntries" | "neighbors" | "queuePairs" | "programs" | "worstGap"
  >;
  readonly index: number;
  /** Counters of that worker, as just read, or as last looked at. */
  counted(): CounterTable;
  /** Returns the setting of a switch. */
  switchSetting(): SwitchSetting | undefined;
  /** Returns the setting of a NIC. */
  nicSetting(): NicSetting | undefined;
  /** Programs that use a NIC, by their numbers at the worker. */
  programs?(): ReadonlyMap<number, ProgramIdentity>;
  /** How many of them have paths of their own. */
  lent?(): number;
  ports(): DevicePort[];
  /** Reports of LLDP and DCBX where they are on; labs have none. */
  lldp?(): LldpReport | undefined;
  dcbx?(): DcbxReport | undefined;
  /** Places where frames of its ports pass. */
  places(): FaultPort[];
}

/** Facts that only the process knows that runs the device. */
export interface DeviceHost {
  version: string;
  status(): Pick<Status, "uptime_s" | "control" | "metrics" | "dashboard">;
  captures?: CaptureEvents;
  /** Hears of faults that are made, or ended by command. */
  faulted?(what: string): void;
  /** Kills the process after so long, ms, as SIGKILL does. Absent where other devices would go, too. */
  kill?(after: number): void;
}

const kTimes = new Set(["ns", "centiseconds"]);
const kNoVlans = { untagged: 0, tagged: [] };
const kNoStorms = { broadcast: 0, unknown_unicast: 0, multicast: 0 };

type Answers = { [Name in keyof ControlRequests]: () => ControlRequests[Name] } & { capture: () => Stream };

export class Device {
  readonly kind: Status["kind"];
  readonly name: string;
  readonly scale: number;
  private cleared: { at: Date; counters?: Counters } = { at: new Date() };
  private readonly captures: Captures;
  readonly faults: DeviceFaults;
  /** Positions of its counters in the manifest of its worker. */
  private own: readonly number[] = [];

  constructor(
    private readonly source: DeviceSource,
    private readonly host: DeviceHost,
  ) {
    ({ kind: this.kind, name: this.name, scale: this.scale } = source);
    const about = { kind: source.kind, name: source.name, version: host.version };
    this.captures = new Captures(() => ({ addon: source.addon, about, ports: source.places() }), host.captures);
    this.faults = new DeviceFaults(
      source.name,
      source.kind,
      source.scale,
      () => source.places(),
      () => source.lent?.() ?? 0,
    );
  }

  /** Makes the faults of the device's file, in place of those that it had. @throws WeirError for one that cannot be. */
  replaceFaults(faults: readonly FaultRequest[]): void {
    this.faults.replace(faults);
  }

  /** Answers a request of the control socket. @throws WeirError when there is no such request, or the device lacks what it asks for. */
  answer(asked: ControlRequest): unknown {
    const answers: Answers = {
      status: () => this.status(),
      counters: () => this.counters(),
      ports: () => this.ports(),
      switch: () => this.switchReport(),
      fdb: () => this.forwarding(),
      routes: () => this.routes(),
      neighbors: () => this.neighbors(),
      queue_pairs: () => this.queuePairs(),
      reaction_points: () => this.reactionPoints(),
      programs: () => this.programs(),
      qos: () => this.qos(),
      lldp: () => this.lldp(),
      dcbx: () => this.dcbx(),
      clear: () => this.clear(),
      fault: () => this.#faulted(this.faults.make(asked), "begins"),
      faults: () => this.faults.list(),
      end_fault: () => this.faults.end(asked).map((fault) => this.#faulted(fault, "ends")),
      kill: () => this.kill(asked),
      capture: () => this.captures.answer(asked),
    };
    const { request } = asked;
    if (Object.hasOwn(answers, request)) return answers[request as keyof Answers]();
    throw new WeirError(`unknown request ${request}`, { hint: `known: ${Object.keys(answers).join(", ")}` });
  }

  #faulted(fault: FaultReport, what: "begins" | "ends"): FaultReport {
    this.host.faulted?.(`${fault.kind} at ${fault.port} ${what}`);
    return fault;
  }

  /** Has the daemon die on purpose. @throws WeirError for a device that has none of its own. */
  private kill(asked: object): ControlRequests["kill"] {
    const { after = 0 } = parseKill(asked);
    if (this.host.kill === undefined) {
      throw new WeirError(`${this.name} has no process of its own`, { hint: "weir lab down ends a lab" });
    }
    this.host.kill(after / 1e6);
    return { pid: process.pid, after_s: after / 1e9 };
  }

  status(): Status {
    const { kind, name, scale } = this;
    const { uptime_s, ...where } = this.host.status();
    return { kind, name, version: this.host.version, pid: process.pid, uptime_s, scale, ...where };
  }

  /** Counters of its worker, which may count for others too: native units, since the start. The manifest is empty before devices live. */
  counted(): CounterTable {
    return this.source.counted();
  }

  /** Counts since the last clear(). */
  counters(): ControlRequests["counters"] {
    const counters = [...this.#totals().since(this.cleared.counters)];
    return { since: this.cleared.at.toISOString(), at_ns: this.counted().asOf / this.scale, counters };
  }

  clear(): ControlRequests["clear"] {
    this.cleared = { counters: this.#totals(), at: new Date() };
    return { cleared: this.cleared.at.toISOString() };
  }

  ports(): DevicePort[] {
    return this.source.ports();
  }

  /** @throws WeirError when this is a NIC. */
  switchReport(): SwitchReport {
    const { config, ports } = this.#asSwitch("queues or buffer of a switch");
    const state = this.source.worker.switchState(this.source.index);
    return {
      name: this.name,
      ...switchSettings(config),
      buffer: state.buffer,
      ports: state.ports.map((port, i) => ({
        name: ports[i]?.name ?? "",
        max_learned_addresses: ports[i]?.max_learned_addresses ?? 0,
        storm_control: ports[i]?.storm_control ?? kNoStorms,
        vlans: ports[i]?.vlans ?? kNoVlans,
        profile: config.profiled.get(ports[i]?.name ?? "")?.name ?? null,
        settings: settingsOf(config, ports[i]?.name ?? ""),
        ...port,
      })),
    };
  }

  /** @throws WeirError when this is a NIC. */
  forwarding(): FdbEntry[] {
    const { ports } = this.#asSwitch("forwarding table");
    return this.source.worker.forwardingTable(this.source.index).map((entry) => ({
      mac: macText(entry.mac),
      vlan: entry.vlan,
      ports: entry.ports.map((port) => ports[port]?.name ?? String(port)),
      kind: entry.learned ? "learned" : "static",
      expires_in_s: entry.expires_in === undefined ? null : entry.expires_in / 1e9 / this.scale,
    }));
  }

  /** @throws WeirError when this is a NIC. */
  routes(): RouteReport[] {
    const { router } = this.#asSwitch("routes");
    return router === undefined ? [] : routesOf(router);
  }

  /** @throws WeirError when this is a NIC. */
  neighbors(): NeighborReport[] {
    const { router, ports } = this.#asSwitch("neighbors");
    if (router === undefined) return [];
    const names = ports.map(({ name }) => name);
    return neighborsOf(router, names, this.source.worker.neighbors(this.source.index));
  }

  /** Number of entries in the forwarding table of a switch. */
  forwardingEntries(): number {
    return this.source.worker.forwardingEntries(this.source.index);
  }

  /** @throws WeirError when this is a switch. */
  queuePairs(): QueuePairReport[] {
    const { pairs, congestion } = this.#asNic();
    const { algorithm } = congestion;
    const programs = this.source.programs?.();
    return this.source.worker.queuePairs(this.source.index).map(({ connecting, ...pair }, i) => {
      const program = programs?.get(pair.program) ?? null;
      return {
        ...pair,
        name: program === null ? pair.name : `${program.command || "program"}/${pair.qpn}`,
        state: pairs[i]?.unresolved === true ? "unresolved" : connecting ? "connecting" : pair.state,
        rate: pair.rate * this.scale,
        target_rate: pair.target_rate * this.scale,
        peer: pairs[i]?.peer ?? pair.peer ?? "",
        alpha: hasAlpha(algorithm) ? pair.alpha : null,
        window: hasWindow(algorithm) && pair.window > 0 ? pair.window : null,
        stage: hasStages(algorithm) ? pair.stage : null,
        program,
      };
    });
  }

  /** Reaction points of each CNPV; none unless it runs QCN. @throws WeirError when this is a switch. */
  reactionPoints(): ReactionPointReport[] {
    const { congestion, qcn } = this.#asNic();
    if (congestion.algorithm !== "qcn") return [];
    const { parameters, variant } = congestion;
    const most = qcn.reaction_points;
    return [...qcn.priorities]
      .sort()
      .map((priority) => ({ priority, variant, most, ...(qcn.groups.get(priority) ?? parameters) }));
  }

  /** Programs that use this NIC. @throws WeirError when this is a switch. */
  programs(): ProgramReport[] {
    this.#asNic();
    const known = this.source.programs?.() ?? new Map<number, ProgramIdentity>();
    if (known.size === 0) return [];
    return this.source.worker.programs(this.source.index).flatMap(({ number, queue_pairs, counters, ...drops }) => {
      const program = known.get(number);
      if (program === undefined) return [];
      const count = (name: string) => counters[name] ?? 0;
      return {
        ...program,
        queue_pairs,
        tx_packets: count("tx_packets"),
        tx_bytes: count("tx_bytes"),
        rx_packets: count("rx_packets"),
        rx_bytes: count("rx_bytes"),
        drop_program_busy: drops.drop_busy,
        drop_program_packet: drops.drop_packet,
      };
    });
  }

  /** Settings of priorities, with the headroom of each lossless one at a switch; a NIC's receive buffer is that of all priorities. */
  qos(): QosReport {
    const nic = this.source.nicSetting();
    const classes = nic?.classes ?? this.#asSwitch("queues").config;
    const { scheduler, trust, dscp_map, default_priority, pfc } = classes;
    const pfc_priorities = pfc.enabled ? pfc.priorities : [];
    const kept = nic === undefined ? this.#asSwitch("queues").config.buffer.headroom : 0;
    const headroom = kPriorities.map((p) => (pfc_priorities.includes(p) ? kept : 0));
    if (nic !== undefined) headroom[0] = nic.receiveBuffer;
    const profiled = nic === undefined ? [...this.#asSwitch("queues").config.profiled] : [];
    const port_headroom = Object.fromEntries(profiled.map(([port, { buffer }]) => [port, buffer.headroom]));
    return { scheduler, trust, dscp_map, default_priority, pfc_priorities, headroom, port_headroom };
  }

  lldp(): LldpReport {
    return this.source.lldp?.() ?? { enabled: false, chassis: null, tx_interval_s: 0, tx_hold: 0, ports: [] };
  }

  dcbx(): DcbxReport {
    return this.source.dcbx?.() ?? { enabled: false, ports: [] };
  }

  /** Longest gap of its worker so far, wall ns. */
  loopGap(): number {
    return this.source.worker.worstGap();
  }

  /** Ends its captures. It is called before its worker is closed. Idempotent. */
  close(): void {
    this.captures.close();
  }

  /** Counters of the device, the same ones in the same order each time. */
  #totals(): Counters {
    const table = this.counted();
    const { manifest } = table;
    if (this.own.length === 0) this.own = placesOf(table, this.name);
    const own = this.own.map((i): Counter => {
      const { help: _, ...counter } = manifest[i] as CounterDescription;
      return { ...counter, value: kTimes.has(counter.unit) ? table.value(i) / this.scale : table.value(i) };
    });
    return countersOf(own);
  }

  #asSwitch(what: string): SwitchSetting {
    const setting = this.source.switchSetting();
    if (setting === undefined) throw new WeirError(`${this.name} is a NIC: it has no ${what}`);
    return setting;
  }

  #asNic(): NicSetting {
    const setting = this.source.nicSetting();
    if (setting === undefined) throw new WeirError(`${this.name} is a switch: it has no queue pairs or programs`);
    return setting;
  }
}

function placesOf({ manifest }: CounterTable, device: string): number[] {
  return manifest.flatMap(({ labels }, i) => ((labels.switch ?? labels.device) === device ? [i] : []));
}
