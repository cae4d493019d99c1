// npm test: installs what tests need (test/needs.json), builds, runs Vitest, and sees to it that nothing of the run is left. As
// root it has folders of its own for namespaces and control sockets, so that leftovers there are its own, whatever others do
// meanwhile. Options are Vitest's: npm test -- --project unit test/cli
import { spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { build } from "./build.mjs";
import { findProgram, satisfy } from "./needs.mjs";
import { kTestRun, processesWith } from "./test_processes.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const who = "npm test";
/** Time for processes that were told to end and are about to, on a busy machine. */
const kGraceMs = 10_000;
/** Time for compiling the native tests, on a busy machine. */
const kCompileLimitMs = 1_800_000;
/** Variable that is set in a process that has folders of its own. */
const kApart = "WEIR_TEST_APART";
const kSignals = ["SIGINT", "SIGTERM", "SIGHUP"];

await goApart();

const options = process.argv.slice(2);
const asked = options.flatMap(
  (option, i) =>
    /^--project(?:=(.*))?$/
      .exec(option)
      ?.slice(1)
      .map((name) => name ?? options[i + 1]) ?? [],
);
const projects = asked.length > 0 ? asked : ["unit", "native", "live", "labs", "browser"];

// Labs are a part of the live tests.
const { missing } = satisfy(["start", ...projects.map((name) => (name === "labs" ? "live" : name))], {
  who,
  refusal: "WEIR_TEST_INSTALL",
  without: "Tests that need it are skipped.",
});
// With a compiler there, optional dependencies that could not be compiled before can be.
build(
  who,
  ["c++", "make", "python3"].every((name) => findProgram(name) !== undefined),
);
if (projects.includes("native")) compileNativeTests();
const status = await run(asked.length > 0 ? options : [...projects.map((name) => `--project=${name}`), ...options]);
if (missing.length > 0)
  console.log(`${who}: not installed: ${missing.join(", ")}. What needs it was skipped; the line above installs it.`);
process.exit(status);

/** Goes on as another process with other mounts, where it may, and ends as that one does. */
async function goApart() {
  if (process.getuid() !== 0 || process.env[kApart] !== undefined) return;
  const folders =
    'for f in /run/netns /run/weir; do mkdir -p $f && mount -t tmpfs -o mode=755 weir-test $f || exit; done; exec "$@"';
  const apart = (...command) => ["--mount", "--propagation", "private", "sh", "-c", folders, "sh", ...command];
  // Root of a user namespace may make no folders there.
  if (spawnSync("unshare", apart("true")).status !== 0) return;
  const again = apart(process.execPath, fileURLToPath(import.meta.url), ...process.argv.slice(2));
  const child = spawn("unshare", again, { stdio: "inherit", env: { ...process.env, [kApart]: "1" } });
  process.exit(await endOf(child));
}

/** Waits for its exit status, and passes this process's signals on to it. */
function endOf(child) {
  for (const signal of kSignals) process.on(signal, () => child.kill(signal));
  return new Promise((resolve) => {
    child.on("error", (error) => {
      console.error(`${who}: ${error.message}`);
      resolve(1);
    });
    child.on("exit", (code, signal) => resolve(code ?? 128 + constants.signals[signal]));
  });
}

/** Compiles before the tests, whose limits are for running. */
function compileNativeTests() {
  if (findProgram("cmake") === undefined || findProgram("c++") === undefined) return;
  console.log(`${who}: compiling the native tests`);
  const { status, error, stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, "scripts/native-tests.mjs"), "--build"],
    {
      encoding: "utf8",
      maxBuffer: 1 << 28,
      timeout: kCompileLimitMs,
    },
  );
  if (status === 0) return;
  console.error(
    `${stdout ?? ""}${stderr ?? ""}${who}: the native tests were not built: ${error?.message ?? `status ${status}`}`,
  );
  process.exit(1);
}

/** Runs Vitest and returns its exit status; 1 if something of the run is left. */
async function run(args) {
  const name = randomUUID();
  const folder = mkdtempSync(join(tmpdir(), "weir-test-"));
  // The folder has the mode of the usual one for temporary files: tests also run commands as an ordinary user.
  chmodSync(folder, 0o1777);
  const before = traces();
  // The reaper goes on when this process is killed, and is no part of the run.
  const reaper = spawn(process.execPath, [join(root, "scripts/test_reaper.mjs"), name, folder], {
    stdio: ["pipe", "inherit", "inherit"],
    detached: true,
  });
  const vitest = spawn(process.execPath, [join(root, "node_modules/vitest/vitest.mjs"), "run", ...args], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, [kTestRun]: name, TMPDIR: folder },
  });
  const status = await endOf(vitest);
  const left = await leftovers(name, before);
  if (left.length > 0)
    console.error(`${who}: left behind by the tests:\n${left.map((line) => `  ${line}`).join("\n")}`);
  const reaped = new Promise((resolve) => reaper.on("exit", resolve));
  reaper.stdin.end();
  await reaped;
  return status === 0 && left.length > 0 ? 1 : status;
}

/**
 * Finds things that a run could leave on the machine beside processes and temporary files: namespaces, and sockets at
 * which nobody listens.
 */
function traces() {
  const { stdout } = spawnSync("ip", ["netns", "list"], { encoding: "utf8" });
  const namespaces = (stdout ?? "").split("\n").filter((line) => line.startsWith("weir"));
  const bound = readFileSync("/proc/net/unix", "utf8");
  const files = existsSync("/run/weir") ? readdirSync("/run/weir").map((file) => `/run/weir/${file}`) : [];
  return [
    ...namespaces.map((line) => `network namespace ${line.split(" ")[0]}`),
    ...files.filter((file) => file.endsWith(".sock") && !bound.includes(` ${file}\n`)),
  ];
}

/** Finds processes of the run that do not end, and new traces. */
async function leftovers(name, before) {
  const until = Date.now() + kGraceMs;
  let processes = processesWith(kTestRun, name);
  for (; processes.length > 0 && Date.now() < until; processes = processesWith(kTestRun, name)) await sleep(100);
  return [
    ...processes.map(({ pid, command }) => `process ${pid}: ${command}`),
    ...traces().filter((one) => !before.includes(one)),
  ];
}
