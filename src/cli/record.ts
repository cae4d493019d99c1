/** `weir record`: runs a program on a NIC, and makes a message graph of what it sends and receives. */
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { makeFolder } from "../base/folder.js";
import { count } from "../result/report/format.js";
import { checkGraph } from "../scenario/graphs/check.js";
import { writeGoalText } from "../scenario/graphs/goal_text_writer.js";
import type { MessageGraph } from "../scenario/graphs/graph.js";
import { readRecordedGraph } from "../scenario/graphs/recorded.js";
import { type AddVerb, asUsage, type CliContext, kExit, UsageError, warn } from "./context.js";
import { chosenNics, folderOf, onNics, requireProgram } from "./run.js";
import { socketOption } from "./socket_option.js";

interface Choice {
  output: string;
  nic?: string[];
  socket?: string;
  from?: string;
}

const kHelp = `
Each process is a rank. Its messages are those of its queue pairs; what it does between them is calculation, for as long as it took, but for
the time in which it looked for completions and found none. What cannot be seen is told: memory that the program looks at by itself after
an RDMA WRITE, datagrams, and what processes of one host tell each other otherwise.

Programs that are started apart record into one folder, and --from makes a graph of all:
  WEIR_RECORD=rec weir run --nic roce0 -- ib_write_bw        on one host; rec exists
  WEIR_RECORD=rec weir run --nic roce1 -- ib_write_bw HOST   on the other
  weir record -o perf.goal --from rec

Examples:
  weir record -o app.goal -- mpirun -n 4 app
  weir sim run app.goal --fabric examples/collectives/fat-tree-64.yaml
`;

export const addRecord: AddVerb = (parent, context, done) => {
  parent
    .command("record")
    .description("run an RDMA program as weir run does, and make a message graph of its messages")
    .argument("[program]", "program, with its arguments behind it")
    .argument("[args...]")
    .requiredOption("-o, --output <file>", "GOAL file to write")
    .option("--nic <name...>", "only these NICs; default: all that serve programs")
    .addOption(socketOption().conflicts("nic"))
    .option("--from <folder>", "of programs that were started with WEIR_RECORD=FOLDER: runs nothing")
    .passThroughOptions()
    .addHelpText("after", kHelp)
    .action(async (program: string | undefined, args: string[], choice: Choice) =>
      done(await record(context, program, args, choice)),
    );
};

async function record(
  context: CliContext,
  program: string | undefined,
  args: readonly string[],
  choice: Choice,
): Promise<number> {
  const { output, from } = choice;
  if ((from === undefined) === (program === undefined)) {
    throw new UsageError(from === undefined ? "no program to run" : "--from runs nothing", {
      hint: "weir record -o FILE -- PROGRAM, or weir record -o FILE --from FOLDER",
    });
  }
  if (from !== undefined) {
    write(context, from, output);
    return kExit.ok;
  }
  const { nic = [], socket } = choice;
  requireProgram(program as string);
  const folder = mkdtempSync(join(tmpdir(), "weir-record-"));
  try {
    const command = [program as string, ...args];
    const environment = { WEIR_RECORD: folder };
    const status = await onNics(context, command, chosenNics(nic, socket), folderOf(socket), environment);
    write(context, folder, output);
    return status;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function write(context: CliContext, folder: string, output: string): void {
  const graph = asUsage(() => {
    const { graph, notes } = readRecordedGraph(folder);
    for (const note of notes) warn(context, note);
    checkGraph(graph);
    return graph;
  });
  makeFolder(resolve(output, ".."));
  const file = openSync(output, "w");
  try {
    writeGoalText(graph, (text) => void writeSync(file, text));
  } finally {
    closeSync(file);
  }
  context.stderr.write(`${output}: ${said(graph)}\n`);
}

const said = ({ ranks, kind }: MessageGraph) => `${ranks} ranks, ${count(kind.length)} operations`;
