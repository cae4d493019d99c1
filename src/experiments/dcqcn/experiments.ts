/** All experiments on DCQCN, in the order of the paper's figures. */
import type { Experiment } from "../experiment.js";
import { DCQCN_FIGURE_10 } from "./second_sender.js";

export const DCQCN_EXPERIMENTS: readonly Experiment[] = [DCQCN_FIGURE_10];
