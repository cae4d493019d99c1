/** Converts a config_db.json of SONiC to the configuration of a switch (switch.yaml), with notes on what was taken, and how. */
import { basename, extname } from "node:path";
import { stringify } from "yaml";
import { ScenarioError } from "../../base/error.js";
import { formatRate } from "../../base/units.js";
import { kMostPorts } from "../../scenario/topology_schema.js";
import { type Buffers, readBuffers } from "./buffers.js";
import { parseConfigDb } from "./config_db.js";
import { whyIgnored } from "./ignored.js";
import { type Network, readNetwork, readPorts, type SonicPort } from "./network.js";
import { type Note, Notes, placeOf } from "./notes.js";
import { kQueues, type Marking, type PortQos, readQos } from "./qos.js";
import { Reader } from "./reader.js";

export interface ConvertOptions {
  /** Interfaces by SONiC's names of ports. Undefined: all ports, each with the interface of its name. */
  map?: ReadonlyMap<string, string> | undefined;
  /** Scale as in scenarios: rates are divided by it, times multiplied, bytes stay. */
  scale?: number | undefined;
  /** Speeds of ports whose `speed` the file lacks: bit/s of all of them, or by their names. */
  speeds?: number | ReadonlyMap<string, number> | undefined;
  /** Bytes of packet memory, whatever the file says. */
  total?: number | undefined;
}

export interface TableUse {
  table: string;
  keys: number;
  /** Fields that were looked at. */
  used: string[];
  /** Whether its key alone was used. */
  taken: boolean;
}

export interface Converted {
  source: string;
  /** Configuration as in a switch.yaml. */
  config: Record<string, unknown>;
  notes: Note[];
  tables: TableUse[];
  /** Ports as they were before they were scaled, for planning; in the order of the configuration. */
  ports: { name: string; rate: number | undefined; mtu: number | undefined; delay: number | undefined }[];
  /** Headroom that all priority groups share in SONiC, bytes; 0: each has its own. */
  shared_headroom: number;
  /** Headroom of all ports that are taken, together. */
  headroom: number;
}

const kNoPort = "no port is up: `admin_status` of a port that is has `up`, or --map names those that are to be taken";
/** Message for a port without speed, with the way to set one. */
export const kNoSpeed =
  "is not there; --speed 100Gbps says it of all such ports, --speed port_config.ini as the platform has it";

/** @throws WeirError if the text is no config_db at all. */
export function convertConfigDb(text: string, source: string, options: ConvertOptions = {}): Converted {
  const { map, scale = 1, speeds, total } = options;
  const notes = new Notes();
  const db = parseConfigDb(text, source, notes);
  const all = db.entries("PORT").map(({ key }) => key);
  for (const name of map?.keys() ?? []) {
    if (!all.includes(name))
      notes.add("wrong", { table: "PORT", key: name }, "is mapped to an interface, but is not there");
  }
  const first = new Reader(db, notes, new Set(map === undefined ? all : map.keys()));
  if (all.length === 0) notes.add("wrong", { table: "PORT" }, "has no port");
  const known = readPorts(first).map((port) => ({
    ...port,
    rate: port.rate ?? (typeof speeds === "object" ? speeds.get(port.name) : speeds),
  }));
  // Down is SONiC's default, but files that people make often leave the status out.
  const quiet = map !== undefined || known.every(({ status }) => status === undefined);
  const ports = known.filter((port) => isTaken(first, port, quiet));
  if (ports.length === 0 && known.some(({ name }) => first.wanted.has(name)))
    notes.add("wrong", { table: "PORT" }, kNoPort);
  if (ports.length > kMostPorts) {
    const message = `${ports.length} ports are up, and a switch has ${kMostPorts} at most here: --map names those that are to be taken`;
    notes.add("wrong", { table: "PORT" }, message);
  }
  const reader = new Reader(db, notes, new Set(ports.map(({ name }) => name)));
  for (const { name } of ports.filter(({ rate }) => rate === undefined)) {
    reader.note("differs", { table: "PORT", key: name, field: "speed" }, `${kNoSpeed}: queues hardly form there`);
  }
  const asked = readQos(reader);
  const buffers = readBuffers(
    reader,
    new Map([...asked].map(([name, { lossless }]) => [name, lossless])),
    new Map(ports.map(({ name, rate }) => [name, rate ?? 0])),
    total,
  );
  const qos = new Map(
    [...asked].map(([name, port]) => {
      const lossless = port.lossless.filter((priority) => !buffers.lossy.has(`${name}|${priority}`));
      return [name, { ...port, lossless }];
    }),
  );
  const network = readNetwork(reader);
  const made = new Maker(reader, ports, qos, buffers, network, scale);
  const metadata = db.entry("DEVICE_METADATA", "localhost");
  const config = {
    name: deviceName(metadata?.get("hostname"), source),
    ports: ports.map((port) => made.port(port, map?.get(port.name) ?? port.name)),
    ...made.classes(),
    ...made.marking(),
    ...made.buffer(),
    ...made.profiles(),
    ...(network.router !== undefined && { router: network.router }),
  };
  tellUnread(reader);
  return {
    source,
    config,
    notes: notes.all(),
    tables: db.names().map((table) => ({
      table,
      keys: db.entries(table).length,
      used: [...new Set(db.entries(table).flatMap((entry) => entry.read()))],
      taken: db.entries(table).some((entry) => entry.isTaken),
    })),
    ports: ports.map(({ name, rate }) => {
      const mtu = db.entry("PORT", name)?.get("mtu");
      return { name, rate, mtu: mtu === undefined ? undefined : Number(mtu), delay: buffers.delays.get(name) };
    }),
    shared_headroom: buffers.shared_headroom,
    headroom: ports
      .flatMap(({ name }) => buffers.groups.get(name) ?? [])
      .reduce((sum, group) => sum + (group?.headroom ?? 0), 0),
  };
}

/** The host's name as far as it is one of ours, or else the file's. */
function deviceName(hostname: string | undefined, source: string): string {
  const [name] = [hostname ?? "", basename(source, extname(source))]
    .map((text) =>
      text
        .replace(/[^A-Za-z0-9_-]/g, "-")
        .replace(/^[^A-Za-z]+/, "")
        .slice(0, 32),
    )
    .filter((text) => text !== "");
  return name ?? "sonic";
}

/** @throws ScenarioError with all errors in entries that the switch needs. */
export function checkConverted({ source, notes }: Converted): void {
  const wrong = notes.filter(({ needed }) => needed);
  if (wrong.length === 0) return;
  const problems = wrong.map((note) => ({ path: [placeOf(note)], message: note.message }));
  throw new ScenarioError(source, problems, "config_db");
}

/** The configuration as a file. */
export function switchYaml({ source, config }: Converted): string {
  return `# Made of ${basename(source)} by weir switch --sonic.\n${stringify(config, { lineWidth: 130, collectionStyle: "any" })}`;
}

/** One sentence for each thing that differs from SONiC. */
export function warningsOf({ notes }: Converted): string[] {
  const told = notes.filter(({ kind, needed }) => kind !== "ignored" && !needed);
  return told.map((note) => `${placeOf(note)}: ${note.message}`);
}

/** @param quiet Ports without a status are up. */
function isTaken(reader: Reader, { name, status }: SonicPort, quiet: boolean): boolean {
  const place = { table: "PORT", key: name };
  const up = status === "up" || (status === undefined && quiet);
  if (!reader.wanted.has(name)) reader.note("ignored", place, "is mapped to no interface");
  else if (!up) reader.note("ignored", { ...place, field: "admin_status" }, "is not up");
  return reader.wanted.has(name) && up;
}

/** Notes tables and fields that nothing has looked at. */
function tellUnread({ db, notes }: Reader): void {
  for (const table of db.names()) {
    const entries = db.entries(table);
    if (entries.every((entry) => entry.read().length === 0 && !entry.isTaken)) {
      notes.add("ignored", { table }, whyIgnored(table));
      continue;
    }
    for (const entry of entries) {
      const unused = entry.read().length === 0 && !entry.isTaken && entry.unread().length > 0;
      if (unused) notes.add("ignored", entry.place(), whyIgnored(table, ""));
      else for (const field of entry.unread()) notes.add("ignored", entry.place(field), whyIgnored(table, field));
    }
  }
}

interface Own {
  name: string;
  ecn: Marking | undefined;
  buffer: { headroom?: number; beta?: number; threshold?: number; xon_offset?: number; lossy_alpha?: number };
}

const alike = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

/**
 * Makes the sections of a switch.yaml. Settings that are one for all ports there are those of most; other ports are noted, or have a
 * profile.
 */
class Maker {
  private readonly lossless: number[];

  constructor(
    private readonly reader: Reader,
    private readonly ports: readonly SonicPort[],
    private readonly qos: ReadonlyMap<string, PortQos>,
    private readonly buffers: Buffers,
    private readonly network: Network,
    private readonly scale: number,
  ) {
    this.lossless = kQueues.filter((queue) => ports.some(({ name }) => qos.get(name)?.lossless.includes(queue)));
    for (const { name } of ports) {
      const missing = this.lossless.filter((priority) => !qos.get(name)?.lossless.includes(priority));
      if (missing.length === 0) continue;
      const message = `PFC of priority ${missing.join(", ")} is on here, too, as at other ports`;
      this.reader.note("differs", { table: "PORT_QOS_MAP", key: name, field: "pfc_enable" }, message);
    }
  }

  port({ name, rate }: SonicPort, netdev: string): object {
    const { services, rate: peak } = this.qos.get(name) ?? {};
    const most = Math.min(rate ?? Number.POSITIVE_INFINITY, peak ?? Number.POSITIVE_INFINITY);
    const queues = this.buffers.queues.get(name) ?? [];
    const vlans = this.network.vlans.get(name);
    const limits = kQueues.flatMap((queue) => {
      const limit = services?.[queue]?.rate;
      const bytes = queues[queue]?.threshold;
      if (limit === undefined && bytes === undefined) return [];
      const own = {
        ...(limit !== undefined && { rate: this.rate(limit) }),
        ...(bytes !== undefined && !this.lossless.includes(queue) && { buffer: bytes }),
      };
      return Object.keys(own).length === 0 ? [] : [[String(queue), own] as const];
    });
    return {
      interface: netdev,
      name,
      ...(Number.isFinite(most) && { rate: this.rate(most) }),
      ...(limits.length > 0 && { limits: Object.fromEntries(limits) }),
      ...(vlans !== undefined && { vlans }),
    };
  }

  /** Trust, priorities, PFC, watchdog, scheduler. */
  classes(): object {
    const dscp = this.agreed(({ dscp }) => dscp, { table: "PORT_QOS_MAP", field: "dscp_to_tc_map" });
    const dot1p = this.ports.some(({ name }) => this.qos.get(name)?.dot1p);
    const watchdogs = this.agreed(({ watchdog }) => watchdog, { table: "PFC_WD" });
    const services = this.agreed(({ services }) => services, { table: "QUEUE", field: "scheduler" }) ?? [];
    const time = (ms: number) => `${ms * this.scale}ms`;
    return {
      trust: dscp === undefined ? (dot1p ? "pcp" : "port-default") : "dscp",
      ...(dscp && {
        dscp_map: Object.fromEntries(dscp.flatMap((priority, i) => (priority > 0 ? [[String(i), priority]] : []))),
      }),
      pfc: { enabled: this.lossless.length > 0, priorities: this.lossless },
      ...(watchdogs && {
        pfc_watchdog: {
          enabled: true,
          ...(watchdogs.detection !== undefined && { detection_time: time(watchdogs.detection) }),
          ...(watchdogs.restoration !== undefined && { restoration_time: time(watchdogs.restoration) }),
          ...(watchdogs.action !== undefined && { action: watchdogs.action }),
        },
      }),
      scheduler: {
        strict: kQueues.filter((queue) => services[queue]?.strict),
        weights: Object.fromEntries(
          kQueues.flatMap((queue) => {
            const service = services[queue];
            return service === undefined || service.strict ? [] : [[String(queue), service.weight]];
          }),
        ),
      },
    };
  }

  /** Queues that are marked; profiles hold the thresholds. */
  marking(): object {
    const byQueue = this.agreed(({ marking }) => marking?.map((one) => one !== undefined), {
      table: "QUEUE",
      field: "wred_profile",
    });
    const priorities = kQueues.filter((queue) => byQueue?.[queue]);
    const usual = mostOf(this.own().map(({ ecn }) => ecn));
    return { ecn: usual === undefined ? { enabled: false } : { ...usual, priorities } };
  }

  buffer(): object {
    const count = Math.max(1, this.lossless.length);
    const own = this.own();
    const { lossy_alpha, ...usual } = mostOf(own.map(({ buffer }) => buffer)) ?? {};
    const reserved = own.reduce((sum, { buffer }) => sum + (buffer.headroom ?? 0) * count, 0);
    const { shared } = this.buffers;
    return {
      buffer: {
        ...(shared !== undefined && { total: shared + reserved }),
        priorities: count,
        ...usual,
        ...(own.some(({ buffer }) => buffer.threshold !== undefined) && { mode: "static" }),
        ...(lossy_alpha !== undefined && { lossy_alpha }),
      },
    };
  }

  /** Profiles of ports that have other thresholds than most; ports that are alike share one. */
  profiles(): object {
    const own = this.own();
    const usual = { ecn: mostOf(own.map(({ ecn }) => ecn)), buffer: mostOf(own.map(({ buffer }) => buffer)) };
    const found = new Map<string, { ports: string[]; ecn?: object; buffer?: object }>();
    for (const { name, ecn, buffer } of own) {
      const marked = ecn !== undefined && !alike(ecn, usual.ecn) && { ecn };
      const held = Object.keys(buffer).length > 0 && !alike(buffer, usual.buffer) && { buffer };
      if (!marked && !held) continue;
      const key = JSON.stringify([marked, held]);
      const profile = found.get(key) ?? { ports: [], ...marked, ...held };
      profile.ports.push(name);
      found.set(key, profile);
    }
    if (found.size === 0) return {};
    return {
      port_profiles: Object.fromEntries([...found.values()].map((profile, i) => [`profile-${i + 1}`, profile])),
    };
  }

  /** Settings of each port: those of the first of its lossless queues and priority groups; others are noted. */
  private own(): Own[] {
    return this.ports.map(({ name }) => {
      const { marking = [] } = this.qos.get(name) ?? {};
      const order = [...this.lossless, ...kQueues.filter((queue) => !this.lossless.includes(queue))];
      const [ecn, ...others] = order.flatMap((queue) => marking?.[queue] ?? []);
      if (others.some((other) => !alike(other, ecn))) {
        const place = { table: "QUEUE", key: name, field: "wred_profile" };
        this.reader.note("differs", place, "queues of a port are marked alike, as the first lossless one");
      }
      return { name, ecn, buffer: { ...this.group(name), ...this.lossy(name) } };
    });
  }

  private group(port: string): Own["buffer"] {
    if (this.lossless.length === 0) return {};
    const groups = this.lossless.flatMap((priority) => this.buffers.groups.get(port)?.[priority] ?? []);
    const [first = this.buffers.byCable(port)] = groups;
    if (groups.some((other) => !alike(other, first))) {
      const place = { table: "BUFFER_PG", key: port, field: "profile" };
      this.reader.note("differs", place, "lossless priority groups of a port have the same, as the first");
    }
    const { headroom, alpha, threshold, xon_offset } = first;
    return {
      headroom,
      ...(alpha !== undefined && { beta: alpha * Math.max(1, this.lossless.length) }),
      ...(threshold !== undefined && { threshold }),
      ...(xon_offset !== undefined && { xon_offset }),
    };
  }

  private lossy(port: string): Own["buffer"] {
    const shares = (this.buffers.queues.get(port) ?? []).flatMap((share) => share?.alpha ?? []);
    const alpha = mostOf(shares);
    if (new Set(shares).size > 1) {
      const message = `all lossy queues of a port may have ${alpha} times the free bytes, as most of them`;
      this.reader.note("differs", { table: "BUFFER_QUEUE", key: port }, message);
    }
    return alpha === undefined ? {} : { lossy_alpha: alpha };
  }

  /** Value of most ports; the others are noted. */
  private agreed<T>(of: (port: PortQos) => T, place: { table: string; field?: string }): T | undefined {
    const values = this.ports.flatMap(({ name }) => {
      const port = this.qos.get(name);
      return port === undefined ? [] : [{ name, value: of(port) }];
    });
    const common = mostOf(values.flatMap(({ value }) => (value === undefined ? [] : [value])));
    for (const { name, value } of values) {
      if (JSON.stringify(value) === JSON.stringify(common)) continue;
      this.reader.note("differs", { ...place, key: name }, "is taken to be as at most ports that have it");
    }
    return common;
  }

  private rate(bits: number): string {
    return formatRate(Math.max(1000, Math.round(bits / this.scale)));
  }
}

/** The most frequent value, undefined ones apart; the first of several. */
function mostOf<T>(all: readonly T[]): T | undefined {
  const values = all.filter((value) => value !== undefined);
  const counts = new Map<string, { value: T; count: number }>();
  for (const value of values) {
    const key = JSON.stringify(value) ?? "";
    const known = counts.get(key) ?? { value, count: 0 };
    known.count++;
    counts.set(key, known);
  }
  return [...counts.values()].reduce<{ value: T; count: number } | undefined>(
    (best, one) => (best === undefined || one.count > best.count ? one : best),
    undefined,
  )?.value;
}
