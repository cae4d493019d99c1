/** All experiments on Ultra Ethernet's congestion control and spraying. */
import type { Experiment } from "../engine/experiment.js";
import { UEC_INCAST } from "./incast.js";
import { UEC_SPRAYING } from "./spraying.js";
import { UEC_TARGETS } from "./targets.js";

export const UEC_EXPERIMENTS: readonly Experiment[] = [UEC_TARGETS, UEC_SPRAYING, UEC_INCAST];
