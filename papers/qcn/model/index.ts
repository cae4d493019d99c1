/** Convergence of QCN by equations: `weir paper` and results of the clock `model`. See docs/guides/models.md. */
export {
  type QcnConvergence,
  type QcnHorizon,
  type QcnSeries,
  type QcnUnsolvable,
  qcnConvergence,
} from "./evolution.js";
export { type FeedbackSolution, feedbackProbability } from "./feedback.js";
export {
  QCN_BASELINE,
  type QcnForm,
  type QcnModelInput,
  type QcnModelParameters,
  type QcnVariant,
} from "./parameters.js";
