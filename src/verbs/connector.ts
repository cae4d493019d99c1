/** Connection management as devices have it: a connection manager of their own, or a daemon's. */
import type { IncomingRequest } from "../wire/cm/connection_manager.js";
import type { ConnectOptions, Established } from "../wire/cm/parameters.js";

/** Our own first PSN, where connection management has chosen it. */
export interface OwnPsn {
  readonly startingPsn?: number;
}

export interface Connector {
  /** Address of the NIC at which connections are. */
  readonly address: string;
  connect(options: ConnectOptions): Promise<Established & OwnPsn>;
  /** `ready` fails if nobody can listen there, where that is not known at once. */
  listen(
    port: number,
    onRequest: (request: IncomingRequest & OwnPsn) => void,
  ): { close(): void; readonly ready?: Promise<void> };
}
