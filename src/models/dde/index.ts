/** Delay differential equations: what `src/models/dcqcn` is solved with. */
export { DenseStep } from "./dormand_prince.js";
export { type DelayProblem, DelaySolver, type SolverOptions } from "./solver.js";
