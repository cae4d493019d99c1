/** `weir graph`: looks at message graphs, and writes them as GOAL. */
import { closeSync, openSync, writeSync } from "node:fs";
import { formatSize, formatTime } from "../base/units.js";
import { count } from "../result/report/format.js";
import type { Grid } from "../result/report/grid.js";
import { drawGrid } from "../result/report/table.js";
import { harmless } from "../result/report/terminal.js";
import { checkGraph } from "../scenario/graphs/check.js";
import { anyGraph } from "../scenario/graphs/entries.js";
import { writeGoalText } from "../scenario/graphs/goal_text_writer.js";
import type { MessageGraph } from "../scenario/graphs/graph.js";
import { type GraphSummary, summarize } from "../scenario/graphs/summary.js";
import { type AddVerb, asUsage, type CliContext, kExit, print, warn } from "./context.js";
import { withReading } from "./graph_options.js";

interface Choice {
  json?: boolean;
  ranks?: number;
  size?: number;
  output?: string;
}

const kFormats = `
Reads GOAL (text and binary), Chakra traces (NAME.0.et, with those of the other ranks beside it), workloads of AICB and SimAI, algorithms of
MSCCL, connection matrices of htsim, and YAML of our own (docs/reference/graphs.md). Each is checked: cycles, messages that nobody sends
or receives, ranks that there are not.
`;

export const addGraph: AddVerb = (parent, context, done) => {
  const graph = parent.command("graph").description("look at message graphs, and convert them");
  withReading(graph.command("show"))
    .description("operations, bytes, depth and critical path of a message graph")
    .argument("<file>", "message graph")
    .option("--json", "one JSON document on stdout")
    .addHelpText("after", kFormats)
    .action((file: string, choice: Choice) => {
      const summary = summarize(open(context, file, choice));
      print(context, choice.json, { source: file, ...summary }, (color) => textOf(summary, color));
      done(kExit.ok);
    });
  withReading(graph.command("convert"))
    .description("write a message graph as GOAL text, which LogGOPSim and ATLAHS read, too")
    .argument("<file>", "message graph, of any format")
    .option("-o, --output <file>", "file to write (default: stdout)")
    .addHelpText("after", kFormats)
    .action((file: string, choice: Choice) => {
      write(context, open(context, file, choice), choice.output);
      done(kExit.ok);
    });
};

function open(context: CliContext, file: string, { ranks, size }: Choice): MessageGraph {
  return asUsage(() => {
    const { graph, notes } = anyGraph(file, { ranks, size });
    for (const note of notes) warn(context, harmless(note));
    checkGraph(graph);
    return graph;
  });
}

function write(context: CliContext, graph: MessageGraph, output: string | undefined): void {
  if (output === undefined) {
    writeGoalText(graph, (text) => void context.stdout.write(text));
    return;
  }
  const file = openSync(output, "w");
  try {
    writeGoalText(graph, (text) => void writeSync(file, text));
  } finally {
    closeSync(file);
  }
}

function textOf(summary: GraphSummary, color: boolean): string {
  const { most } = summary;
  const facts: string[][] = [
    ["ranks", String(summary.ranks), ""],
    ["operations", count(summary.operations), `${count(most.operations.value)} (rank ${most.operations.rank})`],
    ["sends", count(summary.sends), ""],
    ["receives", count(summary.receives), ""],
    ["calculations", count(summary.calculations), ""],
    ["dependencies", count(summary.dependencies), ""],
    ["bytes sent", formatSize(summary.bytes, 4), `${formatSize(most.bytes.value, 4)} (rank ${most.bytes.rank})`],
    [
      "calculation",
      formatTime(summary.calculation, 4),
      `${formatTime(most.calculation.value, 4)} (rank ${most.calculation.rank})`,
    ],
    ["longest chain, operations", count(summary.depth), ""],
    ["critical path, calculations alone", formatTime(summary.criticalCalculation, 4), ""],
  ];
  const grids: Grid[] = [
    { title: "Message graph", head: ["", "all", "most of a rank"], names: 1, rows: facts },
    {
      title: "Phases",
      head: ["phase", "operations", "bytes sent", "calculation"],
      names: 1,
      rows: summary.phases.map(({ name, operations, bytes, calculation }) => [
        harmless(name) || "(none)",
        count(operations),
        formatSize(bytes, 4),
        formatTime(calculation, 4),
      ]),
    },
  ];
  return grids
    .filter(({ rows }) => rows.length > 0)
    .map((grid) => drawGrid(grid, color))
    .join("\n");
}
