/** All experiments on congestion control under collectives of training. */
import type { Experiment } from "../engine/experiment.js";
import { TRAINING_COLLECTIVES } from "./collectives.js";
import { TRAINING_ITERATIONS } from "./iterations.js";

export const TRAINING_EXPERIMENTS: readonly Experiment[] = [TRAINING_COLLECTIVES, TRAINING_ITERATIONS];
