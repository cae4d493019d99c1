/** From one host of a lab to another by `weir lab exec`, and MPI, which starts its ranks so. */
import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { kWeir } from "../command.js";
import { lacking, pathOf } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { describeLive, describeOrdinaryUser, kOrdinaryUser, liveObstacle } from "./capability.js";
import { Standing } from "./standing.js";
import { folder } from "./weir.js";

/** `weir lab exec` on host a. */
const kFromA = ["lab", "exec", "two.a", "--", ...kWeir, "lab", "exec"];

async function reachesTheOther(lab: Standing): Promise<void> {
  const command = 'cat /proc/sys/kernel/hostname; pwd; echo "$0" >&2; exit 7';
  expect(await lab.run(...kFromA, "b", "--", "sh", "-c", command, "no")).toMatchObject({
    status: 7,
    stdout: `b\n${process.cwd()}\n`,
    stderr: "no\n",
  });
}

describeLive("weir lab exec on a host", () => {
  it("runs programs on another one of the same lab, with exit status, folder, streams and signals", async () => {
    const lab = new Standing();
    const { folder: place } = await lab.up(lab.scenario());
    await lab.up(lab.scenario("other"));
    expect(statSync(join(place, ".entrance")).mode & 0o777).toBe(0o600);
    await reachesTheOther(lab);
    expect(await lab.run(...kFromA, "--rsh", "b", "exit 1;", "exit", "2")).toMatchObject({ status: 1 });
    for (const [args, message] of [
      [["c", "--", "true"], "error: no host c is up\n  hint: there are two.a, two.b\n"],
      [["b", "--", "no-such-program"], "error: cannot run no-such-program: there is no such program\n"],
    ] as const) {
      const { status, stderr } = await lab.run(...kFromA, ...args);
      expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining(message) });
    }
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      const sleeping = lab.start(...kFromA, "b", "--", "sleep", "1000");
      const processes = async () => (await lab.ps()).find(({ name }) => name === "two")?.hosts ?? [];
      await eventually(async () => expect((await processes())[1]?.processes).toMatchObject([{ command: "sleep" }]));
      process.kill((await processes())[0]?.processes[0]?.pid ?? 0, signal);
      expect((await sleeping.finished).status).toBe(signal === "SIGTERM" ? 143 : 137);
      await eventually(async () => expect((await processes()).map((host) => host.processes)).toEqual([[], []]));
    }
    await lab.run("lab", "down", "--all");
    await lab.nothingLeft();
  });

  it("has the same variables on all hosts, and on each its own NIC behind them", async () => {
    const lab = new Standing();
    await lab.up(lab.scenario());
    const look = [
      "sh",
      "-c",
      'echo "$SYSFS_PATH $WEIR_CONTROL_DIRECTORY"; cat "$SYSFS_PATH"/class/infiniband/weir0/node_guid',
    ];
    const seen = [await lab.exec("a", ...look), await lab.exec("b", ...look)].map((text) => text.split("\n"));
    expect(seen[0]?.[0]).toBe(seen[1]?.[0]);
    expect(seen[0]?.[1]).not.toBe(seen[1]?.[1]);
    await lab.run("lab", "down");
    await lab.nothingLeft();
  });

  it("leaves no zombies of programs whose parents have ended", async () => {
    const lab = new Standing();
    await lab.up(lab.scenario());
    await lab.exec("a", "sh", "-c", "(sleep 0.1 &)");
    await eventually(async () => expect((await lab.ps())[0]?.hosts[0]?.processes).toEqual([]));
    await lab.run("lab", "down");
    await lab.nothingLeft();
  });
});

describeOrdinaryUser("weir lab exec on a host, without root", () => {
  it("reaches the others", async () => {
    const lab = new Standing(kOrdinaryUser);
    await lab.up(lab.scenario());
    await reachesTheOther(lab);
    await lab.run("lab", "down");
    await lab.nothingLeft();
  });
});

/** Command lines of an all-reduce of two ranks on each of two hosts, by package. */
const kMpi = {
  "openmpi-bin": (program: string) => [
    ...["env", "UCX_NET_DEVICES=weir0:1", "mpirun.openmpi", "--allow-run-as-root"],
    ...["--mca", "plm_rsh_agent", [...kWeir, "lab", "exec", "--rsh"].join(" ")],
    ...["--mca", "pml", "ucx", "--mca", "osc", "ucx", "-x", "UCX_NET_DEVICES"],
    ...["-np", "4", "--host", "a:2,b:2", program],
  ],
  mpich: (program: string) => [
    ...["env", "UCX_NET_DEVICES=weir0:1", `HYDRA_LAUNCHER_EXTRA_ARGS=${kWeir[1]} lab exec --rsh`],
    ...["mpirun.mpich", "-launcher", "rsh", "-launcher-exec", kWeir[0] as string],
    ...["-np", "4", "-hosts", "a:2,b:2", program],
  ],
};

for (const [name, words] of Object.entries(kMpi)) {
  const compiler = name === "mpich" ? "libmpich-dev" : "libopenmpi-dev";
  describeUnless(liveObstacle() ?? lacking(name, compiler), name, () => {
    it("starts ranks on hosts of a lab, which reduce and put over their NICs", async () => {
      const lab = new Standing();
      await lab.up(lab.scenario());
      const program = join(folder(), "reduce");
      const source = join(import.meta.dirname, "programs_c/reduce.c");
      const env = { ...process.env, PATH: process.env.WEIR_BUILD_PATH };
      execFileSync(
        pathOf(name === "mpich" ? "mpicc.mpich" : "mpicc.openmpi"),
        ["-Wall", "-O1", source, "-o", program],
        {
          env,
        },
      );
      const output = await lab.exec("a", ...words(program));
      expect(output.trim().split("\n").sort()).toEqual(
        [0, 1, 2, 3].map((rank) => `rank ${rank} of 4 on ${rank < 2 ? "a" : "b"}: 0 wrong`),
      );
      const { stdout } = await lab.run("show", "counters", "two.b", "--json");
      const { counters } = (JSON.parse(stdout) as { counters: { counters: { name: string; value: number }[] } })
        .counters;
      const sum = (one: string) =>
        counters.reduce((total, { name: other, value }) => total + (other === one ? value : 0), 0);
      // The host's kernel sends a part of the packets: MPI's own messages.
      expect(sum("tx_packets") - sum("stack_tx_packets")).toBeGreaterThan(100);
      await lab.run("lab", "down");
      await lab.nothingLeft();
    });
  });
}
