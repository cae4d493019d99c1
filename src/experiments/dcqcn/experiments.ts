/** All experiments on DCQCN, in the order of the paper's figures. */
import type { Experiment } from "../experiment.js";
import { DCQCN_FIGURE_19 } from "./figure_19.js";
import { DCQCN_QUEUE_20TO1 } from "./queue_20to1.js";

export const DCQCN_EXPERIMENTS: readonly Experiment[] = [DCQCN_FIGURE_19, DCQCN_QUEUE_20TO1];
