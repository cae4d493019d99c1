/** How readers of formats that name collectives have them carried out: as sends, receives and calculations. */
import { WeirError } from "../../base/error.js";
import { algorithmsOf } from "./collectives/add.js";
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

/** Operations that files may grow to which only name what is to be done: some 1 GB, and while they are made up to twice that. */
export const kMostExpanded = 20_000_000;
/** How often one of them may wait for another: 16 bytes each. */
export const kMostAwaited = 2 * kMostExpanded;

/**
 * Asked before they are added. @throws WeirError if `graph`, together with so many `more` operations, or dependencies, would be
 * larger than memory should have to hold.
 */
export function checkExpanded(graph: GraphBuilder, more: number, dependencies = 0): void {
  const over = (count: number, most: number, what: string) => {
    if (count <= most) return;
    throw new WeirError(`${graph.source}: becomes more than ${most} ${what}, and no more are taken`, {
      hint: "fewer ranks, layers or collectives",
    });
  };
  over(graph.operations + more, kMostExpanded, "operations");
  over(graph.dependencies + dependencies, kMostAwaited, "dependencies");
}

/** Algorithms by which each rank has a message for each of the others, or n - 1 for the next; but for broadcasts. */
const kQuadratic: ReadonlySet<string> = new Set(["ring", "direct"]);

/** Operations that a collective becomes at least: its messages, each a send and a receive, and the end of each rank's part. */
export function leastOperations({
  operation,
  ranks: { length: ranks },
  bytes,
  algorithm = algorithmsOf(operation)[0],
}: Pick<CollectiveRequest, "operation" | "bytes" | "algorithm"> & { ranks: { length: number } }): number {
  const others = ranks - 1;
  let messages = others;
  if (operation === "alltoall") messages = ranks * Math.max(0, Math.min(others, bytes - 1));
  else if (operation !== "broadcast" && kQuadratic.has(algorithm ?? "")) messages = ranks * others;
  return 2 * (operation === "allreduce" ? 2 : 1) * messages + ranks;
}
