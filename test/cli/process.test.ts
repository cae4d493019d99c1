/** The real process: entry point, exit status and pipes. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { kMain } from "../command.js";
import { kPatienceMs } from "../limits.js";
import { itUnless, nativeObstacle } from "../obstacles.js";
import { eventually } from "../patience.js";

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

describe.each([
  ["model run", undefined, ["--quiet", "--duration", "10ms", "--set", "warmup=2ms", "--out"]],
  ["sim run", nativeObstacle(), ["--quiet", "--duration", "100us", "--set", "warmup=0s", "--out"]],
])("%s", (verb, obstacle, options) => {
  itUnless(obstacle, "keeps the text of a scenario that comes by a pipe", () => {
    const folder = mkdtempSync(join(tmpdir(), "weir-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = "examples/incast-4to1.yaml";
    const command = [process.execPath, kMain, ...verb.split(" "), "/dev/stdin", ...options, join(folder, "out")];
    const ran = spawnSync("sh", ["-c", `cat ${file} | "$@"`, "sh", ...command], {
      encoding: "utf8",
      timeout: kPatienceMs,
    });
    expect(ran.status, ran.stderr).toBe(0);
    const { text } = JSON.parse(readFileSync(join(folder, "out/scenario.json"), "utf8")) as { text: string };
    expect(text).toBe(readFileSync(file, "utf8"));
  });
});

it("validates what comes by a pipe", () => {
  const command = [process.execPath, kMain, "validate", "/dev/stdin"];
  const validate = (file: string) =>
    spawnSync("sh", ["-c", `cat ${file} | "$@"`, "sh", ...command], { encoding: "utf8", timeout: kPatienceMs });
  expect(validate("examples/incast-4to1.yaml").stdout).toMatch(/^\/dev\/stdin: ok: 5 hosts/);
  expect(validate("examples/switch.yaml").stdout).toMatch(/^\/dev\/stdin: ok: switch /);
  // A sweep's scenario is looked for beside it.
  expect(validate("examples/sweep-ecn.yaml").stderr).toContain("scenario /dev/incast-4to1.yaml: no such file");
});

describe.each([
  ["ends with the shell of npx, to which npm hands SIGTERM", "npx", true],
  ["goes on without any other shell", undefined, false],
] as const)("a process", (what, event, ends) => {
  itUnless(nativeObstacle(), what, async () => {
    const folder = mkdtempSync(join(tmpdir(), "weir-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const out = join(folder, "out");
    const options = [
      "--quiet",
      "--duration",
      "3000s",
      "--set",
      "warmup=0s",
      "--set",
      "probes.interval=1s",
      "--out",
      out,
    ];
    const command = [process.execPath, kMain, "sim", "run", "examples/incast-4to1.yaml", ...options].join(" ");
    const script = `${command} & echo $! > ${folder}/pid; wait`;
    const { npm_lifecycle_event: _event, npm_lifecycle_script: _script, ...environment } = process.env;
    const own = event === undefined ? {} : { npm_lifecycle_event: event, npm_lifecycle_script: command };
    const shell = spawn("sh", ["-c", script], { stdio: "ignore", env: { ...environment, ...own } });
    const pid = await eventually(() => {
      expect(existsSync(out)).toBe(true);
      return Number(readFileSync(join(folder, "pid"), "utf8"));
    });
    onTestFinished(() => {
      if (alive(pid)) process.kill(pid, "SIGKILL");
    });
    shell.kill("SIGTERM");
    await once(shell, "close");
    if (ends) {
      await eventually(() => expect(alive(pid)).toBe(false));
      // It was asked to end, and has done what it does then.
      expect(JSON.parse(readFileSync(join(out, "result.json"), "utf8"))).toMatchObject({ fidelity: { valid: false } });
    } else {
      await new Promise((resolve) => setTimeout(resolve, 1500));
      expect(alive(pid)).toBe(true);
    }
  });
});

function alive(pid: number): boolean {
  try {
    return process.kill(pid, 0) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

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

// Each device is read no further than such a file may be long: a reader without a limit takes all memory, and never ends.
itUnless(nativeObstacle(), "refuses a CSV file and a plan without an end", () => {
  const folder = mkdtempSync(join(tmpdir(), "weir-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const endless = "/dev/zero";
  const scenario = join(folder, "x.yaml");
  writeFileSync(
    scenario,
    `topology: { hosts: [a, b], switches: [s], links: [a -- s, b -- s] }\ntraffic: [{ pattern: list, csv: ${endless} }]\n`,
  );
  const refusal = (...options: string[]) => {
    const { status, stderr } = spawnSync(process.execPath, [kMain, ...options], {
      encoding: "utf8",
      timeout: kPatienceMs,
    });
    return { status, stderr };
  };
  expect(refusal("validate", scenario)).toEqual({
    status: 2,
    stderr: expect.stringContaining(`${endless}: is too large; the limit is 268435456 bytes`),
  });
  expect(refusal("sweep", "run", "--points", endless, "--out", join(folder, "out"))).toEqual({
    status: 42,
    stderr: expect.stringContaining(`plan ${endless}: is too large; the limit is`),
  });
});
