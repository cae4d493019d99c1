/** The real process: entry point, exit status and pipes. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import { kMain } from "../command.js";
import { kPatienceMs } from "../limits.js";

it("answers on stdout and exits 0", () => {
  const ran = spawnSync(process.execPath, [kMain, "--version"], { encoding: "utf8", timeout: kPatienceMs });
  expect(ran).toMatchObject({ status: 0, stderr: "", stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
});

it("complains on stderr and exits 2", () => {
  const ran = spawnSync(process.execPath, [kMain, "vaildate"], { encoding: "utf8", timeout: kPatienceMs });
  expect(ran).toMatchObject({ status: 2, stdout: "", stderr: expect.stringContaining("Did you mean validate?") });
});

it("does not mind a reader that goes away", async () => {
  const child = spawn(process.execPath, [kMain, "profiles"], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: kPatienceMs,
  });
  child.stdout.destroy();
  let complaint = "";
  child.stderr.on("data", (chunk) => {
    complaint += String(chunk);
  });
  const [status] = await once(child, "close");
  expect({ status, complaint }).toEqual({ status: 0, complaint: "" });
});

it("says so and exits 1 where stdout cannot be written", () => {
  const full = openSync("/dev/full", "w");
  onTestFinished(() => closeSync(full));
  const ran = spawnSync(process.execPath, [kMain, "profiles"], {
    stdio: ["ignore", full, "pipe"],
    encoding: "utf8",
    timeout: kPatienceMs,
  });
  const stderr = "error: cannot write to stdout: ENOSPC: no space left on device, write\n";
  expect(ran).toMatchObject({ status: 1, stderr });
});
