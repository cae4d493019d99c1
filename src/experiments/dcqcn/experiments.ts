/** All experiments on DCQCN, in the order of the paper's figures. */
import type { Experiment } from "../experiment.js";
import { DCQCN_SECTION_6_1 } from "./many_senders.js";
import { DCQCN_FIGURE_10 } from "./second_sender.js";
import { DCQCN_FIGURE_13 } from "./settings.js";

export const DCQCN_EXPERIMENTS: readonly Experiment[] = [DCQCN_FIGURE_10, DCQCN_FIGURE_13, DCQCN_SECTION_6_1];
