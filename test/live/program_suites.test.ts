/**
 * Suites of others, as Debian has them, on one NIC whose programs reach each other. A file beside this one has the outcome of
 * each of their tests, failures and skips with the reason that they gave: one that fails anew, or passes, is a difference. Each
 * version of pyverbs has its file. To accept differences: npx vitest run --project live test/live/program_suites.test.ts -u
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { expect, onTestFinished } from "vitest";
import { lacking } from "../needs.js";
import { itUnless } from "../obstacles.js";
import { describeLive } from "./capability.js";
import { type Daemon, freePort, network, weir, weirAs } from "./daemons.js";
import { startNic } from "./program_runs.js";
import { installedVersion } from "./program_versions.js";

/** Folder of the package python3-pyverbs. */
const kPyverbsTests = "/usr/share/doc/rdma-core/tests";
const kPyverbs = fileURLToPath(new URL("suites/run_pyverbs.py", import.meta.url));

/** Tests of other makers' adapters; and tests that depend on the hardware of this host. */
const kNotOurs = /test_(mlx5|efa|cuda)/;
const kOfHost = /dmabuf|huge/i;
/** Commands of perftest's script, which sleeps most of its time. */
const kAtOnce = 4;

const run = (nic: Daemon, ...command: string[]) => weir("run", "--socket", nic.socket, "--", ...command).finished;

function unpackedTests(): string {
  const into = mkdtempSync(join(tmpdir(), "weir-pyverbs-"));
  onTestFinished(() => rmSync(into, { recursive: true, force: true }));
  for (const name of readdirSync(kPyverbsTests).filter((one) => !kNotOurs.test(one))) {
    const bytes = readFileSync(join(kPyverbsTests, name));
    writeFileSync(join(into, name.replace(/\.gz$/, "")), name.endsWith(".gz") ? gunzipSync(bytes) : bytes);
  }
  return into;
}

interface Told {
  test: string;
  outcome: "ok" | "skipped" | "failed";
  reason: string;
}

describeLive("suites of others", () => {
  itUnless(lacking("python3-pyverbs", "dpkg"), "rdma-core's tests of pyverbs", async () => {
    const net = await network(["a"]);
    const nic = await startNic(net, "a");
    // Those of librdmacm look in /sys for the NIC's interface, and ask for its address.
    const mounted = ["unshare", "--mount", "sh", "-c", 'mount -t sysfs sysfs /sys && exec "$0" "$@"'];
    const as = ["nsenter", `--net=${net.namespace("a").path}`, ...mounted];
    const tests = ["python3", kPyverbs, unpackedTests(), "--dev", "roce_a", "--gid", "0"];
    const { stdout, stderr } = await weirAs({ as }, "run", "--socket", nic.socket, "--", ...tests).finished;
    const told = stdout
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as Told)
      .filter(({ test }) => !kOfHost.test(test));
    expect(told.length, stderr).toBeGreaterThan(0);
    const lines = told.map(({ test, outcome, reason }) =>
      [test.replace(/^tests\./, ""), outcome, ...(reason === "" ? [] : [reason.split("\n")[0]])].join(": "),
    );
    await expect(`${lines.sort().join("\n")}\n`).toMatchFileSnapshot(
      `suites/pyverbs-${installedVersion("python3-pyverbs")?.split(".")[0]}.txt`,
    );
  });

  itUnless(lacking("perftest", "ibverbs-utils"), "perftest's loopback script, and ibverbs-utils", async () => {
    const nic = await startNic(await network(["a"]), "a");
    const looped = async (command: string) => {
      const [program = "", ...options] = command.split(" ");
      const whole = [program, ...options, "-n", "100", "-p", String(await freePort())];
      const { status, stdout, stderr } = await run(nic, "run_perftest_loopback", "0", "0", ...whole);
      const [reason] = `${stderr}\n${stdout}`.split("\n").filter((line) => /n't|nable to|ailed|not supp/.test(line));
      return [command, status === 0 ? "ok" : "failed", ...(status === 0 ? [] : [reason?.trim()])].join(": ");
    };
    const bandwidth = ["ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw"];
    const latency = ["ib_write_lat", "ib_read_lat", "ib_send_lat", "ib_atomic_lat"];
    const perftest = [
      ...bandwidth.flatMap((one) => [one, `${one} -q 4`]),
      ...latency,
      "ib_send_lat -e",
      "ib_send_bw -b",
      "ib_write_bw -a",
      "ib_write_bw -c UC",
      "ib_send_bw -r 64 --use-srq",
      "ib_send_bw -I 64 -s 64",
    ];
    const utilities = [
      "ibv_rc_pingpong",
      "ibv_rc_pingpong -e",
      "ibv_uc_pingpong",
      "ibv_ud_pingpong",
      "ibv_srq_pingpong",
    ];
    const commands = [...perftest.map((one) => `${one} -x 0`), ...utilities.map((one) => `${one} -g 0`)];
    const lines: string[] = [];
    while (commands.length > 0) lines.push(...(await Promise.all(commands.splice(0, kAtOnce).map(looped))));
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("suites/perftest.txt");
  });
});
