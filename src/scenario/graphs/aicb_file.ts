/** Text of workloads that AICB generates for SimAI: a header of the parallelism, the number of layers, and a row for each. */
import { WeirError } from "../../base/error.js";
import type { CollectiveOperation } from "./collectives/request.js";
import { kMostBytes, kMostNanoseconds } from "./graph.js";
import { type Line, shownWord, wholeNumber, wordsByLine } from "./source_text.js";

/** Which ranks take part: those of one tensor, data or expert group, or of the data group of experts. */
export type GroupKind = "TP" | "DP" | "EP" | "DP_EP";
export type Phase = "forward" | "inputGradient" | "weightGradient";
export const kPhases: readonly Phase[] = ["forward", "inputGradient", "weightGradient"];

export interface LayerPhase {
  /** Calculation before the collective, ns. */
  calculation: number;
  collective: { operation: CollectiveOperation; group: GroupKind; bytes: number } | undefined;
}

export interface Layer {
  name: string;
  line: number;
  phases: Record<Phase, LayerPhase>;
  /** Update after each of the layer's collectives, ns. */
  update: number;
}

export interface AicbWorkload {
  /** An iteration over all layers, or, for MICRO, their weight-gradient collectives one after another. */
  policy: "HYBRID_TRANSFORMER_FWD_IN_BCKWD" | "MICRO";
  /** Ranks of a group, from the header; undefined where it does not say. */
  tensor: number;
  expert: number;
  pipeline: number;
  gpus: number | undefined;
  layers: Layer[];
  /** What the file has and nobody runs. */
  left: Set<string>;
}

const kPolicies = ["HYBRID_TRANSFORMER_FWD_IN_BCKWD", "MICRO"] as const;
const kKinds: Readonly<Record<string, CollectiveOperation>> = {
  ALLREDUCE: "allreduce",
  ALLGATHER: "allgather",
  REDUCESCATTER: "reducescatter",
  ALLTOALL: "alltoall",
};
/** Name, an unused number, three phases of three, and the update. */
const kColumns = 12;

/** @throws WeirError with file and line. */
export function parseAicb(file: string, text: string): AicbWorkload {
  const lines = wordsByLine(text);
  const header = lines.next();
  const count = lines.next();
  if (header.done || count.done) throw new WeirError(`${file}: ends before its first layer`);
  const workload = parseHeader(file, header.value);
  const where = `${file}:${count.value.number}`;
  const expected = wholeNumber(count.value.words[0], "number of layers", where);
  for (const line of lines) {
    // SimAI reads as many as the file says.
    if (workload.layers.length === expected) {
      workload.left.add(`rows behind the ${expected} that the file says it has are left out`);
      break;
    }
    workload.layers.push(parseLayer(file, line, workload.left));
  }
  if (workload.layers.length < expected)
    throw new WeirError(`${where}: says ${expected} layers, but there are ${workload.layers.length}`);
  return workload;
}

function parseHeader(file: string, { number: line, words }: Line): AicbWorkload {
  const where = `${file}:${line}`;
  const policy = kPolicies.find((name) => name === words[0]);
  if (policy === undefined)
    throw new WeirError(`${where}: ${shownWord(words[0])} is not read as a kind of parallelism`, {
      hint: `those that are: ${kPolicies.join(", ")}`,
    });
  const numberAfter = (name: string) => {
    const at = words.indexOf(name);
    return at < 0 ? undefined : wholeNumber(words[at + 1], name, where);
  };
  for (const name of ["checkpoints:", "checkpoint_initiates:"]) {
    if ((numberAfter(name) ?? 0) > 0)
      throw new WeirError(`${where}: ${name} layers that are calculated again in the backward pass are not read`);
  }
  const atLeastOne = (name: string) => {
    const value = numberAfter(name) ?? 1;
    if (value < 1) throw new WeirError(`${where}: ${name} ${value}: must be at least 1`);
    return value;
  };
  const left = new Set<string>();
  const pipeline = atLeastOne("pp:");
  if (pipeline > 1)
    left.add(
      `stages of the pipeline (pp: ${pipeline}) are left out, as SimAI does where it runs packets: all ranks run all layers`,
    );
  return {
    policy,
    tensor: atLeastOne("model_parallel_NPU_group:"),
    expert: atLeastOne("ep:"),
    pipeline,
    gpus: numberAfter("all_gpus:"),
    layers: [],
    left,
  };
}

function parseLayer(file: string, { number: line, words }: Line, left: Set<string>): Layer {
  const where = `${file}:${line}`;
  if (words.length !== kColumns)
    throw new WeirError(
      `${where}: has ${words.length} columns; a layer has ${kColumns}: name, a number, and three times ns, collective, bytes; ns`,
    );
  const ns = (at: number) => bounded(words[at], "ns", kMostNanoseconds, where);
  const phaseAt = (phase: Phase, at: number): LayerPhase => ({
    calculation: ns(at),
    collective: parseCollective(
      phase,
      words[at + 1] as string,
      bounded(words[at + 2], "bytes", kMostBytes, where),
      where,
      left,
    ),
  });
  return {
    name: shownWord(words[0]),
    line,
    phases: {
      forward: phaseAt("forward", 2),
      inputGradient: phaseAt("inputGradient", 5),
      weightGradient: phaseAt("weightGradient", 8),
    },
    update: ns(11),
  };
}

function bounded(word: string | undefined, what: string, most: number, where: string): number {
  const value = wholeNumber(word, what, where);
  if (value > most) throw new WeirError(`${where}: ${value} ${what}: at most ${most} are possible`);
  return value;
}

function parseCollective(
  phase: Phase,
  word: string,
  bytes: number,
  where: string,
  left: Set<string>,
): LayerPhase["collective"] {
  if (word === "NONE") return undefined;
  if (word === "BROADCAST") {
    left.add("BROADCAST is left out, as SimAI does");
    return undefined;
  }
  const [, name = "", suffix] = /^([A-Z]+?)(?:_(EP|DP_EP))?$/.exec(word) ?? [];
  const operation = Object.hasOwn(kKinds, name) ? kKinds[name] : undefined;
  if (operation === undefined)
    throw new WeirError(`${where}: ${shownWord(word)} is not read as a collective`, {
      hint: `those that are: NONE, ${Object.keys(kKinds).join(", ")}, each also with _EP and _DP_EP`,
    });
  const group = (suffix as GroupKind | undefined) ?? (phase === "weightGradient" ? "DP" : "TP");
  return bytes === 0 ? undefined : { operation, group, bytes };
}
