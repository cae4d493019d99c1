/** LLDP's data unit (IEEE 802.1AB-2016, clause 8): a total reader of any bytes, and a builder. */
import { isIPv6 } from "node:net";
import { addressBytes, addressText, macBytes } from "../address.js";

/** Nearest bridge: of the three addresses of LLDP the one that no bridge passes on, and the one of DCBX (IEEE 802.1Q, 38.4.1). */
export const kNearestBridge = 0x0180_c200_000e;

const kType = {
  end: 0,
  chassis: 1,
  port: 2,
  ttl: 3,
  portDescription: 4,
  systemName: 5,
  systemDescription: 6,
  capabilities: 7,
  managementAddress: 8,
  organization: 127,
} as const;
const kTlvHeader = 2;
const kOrganizationHeader = 4;
const kMostInformation = 511;
const kMostText = 255;
/** Bytes of an identifier with its subtype. */
const kMostIdentifier = 256;

export const kChassisSubtype = { mac: 4, address: 5, name: 6, local: 7 } as const;
export const kPortSubtype = { mac: 3, address: 4, name: 5, local: 7 } as const;
/** Bits of system capabilities (8.5.8). */
export const kCapability = { bridge: 1 << 2, router: 1 << 4, station: 1 << 7 } as const;
const kCapabilityNames = [
  "other",
  "repeater",
  "bridge",
  "wlan-ap",
  "router",
  "telephone",
  "docsis",
  "station",
  "c-vlan",
  "s-vlan",
  "tpmr",
] as const;

/** Chassis or port: 1 to 255 bytes, which mean what the subtype says. */
export interface Identifier {
  subtype: number;
  id: Buffer;
}

export interface OrganizationTlv {
  /** 24 bits. */
  oui: number;
  subtype: number;
  information: Buffer;
}

export interface Lldpdu {
  chassis: Identifier;
  port: Identifier;
  /** Time to live in seconds; 0: the sender leaves. */
  ttl: number;
  portDescription?: string;
  systemName?: string;
  systemDescription?: string;
  capabilities?: { system: number; enabled: number };
  /** Management addresses that are IP addresses. */
  managementAddresses: string[];
  organization: OrganizationTlv[];
}

/** Outcome of reading an LLDPDU. Names are those of the statistics of clause 9.2.6. */
export interface Reading {
  /** Undefined: the LLDPDU is discarded. */
  pdu: Lldpdu | undefined;
  /** TLVs that are malformed, or there again though they may be there once. */
  tlvsDiscarded: number;
  /** TLVs of types that are reserved. */
  tlvsUnrecognized: number;
  /** Says why it is discarded, or what is wrong with the first TLV that is. */
  error: string | undefined;
}

interface Tlv {
  type: number;
  information: Buffer;
}

/** @param bytes The bytes behind the EtherType, with Ethernet's padding, if any. */
export function readLldpdu(bytes: Buffer): Reading {
  const reading: Reading = { pdu: undefined, tlvsDiscarded: 0, tlvsUnrecognized: 0, error: undefined };
  const { tlvs, error } = split(bytes);
  const refuse = (why: string): Reading => ({ ...reading, error: why });
  const [chassis, port, ttl] = [
    mandatory(tlvs[0], kType.chassis, 2, kMostIdentifier),
    mandatory(tlvs[1], kType.port, 2, kMostIdentifier),
    mandatory(tlvs[2], kType.ttl, 2, kMostInformation),
  ];
  if (chassis === undefined) return refuse("does not begin with a chassis ID");
  if (port === undefined) return refuse("has no port ID behind the chassis ID");
  if (ttl === undefined) return refuse("has no time to live behind the port ID");
  const pdu: Lldpdu = {
    chassis: identifier(chassis),
    port: identifier(port),
    ttl: ttl.readUInt16BE(),
    managementAddresses: [],
    organization: [],
  };
  if (error !== undefined) {
    reading.tlvsDiscarded++;
    reading.error = error;
  }
  for (const tlv of tlvs.slice(3)) {
    if (tlv.type === kType.chassis || tlv.type === kType.port || tlv.type === kType.ttl)
      return refuse(`has a second TLV of type ${tlv.type}`);
    const outcome = take(tlv, pdu);
    if (outcome === "unrecognized") reading.tlvsUnrecognized++;
    if (outcome !== "discarded") continue;
    reading.tlvsDiscarded++;
    reading.error ??= `its TLV of type ${tlv.type} is malformed, or there twice`;
  }
  return { ...reading, pdu };
}

/** Splits up to the end that it tells, or that of the bytes. `error`: its last TLV is cut off. */
function split(bytes: Buffer): { tlvs: Tlv[]; error: string | undefined } {
  const tlvs: Tlv[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (bytes.length - at < kTlvHeader) return { tlvs, error: "its last TLV has no length" };
    const header = bytes.readUInt16BE(at);
    const [type, length] = [header >> 9, header & kMostInformation];
    if (type === kType.end) return { tlvs, error: length === 0 ? undefined : "its end has a length" };
    at += kTlvHeader;
    if (bytes.length - at < length) return { tlvs, error: `its TLV of type ${type} is cut off` };
    tlvs.push({ type, information: bytes.subarray(at, at + length) });
    at += length;
  }
  return { tlvs, error: undefined };
}

function mandatory(tlv: Tlv | undefined, type: number, least: number, most: number): Buffer | undefined {
  if (tlv?.type !== type || tlv.information.length < least || tlv.information.length > most) return undefined;
  return tlv.information;
}

const identifier = (information: Buffer): Identifier => ({
  subtype: information.readUInt8(),
  id: Buffer.from(information.subarray(1)),
});

/** Takes a TLV into `pdu`. */
function take({ type, information }: Tlv, pdu: Lldpdu): "taken" | "discarded" | "unrecognized" {
  if (type === kType.portDescription) return takeText(pdu, "portDescription", information);
  if (type === kType.systemName) return takeText(pdu, "systemName", information);
  if (type === kType.systemDescription) return takeText(pdu, "systemDescription", information);
  if (type === kType.capabilities) {
    if (information.length < 4 || pdu.capabilities !== undefined) return "discarded";
    pdu.capabilities = { system: information.readUInt16BE(), enabled: information.readUInt16BE(2) };
    return "taken";
  }
  if (type === kType.managementAddress) return takeAddress(information, pdu);
  if (type !== kType.organization) return "unrecognized";
  if (information.length < kOrganizationHeader) return "discarded";
  pdu.organization.push({
    oui: information.readUIntBE(0, 3),
    subtype: information.readUInt8(3),
    information: Buffer.from(information.subarray(kOrganizationHeader)),
  });
  return "taken";
}

type TextField = "portDescription" | "systemName" | "systemDescription";

function takeText(pdu: Lldpdu, field: TextField, information: Buffer) {
  if (information.length > kMostText || pdu[field] !== undefined) return "discarded";
  pdu[field] = information.toString("utf8");
  return "taken";
}

/** IANA's address family numbers, and bytes of their addresses. */
const kFamilies: Readonly<Record<number, number>> = { 1: 4, 2: 16 };

/** Layout: length, family and address; numbering of the interface (5 bytes), OID (8.5.9). */
function takeAddress(information: Buffer, pdu: Lldpdu) {
  const length = information[0] ?? 0; // It counts the family's byte, too.
  if (length < 2 || length > 32 || information.length < 1 + length + 6) return "discarded";
  const oid = information.readUInt8(1 + length + 5);
  if (information.length < 1 + length + 6 + oid) return "discarded";
  const address = information.subarray(2, 1 + length);
  if (kFamilies[information.readUInt8(1)] === address.length) pdu.managementAddresses.push(addressText(address));
  return "taken";
}

/** Builds the bytes behind the EtherType; texts and lists that are too long are cut. @throws RangeError for identifiers that cannot be. */
export function buildLldpdu(pdu: Lldpdu): Buffer {
  const parts = [
    tlv(kType.chassis, identifierBytes(pdu.chassis)),
    tlv(kType.port, identifierBytes(pdu.port)),
    tlv(kType.ttl, Buffer.from([pdu.ttl >> 8, pdu.ttl & 0xff])),
  ];
  const text = (type: number, value: string | undefined) => {
    if (value !== undefined) parts.push(tlv(type, cut(value)));
  };
  text(kType.portDescription, pdu.portDescription);
  text(kType.systemName, pdu.systemName);
  text(kType.systemDescription, pdu.systemDescription);
  if (pdu.capabilities !== undefined) {
    const information = Buffer.alloc(4);
    information.writeUInt16BE(pdu.capabilities.system);
    information.writeUInt16BE(pdu.capabilities.enabled, 2);
    parts.push(tlv(kType.capabilities, information));
  }
  for (const address of pdu.managementAddresses) parts.push(tlv(kType.managementAddress, addressInformation(address)));
  for (const { oui, subtype, information } of pdu.organization) {
    const header = Buffer.alloc(kOrganizationHeader);
    header.writeUIntBE(oui, 0, 3);
    header.writeUInt8(subtype, 3);
    parts.push(tlv(kType.organization, Buffer.concat([header, information])));
  }
  return Buffer.concat([...parts, tlv(kType.end, Buffer.alloc(0))]);
}

function tlv(type: number, information: Buffer): Buffer {
  if (information.length > kMostInformation) throw new RangeError(`a TLV has ${kMostInformation} bytes at most`);
  const header = Buffer.alloc(kTlvHeader);
  header.writeUInt16BE((type << 9) | information.length);
  return Buffer.concat([header, information]);
}

function identifierBytes({ subtype, id }: Identifier): Buffer {
  if (id.length < 1 || id.length >= kMostIdentifier) throw new RangeError("an identifier has 1 to 255 bytes");
  return Buffer.concat([Buffer.from([subtype]), id]);
}

/** Cuts a text that is too long, without a part of a character at its end. */
function cut(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length <= kMostText) return bytes;
  let end = kMostText;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.subarray(0, end);
}

function addressInformation(address: string): Buffer {
  const bytes = addressBytes(address);
  const kUnknownInterface = [1, 0, 0, 0, 0];
  return Buffer.from([1 + bytes.length, isIPv6(address) ? 2 : 1, ...bytes, ...kUnknownInterface, 0]);
}

export const macIdentifier = (subtype: number, mac: number): Identifier => ({ subtype, id: macBytes(mac) });

const hex = (bytes: Buffer) => bytes.toString("hex").replace(/(..)(?!$)/g, "$1:");

/** Shows an identifier as people know it: a MAC address, an IP address, a name; else hexadecimal. */
function identifierText({ subtype, id }: Identifier, of: typeof kChassisSubtype | typeof kPortSubtype): string {
  if (subtype === of.address && kFamilies[id[0] ?? 0] === id.length - 1) return addressText(id.subarray(1));
  const isName = subtype !== of.mac && subtype !== of.address;
  return isName && id.every((byte) => byte >= 0x20 && byte < 0x7f) ? id.toString("latin1") : hex(id);
}

export const chassisText = (chassis: Identifier) => identifierText(chassis, kChassisSubtype);
export const portText = (port: Identifier) => identifierText(port, kPortSubtype);
export const capabilityNames = (bits: number) => kCapabilityNames.filter((_, bit) => (bits >> bit) & 1);
