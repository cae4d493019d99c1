import { Command } from "commander";
import { describe, expect, it } from "vitest";
import type { CliContext } from "../../src/cli/context.js";
import { addDoctorOn } from "../../src/cli/doctor.js";
import { doctorSchema } from "../../src/host/doctor/report.js";
import { type FakeMachine, machine } from "./fake_system.js";

async function run(argv: string[], with_: FakeMachine = {}) {
  let stdout = "";
  let status = -1;
  const context = { stdout: { write: (text: string) => (stdout += text) } } as unknown as CliContext;
  const program = new Command("weir").version("1.2.3");
  addDoctorOn(machine(with_), program, context, (value) => {
    status = value;
  });
  await program.parseAsync(["doctor", ...argv], { from: "user" });
  return { status, stdout };
}

describe("weir doctor", () => {
  it("ends with 0 where nothing fails, warnings or not", async () => {
    expect((await run([])).status).toBe(0);
    expect((await run([], { rawSocket: new Error("no") })).status).toBe(0);
  });

  it("ends with 1 where something fails", async () => {
    const { status, stdout } = await run([], { missing: ["ip"] });
    expect(status).toBe(1);
    expect(stdout).toContain("  FAIL    ip               not found on PATH\n");
  });

  it("prints one JSON document", async () => {
    const { stdout } = await run(["--json"], { missing: ["ip"] });
    expect(doctorSchema.parse(JSON.parse(stdout))).toMatchObject({ version: "1.2.3", healthy: false });
  });
});
