import type { Paper } from "../engine/experiment.js";

/** Ultra Ethernet's own simulator, which records for each of its validation runs how long the last flow may take, and took. */
export const HTSIM: Paper = {
  name: "uet-htsim",
  citation:
    "Ultra Ethernet Consortium: uet-htsim, commit 40ccb05 (2025), htsim/sim/datacenter/validate_uec_sender.txt and validate_outputs/validate_uec_sender.out",
};

/** Only its abstract was at hand: statements are from there, and what they are read as is ours. */
export const REPS: Paper = {
  name: "Bonato et al. 2024",
  citation:
    "T. Bonato, A. Kabbani, A. Ghalayini, M. Papamichael, M. Dohadwala, L. Gianinazzi, M. Khalilov, E. Achermann, D. De Sensi, T. Hoefler: REPS: Recycled Entropy Packet Spraying for Adaptive Load Balancing and Failure Mitigation, arXiv:2407.21625v5",
};

/** Only its abstract was at hand: statements are from there, and what they are read as is ours. */
export const SMARTT: Paper = {
  name: "Bonato et al. 2026",
  citation:
    "T. Bonato, A. Kabbani, A. Ghalayini, A. Agarwal, D. De Sensi, R. Pan, C. Raiciu, M. Handley, M. Brodschi, T. Schneider, N. Blach, D. Santos Ferreira Alves, T. Hoefler: SMaRTT: Sender-based Marked Rapidly-adapting Trimmed & Timed Transport, arXiv:2404.01630v4",
};

export const UEC_FILE = "uec/fat-tree.yaml";
