/** All experiments on DCQCN, in the order of the paper's figures. */
import type { Experiment } from "../engine/experiment.js";
import { DCQCN_SECTION_3_3 } from "./cnp_rate.js";
import { DCQCN_FIGURE_12 } from "./gain.js";
import { DCQCN_FIGURE_16 } from "./incast_degree.js";
import { DCQCN_INCREASE } from "./increase.js";
import { DCQCN_LARGE_SCALE } from "./large_scale.js";
import { DCQCN_SECTION_6_1 } from "./many_senders.js";
import { DCQCN_FIGURE_5 } from "./marking.js";
import { DCQCN_FIGURE_1 } from "./message_sizes.js";
import { DCQCN_FIGURE_20 } from "./multi_bottleneck.js";
import { DCQCN_FIGURE_18 } from "./need_for_pfc.js";
import { OVERVIEW_PHASES } from "./overview.js";
import { OVERVIEW_RULES } from "./overview_rules.js";
import { DCQCN_FIGURE_21 } from "./packet_loss.js";
import { DCQCN_SECTION_5 } from "./parameter_selection.js";
import { DCQCN_QUEUE_20TO1 } from "./queue_20to1.js";
import { DCQCN_FIGURE_19 } from "./queue_distribution.js";
import { DCQCN_ROUND_TRIP } from "./round_trip.js";
import { DCQCN_FIGURE_10 } from "./second_sender.js";
import { DCQCN_FIGURE_13 } from "./settings.js";
import { DCQCN_FIGURE_15 } from "./spine_pauses.js";
import { DCQCN_FIGURE_11 } from "./sweeps.js";
import { DCQCN_TCP } from "./tcp.js";
import { DCQCN_FIGURE_3, DCQCN_FIGURE_8 } from "./unfairness.js";
import { DCQCN_FIGURE_17 } from "./user_load.js";
import { DCQCN_FIGURE_4, DCQCN_FIGURE_9 } from "./victim.js";

export const DCQCN_EXPERIMENTS: readonly Experiment[] = [
  DCQCN_FIGURE_1,
  DCQCN_FIGURE_3,
  DCQCN_FIGURE_4,
  DCQCN_FIGURE_5,
  DCQCN_FIGURE_8,
  DCQCN_FIGURE_9,
  DCQCN_SECTION_3_3,
  DCQCN_FIGURE_10,
  DCQCN_FIGURE_11,
  DCQCN_FIGURE_12,
  DCQCN_SECTION_5,
  DCQCN_INCREASE,
  DCQCN_ROUND_TRIP,
  DCQCN_FIGURE_13,
  DCQCN_SECTION_6_1,
  DCQCN_FIGURE_15,
  DCQCN_FIGURE_16,
  DCQCN_FIGURE_17,
  DCQCN_FIGURE_18,
  DCQCN_FIGURE_19,
  DCQCN_FIGURE_20,
  DCQCN_FIGURE_21,
  DCQCN_QUEUE_20TO1,
  DCQCN_TCP,
  DCQCN_LARGE_SCALE,
  OVERVIEW_PHASES,
  OVERVIEW_RULES,
];
