/** What the command line and the lab agree on. */

import type { FileRequest } from "../../scenario/places.js";
import type { Scenario } from "../../scenario/types.js";
import type { RunOptions } from "../clock.js";
import type { LabObserver } from "./access.js";
import type { LabView } from "./live_state.js";
import type { PartOptions } from "./parts/part_run.js";
import type { Residents } from "./residents.js";

export interface LabOptions extends RunOptions {
  view?: LabView | undefined;
  /** Others that look on, or have a hand in it. */
  observers?: readonly LabObserver[] | undefined;
  /** Its devices answer on a control socket; `warn` is told why where that cannot be. `metrics`: where those are served, to be told there. */
  control?: { warn(text: string): void; metrics?: string } | undefined;
  /**
   * Who lives on its hosts; without, nobody does.
   * @param control Name of its control socket, without the suffix.
   */
  residents?: ((scenario: Scenario, control: string | undefined) => Promise<Residents>) | undefined;
  /** Of a scenario of which a part was chosen. */
  part?: PartOptions | undefined;
  /** To a pcap or, by its suffix, pcapng file. */
  capture?: readonly FileRequest[] | undefined;
}
