/** Residents of a lab's hosts while its traffic runs, behind the NICs: kernels with addresses, and programs. */
import type { LabNetwork } from "../../host/veth.js";
import type { FlowResult, Result, Series } from "../../result/result.js";
import type { LabAccess, LabObserver } from "./access.js";

/** Their share of the result. */
export interface ResidentsResult {
  flows: FlowResult[];
  series: Series["flows"];
  programs?: Result["programs"];
}

export interface Residents extends LabObserver {
  /** Network of the lab. */
  readonly network: LabNetwork;
  /** Scale at which the lab runs. */
  readonly scale: number;
  /** Is called when devices live; traffic may have begun already. @throws WeirError where programs cannot be had. */
  settle(lab: LabAccess): Promise<void>;
  /** Takes a frame that has come to host number `host` and is not for queue pairs. */
  take(host: number, bytes: Buffer): void;
  /** Whether they have nothing more to do that anybody waits for. */
  done(): boolean;
  /** Reason why the lab cannot go on. */
  failure(): string | undefined;
  /** Ends whatever still runs when traffic is over. */
  end(): Promise<void>;
  result(lab: LabAccess, end: number): ResidentsResult;
  /** Removes everything of theirs, the network last. Idempotent. */
  close(): void;
}
