/** LLDP and DCBX at the ports of a daemon's device: the ports tell and hear, and the device takes over some of what they hear. */
import { macText } from "../base/mac.js";
import { hearsCnms } from "../congestion/flow_state.js";
import { portsOf } from "../device/compose.js";
import { etsOf, schedulerOf } from "../device/ets.js";
import type { DaemonPort, DcbxConfig, DeviceConfig, LldpConfig } from "../device/file/types.js";
import type { DcbxPortReport, DcbxReport, LldpPortReport, LldpReport } from "../device/protocol.js";
import type { TrafficClasses } from "../scenario/types.js";
import { type Clock, systemClock } from "../wire/cm/link.js";
import { LldpAgent, type Neighbour, neighbourText } from "../wire/lldp/agent.js";
import { buildDcb, type DcbTlvs, readDcb } from "../wire/lldp/dcb_tlv.js";
import {
  announcement,
  type DcbxLocal,
  type DcbxPeer,
  type DcbxState,
  type Mismatch,
  negotiate,
} from "../wire/lldp/dcbx.js";
import {
  capabilityNames,
  chassisText,
  kCapability,
  kChassisSubtype,
  kPortSubtype,
  type Lldpdu,
  macIdentifier,
  portText,
} from "../wire/lldp/lldpdu.js";
import type { Log } from "./log.js";

/** Settings that peers have a willing device take over. */
export type Adopted = Partial<Pick<TrafficClasses, "pfc" | "scheduler">>;

export interface DiscoveryHost {
  version: string;
  log: Log;
  /** Sends a frame out of a port; false if it was not taken. */
  send(port: number, frame: Buffer): boolean;
  /** Called when adopted() or defence() may give something else. */
  changed(): void;
  clock?: Clock;
}

interface Peer extends DcbxPeer {
  neighbour: Neighbour;
}

interface Port {
  readonly config: DaemonPort;
  readonly agent: LldpAgent;
  /** Neighbours with what they told last. */
  heard: Peer[];
  dcbx: { local: DcbxLocal; state: DcbxState } | undefined;
}

export class Discovery {
  readonly #ports: Port[];
  readonly #clock: Clock;
  readonly #chassis: number;
  /** Set when the device cannot have what it would take over: it is not willing then, until the file is read again. */
  #refuses = false;

  /** @param config A configuration with `lldp`. */
  constructor(
    private config: DeviceConfig & { lldp: LldpConfig },
    private readonly host: DiscoveryHost,
  ) {
    this.#clock = host.clock ?? systemClock;
    const ports = portsOf(config);
    this.#chassis = ports[0]?.mac ?? 0;
    this.#ports = ports.map((port, i) => this.#port(port, i));
    for (const port of this.#ports) this.#decide(port);
  }

  setUp(port: number, up: boolean): void {
    this.#ports[port]?.agent.setUp(up);
  }

  /** @param frame With its Ethernet header, untagged. */
  receive(port: number, frame: Buffer): void {
    this.#ports[port]?.agent.receive(frame);
  }

  /** Takes another file for the same ports. */
  reconfigure(config: DeviceConfig & { lldp: LldpConfig }): void {
    this.config = config;
    this.#refuses = false;
    for (const port of this.#ports) {
      this.#decide(port);
      port.agent.setTimes(timesOf(config.lldp));
    }
  }

  /** Tells neighbours that the ports leave. Idempotent. */
  close(): void {
    for (const { agent } of this.#ports) agent.close();
  }

  /** Called when what adopted() gives cannot be had. */
  refuse(error: string): void {
    if (this.#refuses) return;
    this.host.log.error({ error }, "DCBX: the peer's parameters cannot be had here, willing no more");
    this.#refuses = true;
    for (const port of this.#ports) this.#decide(port);
  }

  /** Settings of the first port that takes them from its peer. */
  adopted(): Adopted {
    const states = this.#ports.flatMap(({ dcbx }) => (dcbx === undefined ? [] : [dcbx.state]));
    const pfc = states.find(({ pfc }) => pfc.from === "peer")?.pfc.priorities;
    const ets = states.find(({ ets }) => ets.from === "peer")?.ets;
    return {
      ...(pfc && { pfc: { enabled: pfc.length > 0, priorities: [...pfc], link_pause: false, by: "pfc" } }),
      ...(ets && { scheduler: schedulerOf(ets) }),
    };
  }

  /** The defence that `auto` means in congestion notification. */
  defence(port: string, cnpv: number): "edge" | "interior" | "interior-ready" {
    const found = this.#ports.find(({ config }) => config.name === port)?.dcbx;
    // A port without DCBX hears no readiness, and is taken to be ready.
    return found === undefined ? "interior-ready" : (found.state.cn.get(cnpv) ?? "edge");
  }

  lldpReport(): LldpReport {
    const { tx_interval, tx_hold } = this.config.lldp;
    return {
      enabled: true,
      chassis: macText(this.#chassis),
      tx_interval_s: tx_interval / 1e9,
      tx_hold,
      ports: this.#ports.map((port): LldpPortReport => {
        const { counts, neighbours } = port.agent;
        return {
          port: port.config.name,
          neighbours: neighbours.map((neighbour) => this.#neighbourReport(neighbour)),
          frames_out: counts.framesOut,
          frames_out_refused: counts.framesOutRefused,
          frames_in: counts.framesIn,
          frames_limited: counts.framesLimited,
          frames_discarded: counts.framesDiscarded,
          frames_in_errors: counts.framesInErrors,
          tlvs_discarded: counts.tlvsDiscarded,
          tlvs_unrecognized: counts.tlvsUnrecognized,
          ageouts: counts.ageouts,
          too_many_neighbours: counts.tooManyNeighbours,
        };
      }),
    };
  }

  dcbxReport(): DcbxReport {
    const ports = this.#ports.flatMap((port): DcbxPortReport[] => {
      if (port.dcbx === undefined) return [];
      const { local, state } = port.dcbx;
      const peers = port.heard.filter(speaksDcb);
      const peer = peerOf(port);
      return [
        {
          port: port.config.name,
          willing: local.willing,
          peers: peers.length,
          local: tlvsOf(local),
          peer: peer === undefined ? null : { ...neighbourText(peer.neighbour), ...peer.dcb },
          peer_roce_priority: state.roce.peer ?? null,
          operational: { pfc: state.pfc, ets: state.ets },
          congestion: Object.fromEntries(state.cn),
          mismatches: [...state.mismatches],
        },
      ];
    });
    return { enabled: this.config.dcbx !== undefined, ports };
  }

  #neighbourReport({ pdu, mac, expiresAt }: Neighbour): LldpPortReport["neighbours"][number] {
    return {
      chassis: chassisText(pdu.chassis),
      port: portText(pdu.port),
      mac: macText(mac),
      system_name: pdu.systemName ?? null,
      system_description: pdu.systemDescription ?? null,
      port_description: pdu.portDescription ?? null,
      capabilities: capabilityNames(pdu.capabilities?.enabled ?? 0),
      management_addresses: pdu.managementAddresses,
      ttl_s: pdu.ttl,
      expires_in_s: Math.max(0, (expiresAt - this.#clock.now()) / 1000),
    };
  }

  #port(config: DaemonPort, index: number): Port {
    const { log } = this.host;
    const about = { port: config.name };
    const link = { mac: config.mac, send: (frame: Buffer) => this.host.send(index, frame) };
    const agent = new LldpAgent(link, this.#clock, timesOf(this.config.lldp), () => this.#tell(port), {
      changed: () => this.#hear(port),
      appeared: (neighbour) => log.info({ ...about, ...neighbourText(neighbour) }, "LLDP neighbour"),
      left: (neighbour, why) => log.info({ ...about, ...neighbourText(neighbour), why }, "LLDP neighbour is gone"),
      malformed: (mac, error) => log.warn({ ...about, from: macText(mac), error }, "malformed LLDPDU"),
    });
    const port: Port = { config, agent, heard: [], dcbx: undefined };
    return port;
  }

  #hear(port: Port): void {
    const before = port.heard;
    port.heard = port.agent.neighbours.map((neighbour) => {
      const known = before.find((peer) => peer.neighbour === neighbour);
      if (known !== undefined) return known;
      const { dcb, malformed } = readDcb(neighbour.pdu.organization);
      port.agent.countDiscarded(malformed);
      return { mac: neighbour.mac, dcb, neighbour };
    });
    const speakers = port.heard.filter(speaksDcb).length;
    if (speakers > 1 && before.filter(speaksDcb).length <= 1)
      this.host.log.warn({ port: port.config.name, peers: speakers }, "DCBX: several peers on one link, none counts");
    this.#decide(port);
  }

  /** Negotiates again, since something known or configured has changed. */
  #decide(port: Port): void {
    const { config } = this;
    const before = port.dcbx;
    if (config.dcbx === undefined) port.dcbx = undefined;
    else {
      const asFiled = localOf(config, config.dcbx, port.config);
      const local = this.#refuses ? { ...asFiled, willing: false } : asFiled;
      port.dcbx = { local, state: negotiate(local, peerOf(port)) };
    }
    if (same(before, port.dcbx)) return;
    this.#tellChange(port, before?.state, port.dcbx?.state);
    port.agent.localChanged();
    this.host.changed();
  }

  #tellChange(port: Port, before: DcbxState | undefined, now: DcbxState | undefined): void {
    const { log } = this.host;
    const about = { port: port.config.name };
    for (const mismatch of now?.mismatches ?? []) {
      if (before?.mismatches.some((other) => same(other, mismatch))) continue;
      const { local, peer } = mismatch;
      log.warn({ ...about, local, peer }, `DCBX: ${kMismatch[mismatch.of]}`);
    }
    for (const { of } of before?.mismatches ?? [])
      if (!now?.mismatches.some((mismatch) => mismatch.of === of)) log.info({ ...about, of }, "DCBX: mismatch is over");
    if (now !== undefined && (before?.pfc.from ?? "local") !== now.pfc.from)
      log.info({ ...about, of: now.pfc.from, priorities: now.pfc.priorities }, "DCBX: PFC");
    if (now !== undefined && (before?.ets.from ?? "local") !== now.ets.from)
      log.info({ ...about, of: now.ets.from, bandwidth: now.ets.bandwidth }, "DCBX: ETS");
  }

  #tell({ config: port, dcbx }: Port): Omit<Lldpdu, "ttl"> {
    const { config } = this;
    const capability = config.kind === "switch" ? kCapability.bridge : kCapability.station;
    return {
      chassis: macIdentifier(kChassisSubtype.mac, this.#chassis),
      port: { subtype: kPortSubtype.name, id: Buffer.from(port.name) },
      portDescription: `${port.interface} of ${config.name}`,
      systemName: config.name,
      systemDescription: `Weir ${this.host.version}, software ${config.kind === "switch" ? "switch" : "RoCEv2 NIC"}`,
      capabilities: { system: capability, enabled: capability },
      managementAddresses: config.kind === "nic" ? config.addresses : [],
      organization: dcbx === undefined ? [] : buildDcb(announcement(dcbx.local, dcbx.state)),
    };
  }
}

const kMismatch: Readonly<Record<Mismatch["of"], string>> = {
  pfc: "PFC differs from the peer's, and neither is willing: frames will be lost at one end",
  "roce-priority": "RoCEv2 has another priority at the peer",
};

const timesOf = ({ tx_interval, tx_hold }: LldpConfig) => ({ msgTxInterval: tx_interval / 1e9, msgTxHold: tx_hold });

const speaksDcb = ({ dcb }: { dcb: DcbTlvs }) => Object.keys(dcb).length > 0;

/** Returns the peer that counts: if a link has several, none does (IEEE 802.1Q, 38.4.1). */
function peerOf({ heard }: Port): Peer | undefined {
  const [first, ...others] = heard.filter(speaksDcb);
  return others.length === 0 ? first : undefined;
}

function localOf(config: DeviceConfig, dcbx: DcbxConfig, port: DaemonPort): DcbxLocal {
  const { pfc, scheduler } = config.kind === "switch" ? config.switch : config.classes;
  return {
    mac: port.mac,
    willing: dcbx.ports[port.name]?.willing ?? dcbx.willing,
    pfc: pfc.enabled && pfc.by === "pfc" ? [...pfc.priorities].sort((a, b) => a - b) : [],
    ets: etsOf(scheduler),
    rocePriority: dcbx.roce_priority,
    congestion: config.kind === "switch" ? switchCongestion(config.switch.qcn, port.name) : nicCongestion(config),
  };
}

type SwitchQcn = Extract<DeviceConfig, { kind: "switch" }>["switch"]["qcn"];

function switchCongestion({ enabled, priorities, ports, defence }: SwitchQcn, port: string): DcbxLocal["congestion"] {
  const wish = ports[port]?.defence ?? defence;
  if (!enabled || wish === "disabled") return undefined;
  // A written defence tells its CNPVs, and they are ready unless frames lose their priority.
  return { cnpvs: priorities, automatic: wish === "auto" ? priorities : [], edge: wish === "edge" };
}

/** An end station takes CN-TAGs. */
function nicCongestion({ congestion, host }: Extract<DeviceConfig, { kind: "nic" }>): DcbxLocal["congestion"] {
  return hearsCnms(congestion.algorithm) ? { cnpvs: host.qcn.priorities, automatic: [], edge: false } : undefined;
}

function tlvsOf(local: DcbxLocal): DcbxPortReport["local"] {
  return { pfc: [...local.pfc], ets: local.ets, roce_priority: local.rocePriority ?? null };
}

/** JSON has no maps: they are compared by their entries. */
const plain = (_: string, value: unknown) => (value instanceof Map ? [...value] : value);
const same = (a: unknown, b: unknown) => JSON.stringify(a, plain) === JSON.stringify(b, plain);
