/** All experiments on QCN, in the order of the papers. */
import type { Experiment } from "../engine/experiment.js";
import { LISS_CONVERGENCE } from "./liss.js";
import { LISS_DCB } from "./liss_dcb.js";
import { LISS_VICTIM } from "./liss_victim.js";
import { NETFPGA_FIGURES } from "./netfpga.js";
import { SHU_FEEDBACK, SHU_ROUND_TRIP } from "./shu_delay.js";
import { SHU_HYPER } from "./shu_hyper.js";
import { SHU_FIGURE_3, SHU_FIGURE_4 } from "./shu_model.js";
import { SHU_FIGURE_1, SHU_FIGURE_12 } from "./shu_stages.js";
import { SHU_SWEEPS } from "./shu_sweeps.js";
import { SHU_FIGURE_5, SHU_FIGURE_6, SHU_TABLE_1 } from "./shu_uneven.js";
import { NETFPGA_TCP } from "./tcp.js";
import { QCN_VERSUS_DCQCN } from "./versus.js";

export const QCN_EXPERIMENTS: readonly Experiment[] = [
  ...NETFPGA_FIGURES,
  NETFPGA_TCP,
  SHU_FIGURE_1,
  SHU_TABLE_1,
  SHU_FIGURE_3,
  SHU_FIGURE_4,
  SHU_FIGURE_5,
  SHU_FIGURE_6,
  ...SHU_SWEEPS,
  SHU_FEEDBACK,
  SHU_ROUND_TRIP,
  SHU_HYPER,
  SHU_FIGURE_12,
  LISS_CONVERGENCE,
  LISS_VICTIM,
  LISS_DCB,
  QCN_VERSUS_DCQCN,
];
