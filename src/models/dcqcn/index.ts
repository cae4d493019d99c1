/** The fluid model of DCQCN: equations 5 to 11 of its paper. See docs/guides/models.md. */
export { dcqcnFixedPoint } from "./fixed_point.js";
export {
  DCQCN_PAPER,
  DCQCN_STRAWMAN,
  type DcqcnModelParameters,
  type FluidFlows,
} from "./parameters.js";
export { FluidRun, runFluid } from "./run.js";
export { algorithmProblems, controlParameters, modelScenario } from "./scenario.js";
export { dcqcnStability, type Stability } from "./stability.js";
