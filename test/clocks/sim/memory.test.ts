/** Simulations where memory is short: they take what their network holds, and say what could not be had. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { kRoot, kWeir } from "../../command.js";
import { kPatienceMs } from "../../limits.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";
import { programFile } from "../../programs/files.js";

skipWhere(nativeObstacle());

it("run where a process may have 4 GiB of addresses", () => {
  const folder = mkdtempSync(join(tmpdir(), "weir-sim-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const options = ["--quiet", "--duration", "100us", "--set", "warmup=0s", "--out", join(folder, "out")];
  const command = [...kWeir, "sim", "run", join(kRoot, "examples/incast-4to1.yaml"), ...options];
  const script = `ulimit -v ${4 * 2 ** 20}; exec "$@"`;
  const ran = spawnSync("sh", ["-c", script, "sh", ...command], { encoding: "utf8", timeout: kPatienceMs });
  expect(ran.status, ran.stderr).toBe(0);
});

it("end with what could not be had, and the remedy, where a network holds more frames than there is memory for", () => {
  const ran = spawnSync(process.execPath, [programFile("long_link")], { encoding: "utf8", timeout: kPatienceMs });
  expect(ran.stdout, ran.stderr).not.toBe("");
  expect(JSON.parse(ran.stdout)).toEqual({
    code: "ENOMEM",
    message: expect.stringMatching(
      /^2\d{5} frames are under way at once, and there is no memory for more: 128 MiB could not be had$/,
    ),
    hint: expect.stringContaining("ulimit -v"),
  });
});
