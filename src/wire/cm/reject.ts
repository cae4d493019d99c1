/** Reasons why connections fail. IBTA volume 1, 12.6.7.2. */
import { WeirError } from "../../base/error.js";

/** Reasons that are given here; `rejectReason` knows the names of all. */
export const kReject = {
  noResources: 3,
  timeout: 4,
  unsupportedRequest: 5,
  invalidServiceId: 8,
  invalidTransportService: 9,
  staleConnection: 10,
  invalidRemoteGid: 12,
  invalidPathMtu: 26,
  consumer: 28,
} as const;

const kNames: readonly (string | undefined)[] = [
  undefined,
  "no queue pair available",
  "no end-to-end context available",
  "no resources available",
  "timeout",
  "unsupported request",
  "invalid communication ID",
  "invalid communication instance",
  "invalid service ID",
  "invalid transport service type",
  "stale connection",
  "RDC does not exist",
  "primary remote port GID rejected",
  "primary remote port LID rejected",
  "invalid primary SL",
  "invalid primary traffic class",
  "invalid primary hop limit",
  "invalid primary packet rate",
  "alternate remote port GID rejected",
  "alternate remote port LID rejected",
  "invalid alternate SL",
  "invalid alternate traffic class",
  "invalid alternate hop limit",
  "invalid alternate packet rate",
  "port and CM redirection",
  "port redirection",
  "invalid path MTU",
  "insufficient responder resources",
  "consumer reject",
  "RNR retry count rejected",
  "duplicate local communication ID",
  "invalid class version",
  "invalid flow label",
  "invalid alternate flow label",
];

const kHints: Readonly<Record<number, string>> = {
  [kReject.timeout]: "the other side waited too long; try again",
  [kReject.invalidServiceId]: "start the server first, and check the port: nothing listens on it",
  [kReject.staleConnection]:
    "the other side still had an old connection of this queue pair and has dropped it: try again",
  [kReject.invalidPathMtu]: "choose a smaller path MTU",
  [kReject.consumer]: "the application there refused; its own messages tell why",
};

export function rejectReason(reason: number): string {
  return kNames[reason] ?? `reason ${reason}`;
}

/** Thrown when the other side has sent REJ. */
export class ConnectionRejected extends WeirError {
  constructor(
    peer: string,
    readonly reason: number,
    readonly privateData: Buffer,
  ) {
    super(`${peer} rejected the connection: ${rejectReason(reason)} (${reason})`, { hint: kHints[reason] });
    this.name = "ConnectionRejected";
  }
}
