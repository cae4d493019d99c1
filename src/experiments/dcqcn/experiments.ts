/** All experiments on DCQCN, in the order of the paper's figures. */
import type { Experiment } from "../experiment.js";
import { DCQCN_FIGURE_19 } from "./figure_19.js";

export const DCQCN_EXPERIMENTS: readonly Experiment[] = [DCQCN_FIGURE_19];
