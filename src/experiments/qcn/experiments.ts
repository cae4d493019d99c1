/** All experiments on QCN. */
import type { Experiment } from "../experiment.js";
import { LISS_CONVERGENCE } from "./liss.js";
import { NETFPGA_FIGURES } from "./netfpga.js";
import { SHU_MODEL_FIGURES } from "./shu_model.js";
import { SHU_NETWORK_FIGURES } from "./shu_network.js";
import { QCN_VERSUS_DCQCN } from "./versus.js";

/** In the order of the paper: equal numbers as they are above. */
const SHU_EXPERIMENTS = [...SHU_NETWORK_FIGURES, ...SHU_MODEL_FIGURES].sort((a, b) => numberOf(a) - numberOf(b));

function numberOf({ id }: Experiment): number {
  return Number(/\d+$/.exec(id)?.[0]);
}

export const QCN_EXPERIMENTS: readonly Experiment[] = [
  ...NETFPGA_FIGURES,
  ...SHU_EXPERIMENTS,
  LISS_CONVERGENCE,
  QCN_VERSUS_DCQCN,
];
