/** All experiments on DCQCN, in the order of the paper's figures. */
import type { Experiment } from "../experiment.js";
import { DCQCN_FIGURE_5 } from "./figure_5.js";
import { DCQCN_FIGURE_11 } from "./figure_11.js";
import { DCQCN_FIGURE_12 } from "./figure_12.js";
import { DCQCN_SECTION_5 } from "./section_5.js";

export const DCQCN_EXPERIMENTS: readonly Experiment[] = [
  DCQCN_FIGURE_5,
  DCQCN_FIGURE_11,
  DCQCN_FIGURE_12,
  DCQCN_SECTION_5,
];
