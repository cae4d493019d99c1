import type { MessageGraph } from "./graph.js";
export function readGraph(
  file: string,
  _options: { bytes?: number | undefined } = {},
): { graph: MessageGraph; notes: string[] } {
  throw new Error(file);
}
