import type { Paper } from "../engine/experiment.js";

export const DCQCN_PAPER: Paper = {
  name: "Zhu et al. 2015",
  citation:
    "Y. Zhu, H. Eran, D. Firestone, C. Guo, M. Lipshteyn, Y. Liron, J. Padhye, S. Raindel, M. H. Yahia, M. Zhang: Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015",
};

/** Facts that follow from a figure's number. */
export const dcqcnFigure = (figure: number) => ({
  id: `dcqcn-fig${figure}`,
  paper: DCQCN_PAPER,
  place: `figure ${figure}`,
});
