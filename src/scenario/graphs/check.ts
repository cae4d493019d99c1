/** Finds what can never end in a message graph, before anything is run. */
import { WeirError } from "../../base/error.js";
import { kAny, kSend, kStartOnly, type MessageGraph, type Operation, operationName } from "./graph.js";
import { forEachChannel, forEachReceiver, kNone, messagesByChannel, ranksOf } from "./match.js";
import { startOrder } from "./order.js";

const kMostOfACircle = 4;

/** Problems of one kind: the first is told, and how many more there are. */
class Findings {
  private readonly first = new Map<string, { message: string; more: number }>();

  add(kind: string, message: () => string, count = 1): void {
    const known = this.first.get(kind);
    if (known === undefined) this.first.set(kind, { message: message(), more: count - 1 });
    else known.more += count;
  }

  throwIfAny(source: string): void {
    const told = [...this.first].map(([kind, { message, more }]) =>
      more === 0 ? message : `${message}; and ${more} more of this kind (${kind})`,
    );
    const [first] = told;
    if (first === undefined) return;
    const text = told.length === 1 ? ` ${first}` : ` ${told.length} kinds of problems\n  ${told.join("\n  ")}`;
    throw new WeirError(`${source}:${text}`);
  }
}

/**
 * Throws WeirError, with the first of each kind of problem and the number of others: an operation that waits for itself or for one
 * of another rank; messages without a counterpart; receives that are smaller than their send, which MPI calls truncation (MPI 4.1,
 * section 3.2.4); and circles of operations of which each waits for the next, over dependencies and over messages.
 */
export function checkGraph(graph: MessageGraph): void {
  const findings = new Findings();
  checkDependencies(graph, findings);
  findings.throwIfAny(graph.source);
  const partner = checkMessages(graph, findings);
  const { circle } = startOrder(graph, partner);
  if (circle !== undefined) findings.add("circles", () => circleText(graph, circle));
  findings.throwIfAny(graph.source);
}

function checkDependencies(graph: MessageGraph, findings: Findings): void {
  for (let rank = 0; rank < graph.ranks; rank++) {
    const begin = graph.first[rank] as number;
    const end = graph.first[rank + 1] as number;
    for (let i = begin; i < end; i++) {
      for (let d = graph.firstDependency[i] as number; d < (graph.firstDependency[i + 1] as number); d++) {
        const awaited = (graph.dependencies[d] as number) & (kStartOnly - 1);
        if (awaited === i)
          findings.add("operations that wait for themselves", () => `${operationName(graph, i)} waits for itself`);
        else if (awaited < begin || awaited >= end)
          findings.add(
            "dependencies between ranks",
            () => `${operationName(graph, i)} waits for an operation of another rank: ${operationName(graph, awaited)}`,
          );
      }
    }
  }
}

/** Returns what partners() does. */
function checkMessages(graph: MessageGraph, findings: Findings): Uint32Array {
  const ranks = ranksOf(graph);
  const order = messagesByChannel(graph, ranks);
  const partner = new Uint32Array(graph.kind.length).fill(kNone);
  const untaken: Unmatched = (send, count, why) =>
    findings.add(
      "sends that no receive takes",
      () => `${operationName(graph, send)}, ${tagText(graph, send)}: ${why()}`,
      count,
    );
  const unfed: Unmatched = (receive, count, why) =>
    findings.add(
      "receives that no send is for",
      () => `${operationName(graph, receive)}, ${tagText(graph, receive)}: ${why()}`,
      count,
    );
  forEachReceiver(graph, ranks, order, (begin, end, any) => {
    if (any) checkTotals(graph, order.subarray(begin, end), untaken, unfed);
    forEachChannel(graph, ranks, order, begin, end, ({ messages, firstSend, sends, firstReceive, receives }) => {
      const numbers = () => `${sends} sends, ${receives} receives of this sender, receiver and tag`;
      if (receives > sends) {
        const receive = messages[firstReceive + sends] as number;
        const takesAny = graph.peer[receive] === kAny || graph.tag[receive] === kAny;
        if (!takesAny) unfed(receive, receives - sends, numbers);
      }
      if (any) return;
      if (sends > receives) untaken(messages[firstSend + receives] as number, sends - receives, numbers);
      for (let n = 0; n < Math.min(sends, receives); n++) {
        const send = messages[firstSend + n] as number;
        const receive = messages[firstReceive + n] as number;
        partner[send] = receive;
        partner[receive] = send;
        if ((graph.size[receive] as number) < (graph.size[send] as number))
          findings.add("receives that are smaller than their send", () => truncated(graph, send, receive));
      }
    });
  });
  return partner;
}

const tagText = (graph: MessageGraph, i: Operation) => (graph.tag[i] === kAny ? "any tag" : `tag ${graph.tag[i]}`);

const truncated = (graph: MessageGraph, send: Operation, receive: Operation) =>
  `${operationName(graph, receive)}, ${tagText(graph, receive)}: takes ${graph.size[receive]} bytes, ` +
  `but ${operationName(graph, send)} has ${graph.size[send]}`;

/** The first without a counterpart, and how many there are. */
type Unmatched = (first: Operation, count: number, why: () => string) => void;

/** Where a receive takes anything, only the numbers of a rank must agree. */
function checkTotals(graph: MessageGraph, messages: Uint32Array, untaken: Unmatched, unfed: Unmatched): void {
  const sends = messages.filter((i) => graph.kind[i] === kSend);
  const receives = messages.filter((i) => graph.kind[i] !== kSend);
  const excess = sends.length - receives.length;
  const why = () => `${sends.length} sends to this rank, which has ${receives.length} receives`;
  if (excess > 0) untaken(sends[receives.length] as number, excess, why);
  if (excess < 0) unfed(receives[sends.length] as number, -excess, why);
}

function circleText(graph: MessageGraph, circle: readonly Operation[]): string {
  const shown = circle.slice(0, kMostOfACircle).map((i) => operationName(graph, i));
  const rest = circle.length - shown.length;
  const back = rest > 0 ? `and so on over ${rest} more and back to the first` : "waits for the first of these";
  return `operations wait for each other: ${shown.join(", waits for ")}, ${back}`;
}
