/** Programs that ask libibverbs for more than a plain connection: Debian's programs, and small ones of our own in programs_c/. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import { describeLive } from "./capability.js";
import { network } from "./daemons.js";
import { fabric, pair, run, startNic } from "./program_runs.js";
import { folder } from "./weir.js";

const kSources = join(import.meta.dirname, "programs_c");

function compiled(name: string): string {
  const program = join(folder(), name);
  execFileSync(
    "cc",
    ["-Wall", "-Wextra", "-O1", join(kSources, `${name}.c`), "-o", program, "-libverbs", "-lrdmacm", "-lpthread"],
    {
      env: { ...process.env, PATH: process.env.WEIR_BUILD_PATH },
    },
  );
  return program;
}

describeLive("verbs of programs", () => {
  it.each([
    ["a shared receive queue", ["ibv_srq_pingpong", "-g", "0", "-n", "200", "-c"]],
    ["an unreliable connection", ["ibv_uc_pingpong", "-g", "0", "-n", "200", "-c"]],
    ["work put together call by call", ["ibv_rc_pingpong", "-g", "0", "-n", "200", "-c", "-N"]],
    ["completions with their time", ["ibv_rc_pingpong", "-g", "0", "-n", "200", "-c", "-t"]],
    ["perftest with a shared receive queue", ["ib_send_bw", "-x", "0", "-n", "100", "--use-srq"]],
    ["perftest's WRITEs of an unreliable connection", ["ib_write_bw", "-x", "0", "-n", "100", "-c", "UC"]],
  ])("%s", async (_, command) => {
    await pair(await fabric(), command);
  });

  it.each(["shared_receives", "extended", "refusals", "unmapped", "multicast", "draining", "events", "limits"])(
    "programs_c/%s.c",
    async (name) => {
      const nic = await startNic(await network(["a"]), "a");
      const { status, output } = await run(nic, compiled(name)).ended;
      expect(output).toBe("as it should be\n");
      expect(status).toBe(0);
    },
  );

  it.each([[], ["env", "RDMAV_FORK_SAFE=1"]])(
    "programs_c/forks.c, as it is and asked to be safe (%s)",
    async (...env) => {
      const nic = await startNic(await network(["a"]), "a");
      const { status, output } = await run(nic, ...env, compiled("forks")).ended;
      expect(output).toBe("as it should be\n");
      expect(status).toBe(0);
    },
  );
});
