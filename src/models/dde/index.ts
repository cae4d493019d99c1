/** Delay differential equations, for `src/models/dcqcn`. */
export { DenseStep } from "./dormand_prince.js";
export { type DelayProblem, DelaySolver, type SolverOptions } from "./solver.js";
