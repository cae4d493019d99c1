/** Causes for which statements on training fall short. */
import type { Cause } from "../engine/experiment.js";

export const HASHED_PATHS: Cause = {
  id: "paths-by-hash",
  by: "us",
  what: "Each leaf has as many flows of rails as uplinks, but ECMP puts several on one of them.",
  proof: "only the abstract was at hand, and how the paper's collectives find their paths is not known",
};

export const INITIAL_WINDOW: Cause = {
  id: "initial-window",
  by: "us",
  what: "DCTCP begins with a window of 10 packets, Linux's, where 427 fill the link for a round trip of 70 us, and takes most of an iteration to open it.",
  proof:
    "with a window of 430 packets from the start the DLRM iteration takes 11.48 ms, with 10 it takes 13.64, and with PFC alone 11.47 (seed 1); in the paper's simulator DCTCP has a rate, and begins at that of the line",
};
