/** Writes a message graph as GOAL text, which LogGOPSim's txt2bin reads as well. */
import { kAny, kCalculate, kSend, kStartOnly, type MessageGraph, type Operation } from "./graph.js";

/** Text that goes to the sink at once, in characters. */
const kPiece = 1 << 16;

/** Calls `sink` with one piece of text after another. Phases and lines of the source are left out: GOAL has none. */
export function writeGoalText(graph: MessageGraph, sink: (text: string) => void): void {
  let text = `num_ranks ${graph.ranks}\n`;
  for (let rank = 0; rank < graph.ranks; rank++) {
    const first = graph.first[rank] as number;
    const end = graph.first[rank + 1] as number;
    text += `\nrank ${rank} {\n`;
    const later: Operation[] = [];
    for (let i = first; i < end; i++) {
      text += `l${i - first + 1}: ${operationText(graph, i)}\n`;
      if (waitsForLater(graph, i)) later.push(i);
      else text += dependenciesText(graph, i, first);
      if (text.length > kPiece) {
        sink(text);
        text = "";
      }
    }
    // txt2bin knows only labels that it has read.
    for (const i of later) text += dependenciesText(graph, i, first);
    text += "}\n";
  }
  sink(text);
}

function operationText(graph: MessageGraph, i: Operation): string {
  const processor = graph.processor[i] === 0 ? "" : ` cpu ${graph.processor[i]}`;
  if (graph.kind[i] === kCalculate) return `calc ${graph.size[i]}${processor}`;
  const [verb, preposition] = graph.kind[i] === kSend ? ["send", "to"] : ["recv", "from"];
  const peer = graph.peer[i] === kAny ? -1 : graph.peer[i];
  const tag = graph.tag[i] === kAny ? -1 : graph.tag[i];
  return `${verb} ${graph.size[i]}b ${preposition} ${peer} tag ${tag}${processor}`;
}

function waitsForLater(graph: MessageGraph, i: Operation): boolean {
  for (let d = graph.firstDependency[i] as number; d < (graph.firstDependency[i + 1] as number); d++) {
    if ((graph.dependencies[d] as number) % kStartOnly > i) return true;
  }
  return false;
}

function dependenciesText(graph: MessageGraph, i: Operation, first: Operation): string {
  let text = "";
  for (let d = graph.firstDependency[i] as number; d < (graph.firstDependency[i + 1] as number); d++) {
    const entry = graph.dependencies[d] as number;
    const verb = entry >= kStartOnly ? "irequires" : "requires";
    text += `l${i - first + 1} ${verb} l${(entry % kStartOnly) - first + 1}\n`;
  }
  return text;
}
