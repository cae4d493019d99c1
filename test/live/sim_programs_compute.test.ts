/** What programs in virtual time compute, where it takes time: as much as they use the processor, before what others see of it. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { virtualObstacle } from "./capability.js";
import { run } from "./sim_programs_run.js";
import { folder } from "./weir.js";

/** Times for which the program uses the processor before it says something, as the kernel accounts for it, us. */
const kBurnt = 5000;

function compiled(): string {
  const program = join(folder(), "computes");
  const source = join(import.meta.dirname, "programs_c/computes.c");
  const env = { ...process.env, PATH: process.env.WEIR_BUILD_PATH };
  execFileSync("cc", ["-Wall", "-Wextra", "-O1", source, "-o", program, "-pthread", "-libverbs"], { env });
  return program;
}

/** Runs the program on both hosts; returns what the one on `a` says, us, and the run. */
async function computing(compute: string) {
  const program = compiled();
  const ran = await run(
    ["a", "b"].map((host) => `  - { id: on-${host}, on: ${host}, run: ${program}, compute: ${compute} }`).join("\n"),
  );
  for (const host of ["a", "b"]) {
    expect(ran.output(`on-${host}.err`)).toBe("");
    expect(ran.programs[`on-${host}`]).toMatchObject({ status: 0 });
  }
  const said = [...ran.output("on-a.out").matchAll(/^(.+) (\d+)$/gm)].map(
    ([, what, us]) => [what, Number(us)] as const,
  );
  return { ...ran, said: Object.fromEntries(said) };
}

describeUnless(virtualObstacle() ?? lacking("libibverbs-dev"), "what programs in virtual time compute", () => {
  it("takes no time where it is free, and runs do not differ", async () => {
    const { said, fidelity } = await computing("free");
    expect(said).toMatchObject({ clocks: 0, sleeps: 1000, processor: 0, together: 0, locked: 0, read: 0, waited: 0 });
    expect(said.received).toBeLessThan(10);
    expect(fidelity.varies).toBeUndefined();
  });

  it.each([1, 10])(
    "takes %d times what is measured, of each thread by itself, before what others see of it",
    async (factor) => {
      const { said, fidelity, programs } = await computing(`{ measured: ${factor} }`);
      // What else they do takes some time, too.
      for (const [what, least] of [
        ["clocks", 0],
        ["sleeps", 1000],
        ["processor", 0],
        ["together", 0],
        ["locked", 0],
        ["read", 0],
        ["received", 0],
      ] as const) {
        expect(said[what], what).toBeGreaterThanOrEqual(factor * kBurnt + least);
        expect(said[what], what).toBeLessThan(1.8 * factor * kBurnt + least);
      }
      // Waits for memory and traps are not computed.
      expect(said.waited).toBeLessThan((factor * (said["really waited"] as number)) / 2);
      expect(said.trapped).toBeLessThan((factor * (said["really trapped"] as number)) / 2);
      expect(fidelity.varies).toEqual(["what programs compute is measured: on-a, on-b"]);
      // The hosts compute at the same time, and what comes before the end counts, too.
      const ends = ["on-a", "on-b"].map((id) => programs[id]?.ended_s ?? 0);
      expect(Math.min(...ends)).toBeGreaterThan(0.2 + (7 * factor * kBurnt) / 1e6);
      expect(Math.max(...ends)).toBeLessThan(0.2 + (2 * 8 * factor * kBurnt) / 1e6);
    },
  );
});
