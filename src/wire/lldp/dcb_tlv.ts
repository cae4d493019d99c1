/** Organizationally specific TLVs of IEEE 802.1 by which LLDP serves data center bridging (IEEE 802.1Q-2018, annex D.2). */
import { kPriorities } from "../priority.js";
import type { OrganizationTlv } from "./lldpdu.js";

export const kIeee8021 = 0x0080c2;
const kSubtype = { congestion: 8, ets: 9, recommendation: 10, pfc: 11, application: 12 } as const;

/** Transmission selection algorithms (TSA assignment table of D.2.8): strict priority, credit based shaper, ETS, a vendor's. */
export type Tsa = "strict" | "cbs" | "ets" | "vendor" | "reserved";
const kTsa: Readonly<Record<number, Tsa>> = { 0: "strict", 1: "cbs", 2: "ets", 255: "vendor" };
const kTsaCode: Readonly<Record<Tsa, number>> = { strict: 0, cbs: 1, ets: 2, vendor: 255, reserved: 254 };

/** Enhanced transmission selection: arrays of eight. */
export interface Ets {
  /** Traffic class of each priority. */
  prio_tc: number[];
  /** Percent of each traffic class. */
  bandwidth: number[];
  tsa: Tsa[];
}

export interface EtsConfiguration extends Ets {
  willing: boolean;
  cbs: boolean;
  /** 1 to 8. */
  max_tcs: number;
}

export interface Pfc {
  willing: boolean;
  /** MACsec bypass capability. */
  mbc: boolean;
  /** Number of priorities that may have PFC at a time. */
  capability: number;
  /** Priorities that have PFC. */
  priorities: number[];
}

/** Fields by which a protocol is named (table D-9): EtherType; port of TCP or SCTP, of UDP or DCCP, of any of them; DSCP. */
export type Selector = "ethertype" | "tcp" | "udp" | "port" | "dscp" | "reserved";
const kSelectors: readonly Selector[] = ["reserved", "ethertype", "tcp", "udp", "port", "dscp", "reserved", "reserved"];

export interface Application {
  priority: number;
  selector: Selector;
  protocol: number;
}

/** Congestion notification: priorities that are CNPVs, and those whose defence is down, ready to receive CN-TAGs (D.2.7). */
export interface CongestionNotification {
  cnpvs: number[];
  ready: number[];
}

/** TLVs of one LLDPDU; undefined: it has none. */
export interface DcbTlvs {
  ets?: EtsConfiguration;
  recommendation?: Ets;
  pfc?: Pfc;
  applications?: Application[];
  congestion?: CongestionNotification;
}

const maskOf = (priorities: readonly number[]) => priorities.reduce((mask, priority) => mask | (1 << priority), 0);
const inMask = (mask: number) => kPriorities.filter((priority) => (mask >> priority) & 1);

/** Reads TLVs; those that are malformed, or there twice, are as if they were not there, and are counted. */
export function readDcb(tlvs: readonly OrganizationTlv[]): { dcb: DcbTlvs; malformed: number } {
  const dcb: DcbTlvs = {};
  let malformed = 0;
  for (const { oui, subtype, information } of tlvs) {
    const name = kNames[subtype];
    if (oui !== kIeee8021 || name === undefined) continue;
    const value = dcb[name] === undefined ? kReaders[name](information) : undefined;
    if (value === undefined) malformed++;
    else Object.assign(dcb, { [name]: value });
  }
  return { dcb, malformed };
}

const kNames: Readonly<Record<number, keyof DcbTlvs>> = {
  [kSubtype.congestion]: "congestion",
  [kSubtype.ets]: "ets",
  [kSubtype.recommendation]: "recommendation",
  [kSubtype.pfc]: "pfc",
  [kSubtype.application]: "applications",
};

const kReaders: { [Name in keyof DcbTlvs]-?: (information: Buffer) => DcbTlvs[Name] | undefined } = {
  ets(information) {
    const ets = readEts(information);
    const first = information[0] ?? 0;
    return (
      ets && {
        willing: first >> 7 === 1,
        cbs: ((first >> 6) & 1) === 1,
        max_tcs: first & 7 || kPriorities.length,
        ...ets,
      }
    );
  },
  recommendation: readEts,
  pfc(information) {
    if (information.length !== 2) return undefined;
    const first = information.readUInt8();
    const priorities = inMask(information.readUInt8(1));
    return { willing: first >> 7 === 1, mbc: ((first >> 6) & 1) === 1, capability: first & 15, priorities };
  },
  applications(information) {
    if (information.length % 3 !== 1) return undefined;
    const entries = [...Array((information.length - 1) / 3).keys()].map((i) => information.subarray(1 + 3 * i));
    return entries.map((entry) => {
      const first = entry.readUInt8();
      return {
        priority: first >> 5,
        selector: kSelectors[first & 7] as Selector,
        protocol: entry.readUInt16BE(1),
      };
    });
  },
  congestion(information) {
    if (information.length !== 2) return undefined;
    return { cnpvs: inMask(information.readUInt8()), ready: inMask(information.readUInt8(1)) };
  },
};

/** Layout: flags; a nibble of traffic class for each priority; a byte of bandwidth, and one of algorithm, for each traffic class. */
function readEts(information: Buffer): Ets | undefined {
  if (information.length !== 21) return undefined;
  const prio_tc = kPriorities.map((p) => (information.readUInt8(1 + (p >> 1)) >> (p % 2 === 0 ? 4 : 0)) & 15);
  const bandwidth = [...information.subarray(5, 13)];
  const tsa = [...information.subarray(13)].map((code) => kTsa[code] ?? "reserved");
  const total = bandwidth.reduce((sum, percent) => sum + percent, 0);
  const shares = tsa.includes("ets");
  if (prio_tc.some((tc) => tc >= kPriorities.length) || (shares && total !== 100) || total > 100) return undefined;
  return { prio_tc, bandwidth, tsa };
}

/** Builds them in the order of the standard. @throws RangeError for what has no place in them. */
export function buildDcb({ ets, recommendation, pfc, applications, congestion }: DcbTlvs): OrganizationTlv[] {
  const tlvs: OrganizationTlv[] = [];
  const add = (subtype: number, ...bytes: number[]) =>
    tlvs.push({ oui: kIeee8021, subtype, information: Buffer.from(bytes) });
  if (congestion !== undefined) add(kSubtype.congestion, maskOf(congestion.cnpvs), maskOf(congestion.ready));
  if (ets !== undefined) {
    const flags = (ets.willing ? 0x80 : 0) | (ets.cbs ? 0x40 : 0) | (ets.max_tcs & 7);
    add(kSubtype.ets, flags, ...etsBytes(ets));
  }
  if (recommendation !== undefined) add(kSubtype.recommendation, 0, ...etsBytes(recommendation));
  if (pfc !== undefined) {
    const flags = (pfc.willing ? 0x80 : 0) | (pfc.mbc ? 0x40 : 0) | pfc.capability;
    add(kSubtype.pfc, flags, maskOf(pfc.priorities));
  }
  if (applications !== undefined) {
    const entries = applications.flatMap(({ priority, selector, protocol }) => [
      (priority << 5) | kSelectors.indexOf(selector),
      protocol >> 8,
      protocol & 0xff,
    ]);
    add(kSubtype.application, 0, ...entries);
  }
  return tlvs;
}

function etsBytes({ prio_tc, bandwidth, tsa }: Ets): number[] {
  if ([prio_tc, bandwidth, tsa].some((list) => list.length !== kPriorities.length))
    throw new RangeError("ETS has eight of each");
  const pairs = [0, 2, 4, 6].map((p) => ((prio_tc[p] ?? 0) << 4) | (prio_tc[p + 1] ?? 0));
  return [...pairs, ...bandwidth, ...tsa.map((algorithm) => kTsaCode[algorithm])];
}
