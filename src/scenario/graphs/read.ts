/** Reads a message graph, in whichever of the formats a file has. */
import { closeSync, openSync, readSync } from "node:fs";
import { basename, extname } from "node:path";
import { fileReason, UnreadableFile, WeirError } from "../../base/error.js";
import { readAicb } from "./aicb.js";
import { readChakra } from "./chakra.js";
import type { ExpandCollective } from "./expand.js";
import { isGoalBinary, readGoalBinary } from "./goal_binary.js";
import { readGoalText } from "./goal_text.js";
import type { MessageGraph } from "./graph.js";
import { readConnectionMatrix } from "./htsim.js";
import { readOwnGraph } from "./own.js";

export interface ReadOptions {
  /** Carries out collectives. */
  expand: ExpandCollective;
  /** Reads MSCCL's XML. */
  readMsccl?: ((file: string) => MessageGraph) | undefined;
  /** Number of ranks, for workloads of AICB that do not say. */
  ranks?: number | undefined;
}

export interface ReadGraph {
  graph: MessageGraph;
  /** What the file has and the graph has not, in words. */
  notes: string[];
}

/** Enough to tell formats apart. */
const kHead = 4096;

interface Format {
  name: string;
  /** How names of such files end; the first bytes decide where several have the same. */
  endings: readonly string[];
  /** Whether a file that begins so is one, whatever its name is. */
  begins: (head: Buffer) => boolean;
  read: (file: string, options: ReadOptions, notes: string[]) => MessageGraph;
}

const word = (pattern: RegExp) => (head: Buffer) => pattern.test(head.toString("latin1"));

const kFormats: readonly Format[] = [
  {
    name: "binary GOAL",
    endings: [".bin", ".goal"],
    begins: isGoalBinary,
    read: (file, _, notes) => readGoalBinary(file, notes),
  },
  {
    name: "GOAL text",
    endings: [".goal"],
    begins: word(/^(\s|\/\/[^\n]*\n)*num_ranks\b/),
    read: (file, _, notes) => readGoalText(file, undefined, notes),
  },
  {
    name: "htsim connection matrix",
    endings: [".cm"],
    begins: word(/^(\s|#[^\n]*\n)*Nodes \d/),
    read: (file, _, notes) => readConnectionMatrix(file, undefined, notes),
  },
  {
    name: "AICB workload",
    endings: [".txt"],
    begins: word(/^(HYBRID_[A-Z_]+|MICRO)\s/),
    read: (file, { expand, ranks }, notes) => readAicb(file, expand, { ranks }, undefined, notes),
  },
  {
    name: "MSCCL algorithm",
    endings: [".xml"],
    begins: word(/^\s*(<\?xml[^>]*>\s*)?<algo\s/),
    read: (file, { readMsccl }) => {
      if (readMsccl === undefined) throw new WeirError(`${file}: MSCCL algorithms cannot be read here`);
      return readMsccl(file);
    },
  },
  {
    name: "Chakra trace",
    endings: [".et"],
    begins: () => false,
    read: (file, { expand }, notes) => readChakra(file, expand, notes),
  },
  {
    name: "message graph of Weir's own",
    endings: [".yaml", ".yml"],
    begins: () => false,
    read: (file, { expand }) => readOwnGraph(file, expand),
  },
];

/** The format of a file, by its first bytes, or else by its name. @throws WeirError with the list of formats. */
function formatOf(file: string, head: Buffer): Format {
  const byContent = kFormats.find(({ begins }) => begins(head));
  const ending = extname(basename(file)).toLowerCase();
  const format = byContent ?? kFormats.findLast(({ endings }) => endings.includes(ending));
  if (format !== undefined) return format;
  const list = kFormats.map(({ name, endings }) => `${name} (${endings.join(", ")})`).join(", ");
  throw new WeirError(`${file}: is no message graph that is known`, { hint: `there are: ${list}` });
}

/** @throws WeirError; UnreadableFile if the file cannot be read. */
export function readGraph(file: string, options: ReadOptions): ReadGraph {
  const notes: string[] = [];
  return { graph: formatOf(file, headOf(file)).read(file, options, notes), notes };
}

function headOf(file: string): Buffer {
  const head = Buffer.alloc(kHead);
  try {
    const descriptor = openSync(file, "r");
    try {
      return head.subarray(0, readSync(descriptor, head, 0, kHead, 0));
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    throw new UnreadableFile(`${file}: ${fileReason(error) ?? (error as Error).message}`, {
      field: "file",
      cause: error,
    });
  }
}
