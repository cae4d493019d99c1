/** Who lives on the hosts of a lab while its traffic runs, behind the NICs: kernels with addresses, and programs. */
import type { LabNetwork } from "../../host/veth.js";
import type { FlowResult, Result, Series } from "../../result/result.js";
import type { LabAccess, LabObserver } from "./access.js";

/** What they leave in the result. */
export interface ResidentsResult {
  flows: FlowResult[];
  series: Series["flows"];
  programs?: Result["programs"];
}

export interface Residents extends LabObserver {
  /** The lab's. */
  readonly network: LabNetwork;
  /** At which it runs. */
  readonly scale: number;
  /** Devices live, traffic may have begun already. @throws WeirError where programs cannot be had. */
  settle(lab: LabAccess): Promise<void>;
  /** A frame that is not for queue pairs has come to host number `host`. */
  take(host: number, bytes: Buffer): void;
  /** Whether they have nothing more to do that anybody waits for. */
  done(): boolean;
  /** Why the lab cannot go on. */
  failure(): string | undefined;
  /** Traffic is over: whatever runs is ended. */
  end(): Promise<void>;
  result(lab: LabAccess, end: number): ResidentsResult;
  /** Everything of theirs goes, the network last. Idempotent. */
  close(): void;
}
