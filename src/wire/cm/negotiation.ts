/** Makes REQ and REP from the wishes of the application, and reads in them what it needs to know. Values are those of Linux rxe. */
import { addressOfGid, gidOfAddress } from "../address.js";
import { kHopLimit } from "../headers.js";
import {
  buildIpHeader,
  buildMessage,
  kPathMtus,
  kPrivateData,
  type Message,
  readIpHeader,
  serviceId,
} from "./messages.js";
import {
  ackTimeoutWith,
  type ConnectOptions,
  checkPrivateData,
  codeOfMtu,
  type LocalParameters,
  type PeerParameters,
} from "./parameters.js";
import type { Peer } from "./port.js";
import { kReject } from "./reject.js";

/** RoCE has no LIDs. */
const kPermissiveLid = 0xffff;
export const kDefaultPartition = 0xffff;
const kAckTimeout = 19;
/** Code of the delay before our acknowledgements, 134 ms. */
const kTargetAckDelay = 15;
const kReliableConnection = 0;

/** Our side as its messages name it. */
export interface Local {
  readonly address: string;
  /** EUI-64 of the channel adapter. */
  readonly guid: Buffer;
  /** Code of the time that peers have for their answers; the other is how often a message is sent again. */
  readonly responseTimeout: number;
  readonly maxRetries: number;
}

/** Builds a REQ, with a function that says what a REP to it amounts to. @throws WeirError for a path MTU or private data that cannot be. */
export function buildRequest(
  options: ConnectOptions,
  local: Local,
  peer: Peer,
  localId: number,
  sourcePort: number,
): { req: Buffer; agree: (rep: Message<"REP">) => PeerParameters } {
  const { responderResources = 1, initiatorDepth = 1, retryCount = 7, rnrRetryCount = 7 } = options;
  const { pathMtu, ackTimeout = kAckTimeout, trafficClass = 0 } = options;
  const flowLabel = (sourcePort * 31 + options.port) & 0xf_ffff;
  const addresses = { source: local.address, destination: peer.address };
  const req = buildMessage("REQ", BigInt(localId), {
    localId,
    serviceId: serviceId("connected", options.port),
    localGuid: local.guid,
    localQpn: options.qpn,
    responderResources,
    initiatorDepth,
    remoteResponseTimeout: local.responseTimeout,
    transportService: kReliableConnection,
    startingPsn: options.startingPsn,
    localResponseTimeout: local.responseTimeout,
    retryCount,
    partition: kDefaultPartition,
    pathMtu: codeOfMtu(pathMtu),
    rnrRetryCount,
    maxRetries: local.maxRetries,
    localLid: kPermissiveLid,
    remoteLid: kPermissiveLid,
    localGid: gidOfAddress(addresses.source),
    remoteGid: gidOfAddress(addresses.destination),
    flowLabel,
    trafficClass,
    hopLimit: kHopLimit,
    localAckTimeout: ackTimeout,
    privateData: buildIpHeader({ sourcePort, ...addresses }, checkPrivateData(options.privateData, kPrivateData.REQ)),
  });
  const agree = ({ fields }: Message<"REP">): PeerParameters => ({
    remoteAddress: peer.address,
    remoteMac: peer.mac,
    remoteQpn: fields.localQpn,
    remoteStartingPsn: fields.startingPsn,
    privateData: fields.privateData,
    responderResources: Math.min(responderResources, fields.initiatorDepth),
    initiatorDepth: Math.min(initiatorDepth, fields.responderResources),
    pathMtu,
    retryCount,
    rnrRetryCount: fields.rnrRetryCount,
    ackTimeout: ackTimeoutWith(fields.targetAckDelay, ackTimeout),
    trafficClass,
    flowLabel,
  });
  return { req, agree };
}

/** Returns what a REQ offers; a number is the reason to refuse it, undefined: it contradicts itself and deserves no answer. */
export function offerOf(
  { fields }: Message<"REQ">,
  address: string,
  from: Peer,
): (PeerParameters & { remotePort: number }) | number | undefined {
  if (addressOfGid(fields.localGid) !== from.address || fields.localId === 0) return;
  if (addressOfGid(fields.remoteGid) !== address) return kReject.invalidRemoteGid;
  if (fields.transportService !== kReliableConnection || fields.extendedTransport !== 0) {
    return kReject.invalidTransportService;
  }
  const ip = readIpHeader(fields.privateData);
  if (ip === undefined) return kReject.unsupportedRequest;
  if (ip.source !== from.address || ip.destination !== address) return;
  const pathMtu = kPathMtus[fields.pathMtu - 1];
  if (pathMtu === undefined) return kReject.invalidPathMtu;
  return {
    remoteAddress: from.address,
    remoteMac: from.mac,
    remotePort: ip.sourcePort,
    remoteQpn: fields.localQpn,
    remoteStartingPsn: fields.startingPsn,
    privateData: ip.privateData,
    responderResources: fields.initiatorDepth,
    initiatorDepth: fields.responderResources,
    pathMtu,
    retryCount: fields.retryCount,
    rnrRetryCount: fields.rnrRetryCount,
    ackTimeout: fields.localAckTimeout,
    trafficClass: fields.trafficClass,
    flowLabel: fields.flowLabel,
  };
}

/** A REP and what it amounts to. @throws WeirError for private data that is too long. */
export function buildReply(
  offer: PeerParameters,
  own: LocalParameters,
  guid: Buffer,
  { localId, remoteId }: { localId: number; remoteId: number },
  transaction: bigint,
): { rep: Buffer; agreed: PeerParameters } {
  const depths = {
    responderResources: Math.min(own.responderResources ?? 255, offer.responderResources),
    initiatorDepth: Math.min(own.initiatorDepth ?? 255, offer.initiatorDepth),
  };
  const rep = buildMessage("REP", transaction, {
    localId,
    remoteId,
    localQpn: own.qpn,
    startingPsn: own.startingPsn,
    ...depths,
    targetAckDelay: kTargetAckDelay,
    rnrRetryCount: own.rnrRetryCount ?? 7,
    localGuid: guid,
    privateData: checkPrivateData(own.privateData, kPrivateData.REP),
  });
  return { rep, agreed: { ...offer, ...depths } };
}
