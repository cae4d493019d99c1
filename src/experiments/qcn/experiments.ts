/** All experiments on QCN. */
import type { Experiment } from "../experiment.js";
import { SHU_MODEL_FIGURES } from "./shu_model.js";

export const QCN_EXPERIMENTS: readonly Experiment[] = [...SHU_MODEL_FIGURES];
