import { describe, expect, it } from "vitest";
import { WeirError } from "../../../src/base/error.js";
import type { CollectiveOperation } from "../../../src/scenario/graphs/collectives/add.js";
import { kProtocols } from "../../../src/scenario/graphs/collectives/protocols.js";
import { readTunerCsv } from "../../../src/scenario/graphs/collectives/tuner_csv.js";
import { chooseAlgorithm, modelTime } from "../../../src/scenario/graphs/collectives/tuning.js";

type Times = readonly (number | undefined)[];
const none = undefined;

/**
 * Operation, rate of a NIC, ranks, ranks of a node, bytes, and what ncclTopoGetAlgoTime() of NCCL 5067397c answers, in
 * microseconds: for tree and ring by LL, LL128 and Simple, and for PAT. Its src/graph/tuning.cc was compiled as it is, with a
 * communicator of GPUs of compute capability 9.0 and Intel processors, and topologies as tuning.ts assumes them.
 */
const kByNccl: readonly [CollectiveOperation, number, number, number, number, Times, Times, number | undefined][] = [
  ["allreduce", 400e9, 64, 1, 4096, [67.9374, 116.279, 176.633], [636.995, 1085.18, 1772.56], none],
  ["allreduce", 400e9, 64, 1, 8388608, [2104.95, 624.545, 712.756], [1446.16, 1444.02, 2811.66], none],
  ["allreduce", 400e9, 64, 1, 1073741824, [208774, 58700.4, 55099.3], [104261, 47040, 44759.9], none],
  ["allreduce", 100e9, 3, 1, 100, [16.8777, 31.0218, 36.4227], [26.6213, 48.0116, 64.4107], none],
  ["allreduce", 400e9, 16, 8, 65536, [30.8014, 49.1332, 92.9936], [43.1508, 75.5339, 184.547], none],
  ["allreduce", 400e9, 64, 8, 1000000, [290.298, 92.1618, 159.27], [252.907, 288.15, 824.202], none],
  ["allreduce", 400e9, 8, 8, 8388608, [248.807, 101.758, 125.876], [119.114, 83.6329, 95.5902], none],
  ["allreduce", 100e9, 24, 4, 0, [30.4, 55.5, 88.4], [69.6, 122.4, 270.8], none],
  ["allgather", 400e9, 64, 1, 4096, [none, none, none], [321.798, 549.588, 890.481], 211.309],
  ["reducescatter", 400e9, 64, 1, 8388608, [none, none, none], [726.381, 729.012, 1055.55], 434.896],
  ["allgather", 100e9, 1000, 1, 1073741824, [none, none, none], [176628, 101781, 99807.9], 117376],
  ["allgather", 400e9, 64, 8, 65536, [none, none, none], [84.6624, 148.575, 296.961], none],
  ["reducescatter", 400e9, 8, 8, 1000000, [none, none, none], [17.0057, 29.865, 34.5598], none],
  ["broadcast", 400e9, 64, 1, 1000000, [none, none, none], [58.3196, 39.7391, 42.4], none],
  ["broadcast", 100e9, 24, 4, 8, [none, none, none], [9.30039, 18.0002, 22.4002], none],
  ["broadcast", 400e9, 8, 8, 65536, [none, none, none], [7.66479, 16.0921, 11.9767], none],
  ["allreduce", 100e9, 2, 1, 1000000, [1960.53, 394.74, 445.607], [176.6, 117.957, 130.96], none],
];

describe("NCCL's model of times", () => {
  it.each(kByNccl)("of %s at %d bit/s with %d ranks, %d in a node, of %d bytes is NCCL's", (...row) => {
    const [operation, rate, ranks, perNode, bytes, tree, ring, pat] = row;
    const tuning = { ranks, perNode, bytes, rate };
    const expected = { tree, ring, pat: [none, none, pat] };
    for (const algorithm of ["tree", "ring", "pat"] as const) {
      for (const [i, protocol] of kProtocols.entries()) {
        const time = modelTime(operation, algorithm, protocol, tuning);
        const wanted = expected[algorithm][i];
        if (wanted === undefined) expect(time).toBeUndefined();
        // Six digits were written.
        else expect(Math.abs((time as number) / wanted - 1)).toBeLessThan(1e-5);
      }
    }
    const all = [...tree, ...ring, pat].filter((time) => time !== undefined);
    expect(Math.abs((chooseAlgorithm(operation, tuning).time as number) / Math.min(...all) - 1)).toBeLessThan(1e-5);
  });

  const ofSize = (bytes: number) => ({ ranks: 64, perNode: 1, bytes, rate: 400e9 });

  it("takes trees for what is small, and rings for what is large", () => {
    expect(chooseAlgorithm("allreduce", ofSize(4_096))).toMatchObject({ algorithm: "tree", protocol: "ll" });
    expect(chooseAlgorithm("allreduce", ofSize(2 ** 20))).toMatchObject({ algorithm: "tree", protocol: "ll128" });
    expect(chooseAlgorithm("allreduce", ofSize(2 ** 30))).toMatchObject({ algorithm: "ring", protocol: "simple" });
  });

  it("has PAT where there is one rank in a node", () => {
    expect(chooseAlgorithm("allgather", ofSize(2 ** 20)).algorithm).toBe("pat");
    expect(chooseAlgorithm("allgather", { ...ofSize(2 ** 20), perNode: 8 }).algorithm).toBe("ring");
  });

  it("is not asked where there is one algorithm, or one rank", () => {
    expect(chooseAlgorithm("alltoall", ofSize(4_096))).toEqual({ algorithm: "pairwise" });
    expect(chooseAlgorithm("barrier", ofSize(0))).toEqual({ algorithm: "dissemination" });
    expect(chooseAlgorithm("allreduce", { ...ofSize(4_096), ranks: 1 })).toEqual({ algorithm: "ring" });
  });
});

describe("rules of NCCL's example tuner", () => {
  const kText = `# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff
allreduce,0,65536,ring,simple,2,1,-1,-1,1

allreduce, 0, 65536, nvls, simple, 2, -1, -1
allreduce,0,65536,ring,simple,4,64,64,1,0
allreduce,65537,1048576,tree,simple,-1,-1,-1,4,-1
allreduce,65537,1048576,tree,ll128,-1,-1,-1
allgather,0,4294967295,pat,ll,2,-1,-1
allgather,0,4294967295,ring,ll,2,-1,-1
`;
  const rules = readTunerCsv("tuner.conf", kText);
  const choose = (operation: CollectiveOperation, bytes: number, change = {}) =>
    chooseAlgorithm(operation, { ranks: 64, perNode: 1, bytes, rate: 400e9, rules, ...change });

  it("are read with their lines, without those for other launches and buffers", () => {
    expect(rules.map(({ line }) => line)).toEqual([4, 5, 7, 8, 9]);
    expect(rules[1]).toEqual({
      ...{ operation: "allreduce", least: 0, most: 65_536, algorithm: "ring", protocol: "simple", line: 5 },
      ...{ channels: 4, nodes: 64, ranks: 64 },
    });
  });

  it("come before the model, the first that fits and is possible", () => {
    expect(choose("allreduce", 65_536)).toEqual({ algorithm: "ring", protocol: "simple", time: 0, channels: 4 });
    expect(choose("allreduce", 65_537)).toEqual({ algorithm: "tree", protocol: "ll128", time: 0 });
    expect(choose("allgather", 100)).toEqual({ algorithm: "ring", protocol: "ll", time: 0, channels: 2 });
  });

  it("leave the rest to the model", () => {
    const model = (bytes: number, change = {}) => choose("allreduce", bytes, { rules: [], ...change });
    expect(choose("allreduce", 2 ** 30)).toEqual(model(2 ** 30));
    expect(choose("allreduce", 100, { ranks: 32 })).toEqual(model(100, { ranks: 32 }));
    expect(choose("allreduce", 100, { perNode: 8 })).toEqual(model(100, { perNode: 8 }));
    expect(model(100).algorithm).toBe("tree");
  });

  it.each([
    ["allreduce,0,1,ring,simple,1,1", "t.conf:2: 7 columns", "8 to 10"],
    ["allreduce,0,1,ring,simple,1,1,1,1,1,1", "t.conf:2: 11 columns", "8 to 10"],
    ["alreduce,0,1,ring,simple,1,1,1", "t.conf:2: collective: alreduce is not known", "allreduce? one of"],
    ["allreduce,x,1,ring,simple,1,1,1", "t.conf:2: min_bytes: x", "a whole number from 0"],
    ["allreduce,2,1,ring,simple,1,1,1", "t.conf:2: max_bytes: 1 is less than min_bytes, 2", "smallest size"],
    ["allreduce,0,1,rings,simple,1,1,1", "t.conf:2: algorithm: rings is not known", "ring? one of"],
    ["allreduce,0,1,ring,ll256,1,1,1", "t.conf:2: protocol: ll256 is not known", "one of ll, ll128, simple"],
    ["allreduce,0,1,ring,simple,-2,1,1", "t.conf:2: channels: -2", "from -1 to 256"],
    ["allreduce,0,1,ring,simple,1,1e3,1", "t.conf:2: nNodes: 1e3", "from -1"],
    ["allreduce,0,1,ring,simple,1,1,1,1,2", "t.conf:2: regBuff: 2", "from -1 to 1"],
    ['allreduce,"0,1', "t.conf: is not CSV", ""],
  ])("%s are an error", (row, message, hint) => {
    let error: unknown;
    try {
      readTunerCsv("t.conf", `# rules\n${row}\n`);
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(WeirError);
    expect((error as WeirError).message).toContain(message);
    expect((error as WeirError).hint ?? "").toContain(hint);
  });
});
