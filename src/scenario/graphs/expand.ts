/** How readers of formats that name collectives have them carried out: as sends, receives and calculations. */
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
