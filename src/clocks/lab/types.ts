/** Options that the command line and the lab agree on. */

import type { FileRequest } from "../../scenario/places.js";
import type { Scenario } from "../../scenario/types.js";
import type { RunOptions } from "../clock.js";
import type { LabObserver } from "./access.js";
import type { LabView } from "./live_state.js";
import type { PartOptions } from "./parts/part_run.js";
import type { Residents } from "./residents.js";

export interface LabOptions extends RunOptions {
  view?: LabView | undefined;
  /** Others that watch or change the lab while it runs. */
  observers?: readonly LabObserver[] | undefined;
  /**
   * Its devices answer on a control socket; `warn` is told why where that cannot be. `metrics` is the address of the metrics, which the
   * socket tells.
   */
  control?: { warn(text: string): void; metrics?: string } | undefined;
  /**
   * Makes the residents of its hosts; without it hosts have none.
   * @param control Name of its control socket, without the suffix.
   */
  residents?: ((scenario: Scenario, control: string | undefined) => Promise<Residents>) | undefined;
  /** Options of a part, where one of the scenario's was chosen. */
  part?: PartOptions | undefined;
  /** Captures, to pcap or, by their suffix, pcapng files. */
  capture?: readonly FileRequest[] | undefined;
}
