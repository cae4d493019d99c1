/** The papers on QCN whose figures are run again. */
import type { Paper } from "../engine/experiment.js";

export const NETFPGA: Paper = {
  name: "Kabbani and Yasuda",
  citation:
    "A. Kabbani, M. Yasuda: Data Center Quantized Congestion Notification (QCN): Implementation and Evaluation on NetFPGA",
};

export const SHU: Paper = {
  name: "Shu et al.",
  citation:
    "R. Shu, J. Zhang, F. Ren, C. Lin: Analysing Convergence of Quantized Congestion Notification in Data Center Ethernet",
};

/** Facts that follow from the number of one of its figures. */
export const shuFigure = (figure: number) => ({ id: `qcn-shu-fig${figure}`, paper: SHU, place: `figure ${figure}` });

export const LISS: Paper = {
  name: "Liss",
  citation:
    "L. Liss: Quantized Congestion Control (QCN): Experiences with Ethernet and RoCE, OpenFabrics Alliance workshop",
};

/** Overrides that take congestion control out of a scenario of Liss's, and leave PFC. */
export const LISS_PFC_ALONE = ["congestion={algorithm: none}", "switch.qcn.enabled=false", "switch.ecn.enabled=false"];
