/**
 * Priorities, PFC, marking and scheduling: DSCP_TO_TC_MAP, TC_TO_QUEUE_MAP, TC_TO_PRIORITY_GROUP_MAP, MAP_PFC_PRIORITY_TO_QUEUE,
 * PORT_QOS_MAP, QUEUE, WRED_PROFILE, SCHEDULER, PFC_WD.
 *
 * SONiC has four numbers where Weir has one: traffic class, queue, priority group, and priority of PFC. Here the priority is the queue:
 * DSCP -> TC -> queue. Notes tell where the others have another number than the queue of a lossless class.
 */
import { kMostMemory } from "../../scenario/features/buffer.js";
import type { Entry } from "./config_db.js";
import { kRanges } from "./ranges.js";
import type { Reader } from "./reader.js";

export const kQueues = [0, 1, 2, 3, 4, 5, 6, 7] as const;
/** Maps of a switch without TC_TO_QUEUE_MAP or TC_TO_PRIORITY_GROUP_MAP: each class is in the queue and group of its number. */
const kClasses = Array.from({ length: kRanges.trafficClass[1] + 1 }, (_, tc) => tc);

export interface Marking {
  kmin: number;
  kmax: number;
  /** Largest probability, 0..1. */
  pmax: number;
}

export interface Watchdog {
  /** Detection and restoration, ms; undefined: not set. */
  detection: number | undefined;
  restoration: number | undefined;
  action: "drop" | "forward" | "alert" | undefined;
}

/** Service of a queue by a scheduler of SONiC. */
export interface Service {
  strict: boolean;
  weight: number;
  /** Most that the queue may send, bit/s; undefined: no limit. */
  rate: number | undefined;
}

/** Settings of one port. */
export interface PortQos {
  /** Priorities by DSCP; undefined: DSCPs are not looked at. */
  dscp: number[] | undefined;
  /** Whether IEEE 802.1p is looked at. */
  dot1p: boolean;
  /** Priorities that PFC keeps without loss. */
  lossless: number[];
  /** Marking by queue; undefined: no queue has a setting. */
  marking: (Marking | undefined)[] | undefined;
  services: (Service | undefined)[] | undefined;
  watchdog: Watchdog | undefined;
  /** Most that the port may send, bit/s. */
  rate: number | undefined;
}

export function readQos(reader: Reader): Map<string, PortQos> {
  const ports = reader.db.entries("PORT").map(({ key }) => key);
  const queues = queuesOf(reader, ports);
  const maps = new Map(reader.db.entries("PORT_QOS_MAP").flatMap((entry) => mapsOf(reader, entry)));
  const all = maps.get("global");
  for (const [key] of maps) {
    if (key !== "global") reader.knownPorts(reader.db.entry("PORT_QOS_MAP", key) as Entry, key);
  }
  return new Map(
    ports.map((port) => {
      const of = queues.get(port) ?? { marking: undefined, services: undefined };
      const own = maps.get(port);
      return [
        port,
        {
          dscp: own?.dscp ?? all?.dscp,
          dot1p: own?.dot1p ?? false,
          lossless: own?.lossless ?? [],
          rate: own?.rate,
          watchdog: watchdogOf(reader, port, own?.watched),
          ...of,
        },
      ];
    }),
  );
}

type Maps = Pick<PortQos, "dscp" | "dot1p" | "lossless" | "rate"> & { watched: number[] | undefined };

/** Maps of each port that a key of PORT_QOS_MAP names. */
function mapsOf(reader: Reader, entry: Entry): [string, Maps][] {
  const toTc = reader.reference(entry, "dscp_to_tc_map", "DSCP_TO_TC_MAP");
  const toQueue = reader.reference(entry, "tc_to_queue_map", "TC_TO_QUEUE_MAP");
  const toGroup = reader.reference(entry, "tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP");
  const fromPfc = reader.reference(entry, "pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE");
  const written = mapOf(reader, toQueue, kRanges.trafficClass, kRanges.queueOfClass) ?? kClasses;
  const classes = mapOf(reader, toTc, kRanges.dscp, kRanges.trafficClass);
  const used = classes === undefined ? kQueues : [...new Set(classes)];
  const queues = queuesHere(reader, toQueue ?? entry, written, used);
  const lossless = reader.list(entry, "pfc_enable", ...kRanges.pfcPriority) ?? [];
  checkNumbers(reader, entry, lossless, {
    used,
    queues,
    groups: mapOf(reader, toGroup, kRanges.trafficClass, kRanges.priorityGroup) ?? kClasses,
    paused: mapOf(reader, fromPfc, kRanges.pfcPriority, kRanges.pfcPriority) ?? kQueues,
  });
  const scheduler = reader.reference(entry, "scheduler", "SCHEDULER");
  const dot1p = reader.reference(entry, "dot1p_to_tc_map", "DOT1P_TO_TC_MAP");
  checkDot1p(reader, dot1p, queues);
  const maps = {
    dscp: classes?.map((tc) => queues[tc] ?? 0),
    dot1p: dot1p !== undefined,
    lossless,
    rate: scheduler && serviceOf(reader, scheduler).rate,
    watched: reader.list(entry, "pfcwd_sw_enable", ...kRanges.pfcPriority),
  };
  return entry.key.split(",").map((port) => [port.trim(), maps]);
}

/** A map as a list; keys that are not written lead to 0. */
function mapOf(
  reader: Reader,
  entry: Entry | undefined,
  [, lastKey]: readonly [number, number],
  values: readonly [number, number],
): number[] | undefined {
  if (entry === undefined) return undefined;
  const map = Array<number>(lastKey + 1).fill(0);
  for (const field of entry.unread().concat(entry.read())) {
    const value = reader.integer(entry, field, ...values);
    const key = /^\d{1,3}$/.test(field) ? Number(field) : Number.NaN;
    if (key <= lastKey) map[key] = value ?? 0;
    else reader.note("wrong", entry.place(field), `is not a number from 0 to ${lastKey}`);
  }
  return map;
}

/** Finds the queue of each traffic class. SONiC's switches may have more than eight. */
function queuesHere(reader: Reader, entry: Entry, queues: readonly number[], used: readonly number[]): number[] {
  for (const tc of used) {
    const queue = queues[tc] ?? 0;
    if (queue < kQueues.length) continue;
    const message = `traffic class ${tc} is in queue ${queue} in SONiC; there are 0 to 7 here, and it is in 0`;
    reader.note("differs", entry.place(String(tc)), message);
  }
  return queues.map((queue) => (queue < kQueues.length ? queue : 0));
}

/** Checks that queue, priority group and priority of PFC are one number for each lossless class. */
function checkNumbers(
  reader: Reader,
  entry: Entry,
  lossless: readonly number[],
  { used, queues, groups, paused }: Readonly<Record<"used" | "queues" | "groups" | "paused", readonly number[]>>,
): void {
  for (const priority of lossless) {
    if (paused[priority] !== priority) {
      const message = `PFC of priority ${priority} stops queue ${paused[priority]} in SONiC, and queue ${priority} here`;
      reader.note("differs", entry.place("pfc_to_queue_map"), message);
    }
    const classes = used.filter((tc) => queues[tc] === priority);
    if (classes.length === 0) {
      reader.note("differs", entry.place("pfc_enable"), `nothing leads to queue ${priority}: PFC protects no class`);
    }
    for (const tc of classes) {
      if (groups[tc] === priority) continue;
      const message = `traffic class ${tc} is in priority group ${groups[tc]} in SONiC, and in ${priority}, its queue, here`;
      reader.note("differs", entry.place("tc_to_pg_map"), message);
    }
  }
}

function checkDot1p(reader: Reader, entry: Entry | undefined, queues: readonly number[]): void {
  const classes = mapOf(reader, entry, kRanges.dot1p, kRanges.trafficClass);
  if (entry === undefined || classes?.every((tc, pcp) => queues[tc] === pcp)) return;
  reader.note("differs", entry.place(), "a tag's priority is the priority here, whatever the map has");
}

function queuesOf(reader: Reader, ports: readonly string[]) {
  const found = new Map<string, Pick<PortQos, "marking" | "services">>(
    ports.map((port) => [port, { marking: undefined, services: undefined }]),
  );
  for (const { entry, ports: named, numbers } of reader.ofPorts("QUEUE")) {
    const wred = reader.reference(entry, "wred_profile", "WRED_PROFILE");
    const scheduler = reader.reference(entry, "scheduler", "SCHEDULER");
    const marking = wred && markingOf(reader, wred);
    const service = scheduler && serviceOf(reader, scheduler);
    for (const port of named) {
      const of = found.get(port);
      if (of === undefined) continue;
      for (const queue of numbers) {
        if (marking !== undefined) of.marking = withAt(of.marking, queue, marking);
        if (service !== undefined) of.services = withAt(of.services, queue, service);
      }
    }
  }
  return found;
}

function withAt<T>(list: (T | undefined)[] | undefined, queue: number, value: T): (T | undefined)[] {
  const made = list ?? kQueues.map(() => undefined);
  made[queue] = value;
  return made;
}

const kEcn = [
  ...["ecn_none", "ecn_green", "ecn_yellow", "ecn_red"],
  ...["ecn_green_yellow", "ecn_green_red", "ecn_yellow_red", "ecn_all"],
];

/** Reads the marking of green packets: without policers every packet is green. */
function markingOf(reader: Reader, entry: Entry): Marking | undefined {
  const ecn = reader.choice(entry, "ecn", kEcn) ?? "ecn_none";
  const enabled = reader.choice(entry, "wred_green_enable", ["true", "false"]) ?? "false";
  const kmin = reader.integer(entry, "green_min_threshold", ...kRanges.bytes);
  const kmax = reader.integer(entry, "green_max_threshold", ...kRanges.bytes);
  const percent = reader.integer(entry, "green_drop_probability", ...kRanges.percent) ?? 100;
  if (!ecn.includes("green") && ecn !== "ecn_all") {
    const message = "does not mark green packets: RED drops here nothing, and marks what it may";
    reader.note("ignored", entry.place("ecn"), message);
    return undefined;
  }
  if (enabled === "false") {
    reader.note("ignored", entry.place("wred_green_enable"), "is not true, so green packets are not marked");
    return undefined;
  }
  for (const field of ["green_min_threshold", "green_max_threshold"]) {
    if (entry.get(field) === undefined) reader.note("wrong", entry.place(field), "is missing");
  }
  if (kmin === undefined || kmax === undefined) return undefined;
  if (kmin > kmax) {
    const message = `${kmin} is more than green_max_threshold ${kmax}`;
    reader.note("wrong", entry.place("green_min_threshold"), message);
    return undefined;
  }
  reader.note("differs", entry.place(), "packets that cannot be marked (not ECN-capable) are not dropped by RED here");
  const most = (bytes: number) => Math.min(bytes, kMostMemory);
  return { kmin: most(kmin), kmax: most(kmax), pmax: percent / 100 };
}

function serviceOf(reader: Reader, entry: Entry): Service {
  const type = reader.choice(entry, "type", ["DWRR", "WRR", "STRICT"]) ?? "WRR";
  const weight = reader.integer(entry, "weight", ...kRanges.weight) ?? 1;
  const meter = reader.choice(entry, "meter_type", ["bytes", "packets"]) ?? "bytes";
  const peak = reader.integer(entry, "pir", ...kRanges.peak);
  if (type === "WRR") reader.note("differs", entry.place("type"), "WRR counts packets in SONiC, and bytes (DWRR) here");
  if (peak && meter === "packets") {
    reader.note("ignored", entry.place("pir"), "packets each second: queues have limits in bits each second here");
    return { strict: type === "STRICT", weight, rate: undefined };
  }
  return { strict: type === "STRICT", weight, rate: peak ? peak * 8 : undefined };
}

/** @param watched Priorities of pfcwd_sw_enable; undefined: not set, which means all of PFC. */
function watchdogOf(reader: Reader, port: string, watched: readonly number[] | undefined): Watchdog | undefined {
  const entry = reader.db.entry("PFC_WD", port);
  if (entry === undefined) return undefined;
  const found = {
    detection: reader.integer(entry, "detection_time", ...kRanges.detection),
    restoration: reader.integer(entry, "restoration_time", ...kRanges.restoration),
    action: reader.choice(entry, "action", ["drop", "forward", "alert"]),
  };
  return watched?.length === 0 ? undefined : found;
}
