/**
 * BUFFER_POOL, BUFFER_PROFILE, BUFFER_PG, BUFFER_QUEUE, CABLE_LENGTH.
 *
 * SAI's meaning (saibuffer.h): a priority group may have 2^dynamic_th times the free bytes of its pool beside what is reserved for it,
 * and `xoff` bytes after it has paused; `size` of a profile is reserved, of a pool it is the memory, reservations included. With
 * `xoff` a pool has one headroom that priority groups share, and they reserve only their `size`.
 */
import { showValue } from "../../base/fields.js";
import { kMostMemory } from "../../scenario/features/buffer.js";
import { headroomFor, kNanosecondsPerMetre } from "../../scenario/headroom.js";
import type { Entry } from "./config_db.js";
import { kRanges } from "./ranges.js";
import type { Reader } from "./reader.js";

/** Share of the buffer for a lossless priority group of a port. */
export interface GroupBuffer {
  /** Bytes after a pause. */
  headroom: number;
  /** Factor of the free bytes; undefined: `threshold` holds. */
  alpha: number | undefined;
  /** Threshold, bytes; undefined: `alpha` holds. */
  threshold: number | undefined;
  /** Bytes below the threshold at which it goes on; undefined: not set. */
  xon_offset: number | undefined;
}

export interface Buffers {
  /** Groups by port and lossless priority. */
  groups: ReadonlyMap<string, readonly (GroupBuffer | undefined)[]>;
  /** Finds a group by the cable, as SONiC's buffer manager does, for ports whose file sets none. */
  byCable: (port: string) => GroupBuffer;
  /** Groups, as `port|priority`, that are under PFC and lossy all the same. */
  lossy: ReadonlySet<string>;
  /** Lossy queues, by port and queue: their share of the free bytes, or bytes. */
  queues: ReadonlyMap<string, readonly (Pick<GroupBuffer, "alpha" | "threshold"> | undefined)[]>;
  /** Bytes that all share, with nothing reserved any more; undefined: the file does not say. */
  shared: number | undefined;
  /** Bytes of headroom that all priority groups share in SONiC; 0: each has its own. */
  shared_headroom: number;
  /** One-way propagation of cables, ns, for ports whose cable length is set. */
  delays: ReadonlyMap<string, number>;
}

/** MTU that SONiC gives a port whose file has none. */
const kDefaultMtu = 9100;

/** @param lossless Priorities under PFC, by port. @param rates bit/s. @param total Size of the pool, where it is given, bytes. */
export function readBuffers(
  reader: Reader,
  lossless: ReadonlyMap<string, readonly number[]>,
  rates: ReadonlyMap<string, number>,
  total?: number,
): Buffers {
  const delays = delaysOf(reader);
  const pools = new Set<Entry>();
  const groups = new Map<string, (GroupBuffer | undefined)[]>();
  const lossy = new Set<string>();
  let reserved = 0;
  const asked: { port: string; priority: number; own: number; headroom: number }[] = [];
  for (const { entry, ports, numbers } of reader.ofPorts("BUFFER_PG")) {
    const profile = reader.reference(entry, "profile", "BUFFER_PROFILE");
    const size = (profile && reader.integer(profile, "size", ...kRanges.bytes)) ?? 0;
    for (const port of ports) {
      for (const priority of numbers) {
        const paused = lossless.get(port)?.includes(priority);
        if (paused && profile !== undefined && profile.get("xoff") === undefined) {
          const message = `${profile.key} has no xoff: this priority group is lossy although PFC is on`;
          reader.note("differs", entry.place("profile"), message);
          lossy.add(`${port}|${priority}`);
        }
        const kept = paused && !lossy.has(`${port}|${priority}`);
        const made = kept ? groupOf(reader, entry, profile, { port, rates, delays }) : undefined;
        asked.push({ port, priority, own: size, headroom: made?.headroom ?? 0 });
        if (made === undefined) continue;
        const of = groups.get(port) ?? [];
        of[priority] = made;
        groups.set(port, of);
        const pool = profile && reader.reference(profile, "pool", "BUFFER_POOL");
        if (pool !== undefined) pools.add(pool);
      }
    }
  }
  for (const [port, priorities] of lossless) {
    for (const priority of priorities) {
      const of = groups.get(port) ?? [];
      if (of[priority] !== undefined || lossy.has(`${port}|${priority}`)) continue;
      const place = { table: "BUFFER_PG", key: `${port}|${priority}` };
      if (reader.db.names().includes("BUFFER_PG") || reader.db.names().includes("CABLE_LENGTH")) {
        const message = "is not there: as buffermgrd does, headroom is computed from speed, MTU and cable";
        reader.note("differs", { ...place, key: port }, message);
      }
      of[priority] = byCable(reader, port, rates, delays);
      groups.set(port, of);
    }
  }
  const [pool] = pools.size > 0 ? pools : reader.db.entries("BUFFER_POOL").filter(isLossless);
  const sharedHeadroom = (pool && reader.integer(pool, "xoff", ...kRanges.bytes)) ?? 0;
  for (const { own, headroom } of asked) reserved += sharedHeadroom > 0 ? own : Math.max(own, headroom);
  return {
    groups,
    lossy,
    byCable: (port) => byCable(reader, port, rates, delays),
    queues: queuesOf(reader, lossless),
    shared: sharedOf(reader, pool, reserved, total),
    shared_headroom: sharedHeadroom,
    delays,
  };
}

const isLossless = ({ key }: Entry) => key === "ingress_lossless_pool";

interface About {
  port: string;
  rates: ReadonlyMap<string, number>;
  delays: ReadonlyMap<string, number>;
}

function groupOf(
  reader: Reader,
  entry: Entry,
  profile: Entry | undefined,
  { port, rates, delays }: About,
): GroupBuffer | undefined {
  if (profile === undefined) {
    if (entry.get("profile") !== undefined && entry.get("profile") !== "NULL") return undefined;
    reader.note(
      "differs",
      entry.place("profile"),
      "as the dynamic buffer model does, headroom is computed from the cable",
    );
    return byCable(reader, port, rates, delays);
  }
  const xoff = reader.integer(profile, "xoff", ...kRanges.bytes);
  const share = shareOf(reader, profile);
  if (profile.get("dynamic_th") === undefined && profile.get("static_th") === undefined) {
    reader.note("wrong", profile.place(), "has neither dynamic_th nor static_th");
  }
  const xon = reader.integer(profile, "xon_offset", ...kRanges.bytes);
  return { headroom: atMost(xoff ?? 0), ...share, xon_offset: xon && atMost(xon) };
}

const atMost = (bytes: number) => Math.min(bytes, kMostMemory);

/** The share by `dynamic_th` or `static_th`, whichever the profile has. */
function shareOf(reader: Reader, profile: Entry): Pick<GroupBuffer, "alpha" | "threshold"> {
  const pool = reader.reference(profile, "pool", "BUFFER_POOL");
  // The profile's own field holds (SAI_BUFFER_PROFILE_ATTR_THRESHOLD_MODE), whatever the mode of its pool.
  if (pool) reader.choice(pool, "mode", ["dynamic", "static"]);
  const exponent = reader.integer(profile, "dynamic_th", ...kRanges.dynamicThreshold);
  const bytes = reader.integer(profile, "static_th", ...kRanges.bytes);
  if (exponent !== undefined) return { alpha: 2 ** exponent, threshold: undefined };
  return { alpha: undefined, threshold: bytes && atMost(bytes) };
}

/** The group by speed, MTU and cable, as SONiC's buffer manager finds it where no profile is given. */
function byCable(reader: Reader, port: string, rates: About["rates"], delays: About["delays"]): GroupBuffer {
  const of = reader.db.entry("PORT", port);
  const mtu = (of && reader.integer(of, "mtu", ...kRanges.mtu)) ?? kDefaultMtu;
  const lossless = reader.db.entry("DEFAULT_LOSSLESS_BUFFER_PARAMETER", "AZURE");
  const exponent = lossless && reader.integer(lossless, "default_dynamic_th", ...kRanges.dynamicThreshold);
  const rate = rates.get(port) ?? 0;
  const { bytes } = headroomFor({ rate, mtu, delay: delays.get(port) ?? 0, interfaceDelay: 0, trigger: true });
  return { headroom: bytes, alpha: 2 ** (exponent ?? 0), threshold: undefined, xon_offset: undefined };
}

function delaysOf(reader: Reader): Map<string, number> {
  const delays = new Map<string, number>();
  for (const entry of reader.db.entries("CABLE_LENGTH")) {
    for (const port of [...entry.unread(), ...entry.read()]) {
      const text = entry.get(port) ?? "";
      const [, metres] = /^(\d{1,7})m$/.exec(text.trim()) ?? [];
      if (reader.db.entry("PORT", port) === undefined) {
        reader.notes.add("wrong", entry.place(port), `there is no PORT|${port}`, false);
      } else if (metres === undefined) {
        reader.notes.add(
          "wrong",
          entry.place(port),
          `${showValue(text)} is not a length such as 300m`,
          reader.wanted.has(port),
        );
      } else {
        delays.set(port, Number(metres) * kNanosecondsPerMetre);
      }
    }
  }
  return delays;
}

/** Size of a pool that the file does not give, bytes. */
const kUsualShare = 12e6;
const kRemedy = "--set buffer.total=SIZE says otherwise";

function sharedOf(
  reader: Reader,
  pool: Entry | undefined,
  reserved: number,
  total: number | undefined,
): number | undefined {
  const size = pool && reader.integer(pool, "size", ...kRanges.bytes);
  if (total !== undefined) return total > reserved ? total - reserved : undefined;
  if (pool === undefined) {
    const message = `is not there: 12 MB that all share are taken, and ${kRemedy}`;
    if (reader.db.names().includes("BUFFER_PG")) reader.note("differs", { table: "BUFFER_POOL" }, message);
    return kUsualShare;
  }
  if (size === undefined) {
    if (pool.get("size") === undefined) {
      const message = "is not there: the buffer manager finds it for each chip; 12 MB that all share are taken";
      reader.note("differs", pool.place("size"), `${message}, and ${kRemedy}`);
    }
    return kUsualShare;
  }
  if (size > reserved) return size - reserved;
  reader.note(
    "wrong",
    pool.place("size"),
    `${size} is not more than the ${reserved} that priority groups reserve of it; ${kRemedy}`,
  );
  return undefined;
}

function queuesOf(reader: Reader, lossless: ReadonlyMap<string, readonly number[]>): Buffers["queues"] {
  const found = new Map<string, Pick<GroupBuffer, "alpha" | "threshold">[]>();
  for (const { entry, ports, numbers } of reader.ofPorts("BUFFER_QUEUE")) {
    const profile = reader.reference(entry, "profile", "BUFFER_PROFILE");
    if (profile === undefined) continue;
    const share = shareOf(reader, profile);
    for (const port of ports) {
      for (const queue of numbers) {
        if (lossless.get(port)?.includes(queue)) continue;
        const of = found.get(port) ?? [];
        of[queue] = share;
        found.set(port, of);
      }
    }
  }
  return found;
}
