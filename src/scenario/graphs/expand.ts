/** How readers of formats that name collectives have them carried out: as sends, receives and calculations. */
import { WeirError } from "../../base/error.js";
import type { CollectiveRequest } from "./collectives/request.js";
import type { GraphBuilder, Operation } from "./graph.js";

/**
 * Adds the operations of a collective. `after[i]`: operation of `ranks[i]` that its part waits for. Returns for each rank the
 * operation with which its part ends.
 */
export type ExpandCollective = (
  graph: GraphBuilder,
  request: CollectiveRequest,
  after: readonly (Operation | undefined)[],
) => Operation[];

/** One operation that ends when all of `operations` have: themselves if there is one, none if there is none. */
export function joined(graph: GraphBuilder, rank: number, operations: readonly Operation[]): Operation | undefined {
  if (operations.length <= 1) return operations[0];
  const joint = graph.calculate(rank, 0);
  for (const operation of operations) graph.requires(joint, operation);
  return joint;
}

/** Operations that files may grow to which only name what is to be done: they take some 2 GB. */
export const kMostExpanded = 50_000_000;

/** @throws WeirError if `graph`, together with so many `more` operations, would be larger than memory should have to hold. */
export function checkExpanded(graph: GraphBuilder, more: number): void {
  if (graph.operations + more > kMostExpanded)
    throw new WeirError(`${graph.source}: becomes more than ${kMostExpanded} operations, and no more are taken`, {
      hint: "fewer ranks, layers or collectives",
    });
}
