/** All experiments on DCQCN, in the order of the paper's figures. */
import type { Experiment } from "../experiment.js";
import { DCQCN_FIGURE_1 } from "./message_sizes.js";

export const DCQCN_EXPERIMENTS: readonly Experiment[] = [DCQCN_FIGURE_1];
