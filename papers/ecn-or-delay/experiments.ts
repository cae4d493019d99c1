/** All experiments on "ECN or Delay". */
import type { Experiment } from "../engine/experiment.js";
import { ECN_OR_DELAY_FAIRNESS } from "./fairness.js";
import { ECN_OR_DELAY_QUEUE } from "./queue.js";
import { ECN_OR_DELAY_STABILITY } from "./stability.js";

export const ECN_OR_DELAY_EXPERIMENTS: readonly Experiment[] = [
  ECN_OR_DELAY_FAIRNESS,
  ECN_OR_DELAY_QUEUE,
  ECN_OR_DELAY_STABILITY,
];
