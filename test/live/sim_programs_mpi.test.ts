/** MPI in virtual time: it starts its ranks on the hosts of a simulation, which reduce and put over their NICs. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import { lacking, pathOf } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { describeVirtual, virtualObstacle } from "./capability.js";
import { run } from "./sim_programs_run.js";
import { folder } from "./weir.js";

const kAgent = "--mca plm_rsh_agent 'weir lab exec --rsh'";
const kUcx = "--mca pml ucx --mca osc ucx -x UCX_NET_DEVICES=weir0:1";
const kRanks = "-np 4 --host a:2,b:2";
const lines = (text: string) =>
  text
    .split("\n")
    .filter((line) => line.startsWith("rank"))
    .sort();

describeUnless(virtualObstacle() ?? lacking("openmpi-bin", "libopenmpi-dev"), "OpenMPI in virtual time", () => {
  const ranks = [0, 1, 2, 3].map((rank) => `rank ${rank} of 4 on ${rank < 2 ? "a" : "b"}: 0 wrong`);
  const command = () => {
    const program = join(folder(), "reduce");
    const source = join(import.meta.dirname, "programs_c/reduce.c");
    const env = { ...process.env, PATH: process.env.WEIR_BUILD_PATH };
    execFileSync(pathOf("mpicc.openmpi"), ["-Wall", "-O1", source, "-o", program], { env });
    return `mpirun.openmpi --allow-run-as-root ${kAgent} ${kUcx} ${kRanks} ${program}`;
  };

  it("starts ranks on all hosts, which compute over their NICs, and nothing of another run beside it", async () => {
    const traffic = `  - { id: mpi, on: a, run: "${command()}" }`;
    const [one, other] = await Promise.all([run(traffic), run(traffic)]);
    for (const { output, programs } of [one, other]) {
      expect(lines(output("mpi.out"))).toEqual(ranks);
      expect(programs.mpi).toMatchObject({ status: 0 });
    }
  });

  it("has ranks whose computing takes time, on all hosts", async () => {
    const { output, programs } = await run(`  - { id: mpi, on: a, run: "${command()}", compute: { measured: 1 } }`);
    expect(lines(output("mpi.out"))).toEqual(ranks);
    expect(programs.mpi).toMatchObject({ status: 0 });
  });
});

describeVirtual("weir lab exec in virtual time", () => {
  it("runs programs on another host, whose name and address they have, and hands on how they end", async () => {
    const words = ["hostname", "weir lab exec b -- hostname", "weir lab exec --rsh b 'echo $WEIR_HOST; exit 7'"];
    const { programs, output } = await run(`  - { id: here, on: a, run: "${words.join("; ")}" }
  - { id: nowhere, on: a, run: "weir lab exec c -- true" }`);
    expect(output("here.out")).toBe("a\nb\nb\n");
    expect(programs.here).toMatchObject({ status: 7 });
    expect(programs.nowhere).toMatchObject({ status: 125 });
    expect(output("nowhere.err")).toContain("there is no host c");
  });

  // As MPICH's launcher does, whose environment is that of the first host.
  it("keeps programs there, whatever environment they are started with", async () => {
    const handed =
      "env WEIR_HOST=a SYSFS_PATH=/nowhere sh -c 'hostname; echo $WEIR_HOST; cat $SYSFS_PATH/class/infiniband/weir0/node_guid'";
    const { output } =
      await run(`  - { id: here, on: a, run: "cat $SYSFS_PATH/class/infiniband/weir0/node_guid; weir lab exec b -- ${handed}" }
  - { id: there, on: b, run: "cat $SYSFS_PATH/class/infiniband/weir0/node_guid; weir lab exec a -- weir lab exec b -- hostname" }`);
    expect(output("here.err")).toBe("");
    const [guid, host, name, other] = output("here.out").trim().split("\n");
    expect([host, name]).toEqual(["b", "b"]);
    expect(output("there.out")).toBe(`${other}\nb\n`);
    expect(other).not.toBe(guid);
  });
});
