import { describe, expect, it } from "vitest";
import { readAicb } from "../../../src/scenario/graphs/aicb.js";
import { checkGraph } from "../../../src/scenario/graphs/check.js";
import type { CollectiveRequest } from "../../../src/scenario/graphs/collectives/request.js";
import type { ExpandCollective } from "../../../src/scenario/graphs/expand.js";
import { joined } from "../../../src/scenario/graphs/expand.js";
import { refusal, words } from "./graphs.js";

const kHeader =
  "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 all_gpus: 8 checkpoints: 0";
const workload = (rows: readonly string[], header = kHeader) => `${header}\n${rows.length}\n${rows.join("\n")}\n`;
const row = (forward: string, input: string, weight: string, update = 0) =>
  `layer -1 ${forward} ${input} ${weight} ${update}`;

/** Reads with collectives that take no messages; returns what was asked for as well. */
function load(text: string, ranks?: number) {
  const requests: CollectiveRequest[] = [];
  const expand: ExpandCollective = (graph, request, after) => {
    requests.push(request);
    return request.ranks.map((rank, i) => {
      const part = graph.calculate(rank, 1000 * requests.length);
      const earlier = after[i];
      if (earlier !== undefined) graph.requires(part, earlier);
      return joined(graph, rank, [part]) as number;
    });
  };
  const notes: string[] = [];
  const graph = readAicb("w.txt", expand, { ranks }, text, notes);
  checkGraph(graph);
  return { graph, requests, notes };
}
const refused = (text: string, ranks?: number) => refusal(() => load(text, ranks));

describe("workloads of AICB", () => {
  it("go forward, backward from the last layer, and end with the weight gradients", () => {
    const { graph, requests } = load(
      workload([
        row("10 ALLREDUCE 8192", "20 NONE 0", "30 ALLREDUCE 64", 5),
        row("11 NONE 0", "21 ALLREDUCE 32", "31 NONE 0", 6),
      ]),
    );
    // Four tensor groups forward (1-4) and back (5-8), then two data groups (9-10).
    expect(requests.map(({ operation, ranks, bytes }) => `${operation} ${bytes} ${ranks}`)).toEqual([
      ...["0,1", "2,3", "4,5", "6,7"].map((ranks) => `allreduce 8192 ${ranks}`),
      ...["0,1", "2,3", "4,5", "6,7"].map((ranks) => `allreduce 32 ${ranks}`),
      "allreduce 64 0,2,4,6",
      "allreduce 64 1,3,5,7",
    ]);
    expect(words(graph)[0]).toEqual([
      "calculate 10",
      "calculate 1000 after 0",
      "calculate 5 after 1",
      "calculate 11 after 2",
      "calculate 21 after 3",
      "calculate 5000 after 4",
      "calculate 6 after 5",
      "calculate 31 after 6",
      "calculate 20 after 7",
      "calculate 30 after 8",
      "calculate 9000 after 9",
      "calculate 5 on 1 after 10",
      "calculate 0 after 9, 11",
    ]);
    expect(graph.phases).toEqual(["", "forward", "input gradient", "weight gradient"]);
    expect([...graph.phase.subarray(0, 13)]).toEqual([1, 1, 1, 1, 2, 2, 2, 3, 2, 3, 3, 3, 0]);
    expect([...graph.line.subarray(0, 5)]).toEqual([3, 0, 3, 4, 4]);
  });

  it("leave weight gradients beside what is calculated next", () => {
    const { graph } = load(
      workload([row("0 NONE 0", "7 NONE 0", "0 NONE 0"), row("0 NONE 0", "0 NONE 0", "9 ALLGATHER 64")]),
    );
    expect(words(graph)[0]).toEqual([
      "calculate 9",
      "calculate 1000 after 0",
      "calculate 7 after 0",
      "calculate 0 after 2, 1",
    ]);
  });

  it("have groups of tensors, experts and data as SimAI divides them", () => {
    const groups = (kind: string, phase: "forward" | "weight") => {
      const none = "0 NONE 0";
      const text = phase === "forward" ? row(`0 ${kind} 4096`, none, none) : row(none, none, `0 ${kind} 4096`);
      return load(workload([text])).requests.map(({ operation, ranks }) => `${operation} ${ranks}`);
    };
    expect(groups("ALLTOALL", "forward")).toEqual(["0,1", "2,3", "4,5", "6,7"].map((ranks) => `alltoall ${ranks}`));
    expect(groups("ALLTOALL_EP", "forward")).toEqual(["0,2", "1,3", "4,6", "5,7"].map((ranks) => `alltoall ${ranks}`));
    expect(groups("REDUCESCATTER_DP_EP", "weight")).toEqual(
      ["0,4", "1,5", "2,6", "3,7"].map((ranks) => `reducescatter ${ranks}`),
    );
    expect(groups("ALLGATHER", "weight")).toEqual(["allgather 0,2,4,6", "allgather 1,3,5,7"]);
  });

  it("make small messages of the forward pass as large as SimAI does, and no others", () => {
    const { requests } = load(workload([row("0 ALLREDUCE 4", "0 ALLREDUCE 4", "0 ALLREDUCE 0")]));
    expect(requests.map(({ bytes }) => bytes)).toEqual([4096, 4096, 4096, 4096, 4, 4, 4, 4]);
  });

  it("have no collective of a group of one", () => {
    const header =
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD\tmodel_parallel_NPU_group: 1 checkpoints: 0 checkpoint_initiates: 0";
    const { graph, requests } = load(workload([row("1 ALLREDUCE 8", "1 ALLREDUCE_EP 8", "1 ALLREDUCE 8")], header), 2);
    expect(requests.map(({ ranks }) => ranks)).toEqual([[0, 1]]);
    expect(graph.ranks).toBe(2);
  });

  it("of one collective after the other go over all ranks", () => {
    const { graph, requests } = load(
      workload([row("1 NONE 0", "1 NONE 0", "1 ALLREDUCE 8", 1), row("1 NONE 0", "1 NONE 0", "2 ALLTOALL 9")], "MICRO"),
      3,
    );
    expect(requests.map(({ operation, ranks }) => `${operation} ${ranks}`)).toEqual([
      "allreduce 0,1,2",
      "alltoall 0,1,2",
    ]);
    expect(words(graph)[2]).toEqual([
      "calculate 1",
      "calculate 1000 after 0",
      "calculate 1 after 1",
      "calculate 2 after 2",
      "calculate 2000 after 3",
    ]);
  });

  it("say what is left out", () => {
    const text = workload([row("1 BROADCAST 8", "1 NONE 0", "1 NONE 0")], kHeader.replace("pp: 1", "pp: 4"));
    expect(load(`${text}layer\n`).notes).toEqual([
      "stages of the pipeline (pp: 4) are left out, as SimAI does where it runs packets: all ranks run all layers",
      "BROADCAST is left out, as SimAI does",
      "rows behind the 1 that the file says it has are left out",
    ]);
  });

  const plain = row("1 NONE 0", "1 NONE 0", "1 NONE 0");
  it.each([
    ["", "w.txt: ends before its first layer"],
    ["DLRM x\n1\n", "w.txt:1: DLRM is not read as a kind of parallelism"],
    [`${kHeader}\nmany\n`, "w.txt:2: number of layers: many is no whole number"],
    [`${kHeader}\n2\n${plain}\n`, "w.txt:2: says 2 layers, but there are 1"],
    [workload([`${plain} 7`]), "w.txt:3: has 13 columns"],
    [workload([row("1 SING 0", "1 NONE 0", "1 NONE 0")]), "w.txt:3: SING is not read as a collective"],
    [workload([row("1 ALLREDUCE_TP 1", "1 NONE 0", "1 NONE 0")]), "w.txt:3: ALLREDUCE_TP is not read as a collective"],
    [workload([row("1 constructor 1", "1 NONE 0", "1 NONE 0")]), "w.txt:3: constructor is not read as a collective"],
    [workload([row("x NONE 0", "1 NONE 0", "1 NONE 0")]), "w.txt:3: ns: x is no whole number"],
    [workload([row("2000000000000000 NONE 0", "1 NONE 0", "1 NONE 0")]), "w.txt:3: 2000000000000000 ns: at most"],
    [workload([plain], kHeader.replace("ep: 2", "ep: 0")), "w.txt:1: ep: 0: must be at least 1"],
    [
      workload([plain], kHeader.replace("ep: 2", "ep: 3")),
      "w.txt: 8 ranks are no multiple of model_parallel_NPU_group: 2",
    ],
    [workload([plain], kHeader.replace("checkpoints: 0", "checkpoints: 1 0")), "w.txt:1: checkpoints: layers that are"],
    [workload([plain], kHeader.replace("all_gpus: 8", "")), "w.txt: the header has no all_gpus"],
    [workload([plain], kHeader.replace("all_gpus: 8", "all_gpus: 400000000")), "w.txt: 400000000 ranks"],
  ])("are refused: %j", (text, message) => {
    expect(refused(text)).toContain(message);
  });

  it("are refused where the header has another number of ranks", () => {
    expect(refused(workload([plain]), 16)).toContain("all_gpus: 8 is not the number of ranks that is asked for, 16");
  });
});
