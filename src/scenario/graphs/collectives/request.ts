/** What is asked of a collective, and whether it can be. */
import { WeirError } from "../../../base/error.js";
import { kMostBytes, kMostRanks } from "../graph.js";
import type { kCollectiveAlgorithms, kCollectiveOperations } from "../job_schema.js";
import type { CheckedRequest } from "./layout.js";

export type CollectiveOperation = (typeof kCollectiveOperations)[number];
export type CollectiveAlgorithm = (typeof kCollectiveAlgorithms)[number];

/** Options that an algorithm has no use for change nothing. */
export interface CollectiveRequest {
  operation: CollectiveOperation;
  /** Ranks of the graph, each once; places of options and results are places in it. */
  ranks: readonly number[];
  /** Size as nccl-tests count it: bytes of the larger of a rank's buffers. Of a barrier, bytes of a message. */
  bytes: number;
  /** By default the first of algorithmsOf(). */
  algorithm?: CollectiveAlgorithm;
  /** Of a broadcast: which of `ranks`, as a place; 0 by default. */
  root?: number;
  /** The data is divided among so many, which proceed independently; 256 at most. By default `nics` of rings and trees, else 1. */
  channels?: number;
  /** Most bytes of a message: larger ones are cut, and follow each other as in a pipeline. By default there is no limit. */
  chunk?: number;
  /** Ranks of a node, those that follow each other: of tree, both two-level algorithms and pxn. 1 by default; divides all. */
  perNode?: number;
  /** NICs of a node, each on a rail of its own: of rings, trees and pxn. 1 by default; divides `perNode`. */
  nics?: number;
  /** Of all-to-all: steps that may be under way at a rank. By default all. */
  inFlight?: number;
  /** Of all-to-all: bytes from each rank to each, in place of `bytes`. */
  sizes?: readonly (readonly number[])[];
  /** Of rings: for each channel the places in `ranks` in the order of its ring. By default the order is that of `ranks`. */
  orders?: readonly (readonly number[])[];
}

const kMostChannels = 256;
const kWithNodes: readonly CollectiveAlgorithm[] = ["tree", "two-level-ring", "two-level-tree", "pxn"];
const kWithRails: readonly CollectiveAlgorithm[] = ["ring", "tree", "pxn"];
/** Those that divide their data among NICs by channels. */
const kByChannels: readonly CollectiveAlgorithm[] = ["ring", "tree"];

export function requestError(
  { operation }: CollectiveRequest,
  field: string,
  message: string,
  hint: string,
): WeirError {
  return new WeirError(`${operation}: ${field}: ${message}`, { field, hint });
}

/** Ranks become their places. @throws WeirError naming what is out of range. */
export function checkedShape(request: CollectiveRequest, algorithm: CollectiveAlgorithm): CheckedRequest {
  const { ranks, sizes, orders } = request;
  const whole = (field: string, value: number, least: number, most: number): number => {
    if (Number.isInteger(value) && value >= least && value <= most) return value;
    throw requestError(request, field, `${value}`, `a whole number from ${least} to ${most}`);
  };
  const count = whole("ranks", ranks.length, 1, kMostRanks);
  const twice = repeated(ranks);
  if (twice !== undefined) throw requestError(request, "ranks", `${twice} is there twice`, "each takes part once");
  const nics = kWithRails.includes(algorithm) ? whole("nics", request.nics ?? 1, 1, count) : 1;
  const withNodes = kWithNodes.includes(algorithm) || nics > 1;
  const shape = {
    ranks: count,
    bytes: whole("bytes", request.bytes, 0, kMostBytes),
    channels: whole("channels", request.channels ?? (kByChannels.includes(algorithm) ? nics : 1), 1, kMostChannels),
    chunk: request.chunk === undefined ? Number.POSITIVE_INFINITY : whole("chunk", request.chunk, 1, kMostBytes),
    root: whole("root", request.root ?? 0, 0, count - 1),
    perNode: withNodes ? whole("perNode", request.perNode ?? 1, 1, count) : 1,
    nics,
    inFlight: request.inFlight === undefined ? count : whole("inFlight", request.inFlight, 1, kMostRanks),
  };
  if (count % shape.perNode !== 0) {
    const hint = "all nodes have the same number of ranks";
    throw requestError(request, "perNode", `${shape.perNode} does not divide ${count} ranks`, hint);
  }
  if (shape.perNode % nics !== 0) {
    const hint = "each NIC has as many of a node's ranks";
    throw requestError(request, "nics", `${nics} do not divide ${shape.perNode} ranks of a node`, hint);
  }
  if (sizes !== undefined) checkSizes(request, sizes, whole);
  if (orders !== undefined) checkOrders(request, orders, shape.channels);
  return { ...shape, ...(sizes === undefined ? {} : { sizes }), ...(orders === undefined ? {} : { orders }) };
}

function checkSizes(
  request: CollectiveRequest,
  sizes: readonly (readonly number[])[],
  whole: (field: string, value: number, least: number, most: number) => number,
): void {
  const count = request.ranks.length;
  if (request.operation !== "alltoall") {
    throw requestError(
      request,
      "sizes",
      "are for alltoall",
      "leave them out: parts of others differ by a byte at most",
    );
  }
  const hint = `${count} rows of ${count} numbers: bytes from each rank to each`;
  if (sizes.length !== count) throw requestError(request, "sizes", `${sizes.length} rows`, hint);
  for (const [from, row] of sizes.entries()) {
    if (row.length !== count) throw requestError(request, `sizes.${from}`, `${row.length} numbers`, hint);
    for (const [to, size] of row.entries()) whole(`sizes.${from}.${to}`, size, 0, kMostBytes);
  }
}

function checkOrders(request: CollectiveRequest, orders: readonly (readonly number[])[], channels: number): void {
  const count = request.ranks.length;
  if (orders.length !== channels) {
    throw requestError(request, "orders", `${orders.length} for ${channels} channels`, "one for each channel");
  }
  for (const [channel, order] of orders.entries()) {
    const fits = order.length === count && order.every((at) => Number.isInteger(at) && at >= 0 && at < count);
    if (fits && repeated(order) === undefined) continue;
    throw requestError(
      request,
      `orders.${channel}`,
      "is no order of the ranks",
      `each place from 0 to ${count - 1} once`,
    );
  }
}

function repeated(numbers: readonly number[]): number | undefined {
  const known = new Set<number>();
  return numbers.find((number) => known.size === known.add(number).size);
}
