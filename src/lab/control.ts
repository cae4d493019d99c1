/**
 * The control socket of a lab: while it runs, its devices answer what daemons are asked, in meant units. One socket for all of
 * them, NAME.lab.sock, which no daemon can have: names have no dots.
 */
import { join } from "node:path";
import { WeirError } from "../base/error.js";
import { Captures } from "../device/captures.js";
import { controlSockets, kLabSuffix, probe } from "../device/control_client.js";
import { type ControlRequest, ControlServer, type Stream } from "../device/control_server.js";
import type { ControlRequests, LabReport, PortStatus, Status } from "../device/protocol.js";
import {
  ClearableCounters,
  forwardingReport,
  macText,
  nicQos,
  queuePairReport,
  switchQos,
  switchReport,
} from "../device/reports.js";
import { pfcState } from "../host/port_probe.js";
import { loadAddon } from "../native/addon.js";
import type { CounterDescription, NativeAddon } from "../native/types.js";
import { hostMac, switchMac } from "../scenario/addresses.js";
import { switchPorts } from "../scenario/topology.js";
import type { Scenario, TrafficClasses } from "../scenario/types.js";
import type { LabAccess, LabObserver } from "./access.js";
import { labCaptureSource } from "./capture.js";
import { queuePairsOf } from "./compose.js";

/** Labs of one name that run at a time: the others are called NAME-2, NAME-3, ... */
const kMostOfOneName = 100;
const kVeth = { reaches: "yes", reason: "a veth passes every frame" } as const;
/** Labs have no log. */
const kSilent = { began: () => {}, ended: () => {} };
const kTimes = new Set(["ns", "centiseconds"]);

type Count = { description: CounterDescription; value: number };
type Answers = { [Name in keyof ControlRequests]: () => ControlRequests[Name] } & { capture: () => Stream };

export class LabControl implements LabObserver {
  /** Without the suffix of its socket. */
  readonly name: string;
  private server: ControlServer | undefined;
  private running: RunningDevices | undefined;

  private constructor(
    name: string,
    readonly path: string,
    private readonly version: string,
  ) {
    this.name = name;
  }

  /** @throws WeirError when there can be no socket in `directory`. */
  static async open(name: string, directory: string, version: string): Promise<LabControl> {
    // What labs left that were killed goes, also that of other names.
    await controlSockets(directory);
    for (let number = 1; number <= kMostOfOneName; number++) {
      const own = number === 1 ? name : `${name}-${number}`;
      const path = join(directory, `${own}${kLabSuffix}`);
      if (await probe(path)) continue;
      const control = new LabControl(own, path, version);
      control.server = await ControlServer.open(path, (request) => control.#answer(request));
      return control;
    }
    throw new WeirError(`${kMostOfOneName} labs called ${name} are running`);
  }

  begun(lab: LabAccess): void {
    this.running = new RunningDevices(lab, { version: this.version, control: this.path });
  }

  looked(): void {
    this.running?.look();
  }

  ended(): void {
    this.running?.close();
    this.running = undefined;
  }

  /** Removes the socket. Idempotent. */
  close(): void {
    this.server?.close();
  }

  #answer(asked: ControlRequest): unknown {
    const { request, device, ...args } = asked;
    const { running } = this;
    if (running?.live !== true) throw new WeirError("the lab does not run yet, or no more");
    if (device === undefined) {
      if (request === "lab") return running.report(this.name);
      const hint = `add "device": ${running.names.join(", ")}`;
      throw new WeirError(`a lab has several devices, and ${request} is for one`, { hint });
    }
    const answers = running.answersOf(String(device), { request, ...args });
    if (!Object.hasOwn(answers, request)) {
      throw new WeirError(`unknown request ${request}`, { hint: `known: ${Object.keys(answers).join(", ")}` });
    }
    return answers[request as keyof Answers]();
  }
}

/** A lab's devices, as its last look found them. */
class RunningDevices {
  private readonly shown = new Map<string, ClearableCounters>();
  private readonly captures = new Map<string, Captures>();
  /** By device; made when first asked for after a look. */
  private counts: Map<string, Count[]> | undefined;

  constructor(
    private readonly lab: LabAccess,
    private readonly own: Pick<Status, "version" | "control">,
  ) {}

  /** Whether its devices count already. */
  get live(): boolean {
    return this.#counts().size > 0;
  }

  get names(): string[] {
    const { switches, hosts } = this.lab.scenario;
    return [...switches, ...hosts].map(({ name }) => name);
  }

  look(): void {
    this.counts = undefined;
  }

  report(name: string): LabReport {
    const { scenario, scale } = this.lab;
    return {
      name,
      version: this.own.version,
      pid: process.pid,
      scale,
      elapsed_ns: Math.max(0, this.lab.now()),
      duration_ns: scenario.duration,
      devices: [
        ...scenario.switches.map(({ name }) => ({ name, kind: "switch" as const })),
        ...scenario.hosts.map(({ name }) => ({ name, kind: "nic" as const })),
      ],
    };
  }

  /** @throws WeirError when there is no such device. */
  answersOf(device: string, asked: object): Answers {
    const { scenario } = this.lab;
    const asSwitch = scenario.switches.findIndex(({ name }) => name === device);
    if (asSwitch >= 0) {
      return { ...this.#switchAnswers(device, asSwitch), capture: () => this.#capture(device, "switch", asked) };
    }
    const asNic = scenario.hosts.findIndex(({ name }) => name === device);
    if (asNic >= 0) return { ...this.#nicAnswers(device, asNic), capture: () => this.#capture(device, "nic", asked) };
    throw new WeirError(`the lab has no device ${device}`, { hint: `it has ${this.names.join(", ")}` });
  }

  /** Ends its captures. */
  close(): void {
    for (const captures of this.captures.values()) captures.close();
  }

  #capture(name: string, kind: Status["kind"], asked: object): Stream {
    const { lab, own } = this;
    const source = () => labCaptureSource(lab, loadAddon<NativeAddon>(), { kind, name, version: own.version });
    const captures = this.captures.get(name) ?? new Captures(source, kSilent);
    this.captures.set(name, captures);
    return captures.answer(asked);
  }

  #switchAnswers(name: string, index: number): Omit<Answers, "capture"> {
    const { scenario, scale, switches } = this.lab;
    const config = scenario.switches[index] as Scenario["switches"][number];
    const ports = switchPorts(scenario).get(name) ?? [];
    const peers = ports.map(({ peer }) => peer);
    const state = () => switches.worker.switchState(index);
    const nic = () => {
      throw new WeirError(`${name} is a switch: it has no queue pairs`);
    };
    return {
      ...this.#commonAnswers(name, "switch"),
      ports: () => {
        const { ports: states } = state();
        return ports.map(({ peer, link }, i) => ({
          ...portStatus(link, config.pfc),
          name: peer,
          interface: peer,
          mac: macText(switchMac(index, i)),
          up: states[i]?.up ?? false,
        }));
      },
      switch: () =>
        switchReport(
          config,
          peers.map((name) => ({ name })),
          state(),
        ),
      fdb: () => forwardingReport(switches.worker.forwardingTable(index), peers, scale),
      qos: () => switchQos(config),
      queue_pairs: nic,
    };
  }

  #nicAnswers(name: string, index: number): Omit<Answers, "capture"> {
    const { scenario, scale, nics } = this.lab;
    const host = scenario.hosts[index] as Scenario["hosts"][number];
    const link = scenario.links.find(({ from, to }) => from === name || to === name);
    const neighbour = scenario.switches.find((s) => s.name === link?.from || s.name === link?.to);
    if (link === undefined || neighbour === undefined) throw new Error(`host ${name} is not linked to a switch`);
    const none = (what: string) => () => {
      throw new WeirError(`${name} is a NIC: it has no ${what}`);
    };
    return {
      ...this.#commonAnswers(name, "nic"),
      ports: () => [
        {
          ...portStatus(link, neighbour.pfc),
          name: "weir0",
          interface: "weir0",
          mac: macText(hostMac(index)),
          up: true,
        },
      ],
      switch: none("queues or buffer of a switch"),
      fdb: none("forwarding table"),
      qos: () => nicQos(neighbour, host.receive_buffer.size),
      queue_pairs: () => {
        const configs = queuePairsOf(scenario, name).map(({ flow, sends }) => ({
          peer: sends ? flow.to : flow.from,
          priority: flow.priority,
        }));
        return queuePairReport(nics.worker.queuePairs(index), configs, { ...scenario.congestion, scale });
      },
    };
  }

  #commonAnswers(name: string, kind: Status["kind"]): Pick<Answers, "status" | "counters" | "clear"> {
    const { lab, own } = this;
    const counts = () => this.#counts().get(name) ?? [];
    const shown = this.shown.get(name) ?? new ClearableCounters();
    this.shown.set(name, shown);
    return {
      status: () => ({
        kind,
        name,
        version: own.version,
        pid: process.pid,
        uptime_s: Math.max(0, lab.now()) / 1e9,
        scale: lab.scale,
        control: own.control,
        metrics: null,
        dashboard: null,
      }),
      counters: () => ({
        since: shown.cleared.toISOString(),
        at_ns: lab[kind === "switch" ? "switches" : "nics"].counters.asOf / lab.scale,
        counters: shown.since(counts()),
      }),
      clear: () => {
        shown.clear(counts());
        return { cleared: shown.cleared.toISOString() };
      },
    };
  }

  #counts(): Map<string, Count[]> {
    if (this.counts !== undefined) return this.counts;
    const { switches, nics, scale } = this.lab;
    const counts = new Map<string, Count[]>();
    for (const { counters } of [switches, nics]) {
      for (const { description, value } of counters.entries()) {
        const name = description.labels.switch ?? description.labels.device ?? "";
        const meant = kTimes.has(description.unit) ? value / scale : value;
        const own = counts.get(name);
        if (own === undefined) counts.set(name, [{ description, value: meant }]);
        else own.push({ description, value: meant });
      }
    }
    this.counts = counts;
    return counts;
  }
}

/** What is the same at all ports of labs. */
function portStatus(link: Scenario["links"][number], pfc: TrafficClasses["pfc"]) {
  return {
    namespace: null,
    tx_stalled: false,
    rx_stuck: false,
    mtu: link.mtu,
    rate: link.rate,
    recoveries: 0,
    interface_mtu: link.mtu,
    mtu_changes: 0,
    receive: "af_packet",
    transmit: "af_packet",
    xdp_mode: null,
    backend_reason: "labs use packet sockets",
    pfc: pfcState(pfc.enabled && pfc.priorities.length > 0, kVeth),
    mac_control: kVeth,
    probe: null,
  } satisfies Partial<PortStatus>;
}
