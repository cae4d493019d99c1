/** Simulations where memory is short: they take what their network holds, and say what could not be had. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { kRoot, kWeir } from "../../command.js";
import { kPatienceMs } from "../../limits.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";

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

/** A link of 5 ms at 100 Gb/s holds 430,000 frames of a datagram of 64 bytes: more than a simulation begins with. */
const kLongLink = `
  import { spawnSync } from "node:child_process";
  import { readFileSync } from "node:fs";
  import { parseScenario } from "./src/scenario/scenario.js";
  import { loadAddon } from "./src/native/addon.js";
  import { composeSimulation } from "./src/clocks/sim/compose.js";
  import { Fabric } from "./src/scenario/fabric.js";

  const { scenario } = parseScenario({
    name: "long",
    duration: "10ms",
    warmup: "0s",
    topology: { hosts: ["a", "b"], switches: ["s"], link: { rate: "100Gbps", delay: "5ms" }, links: ["a -- s", "s -- b"] },
    congestion: { algorithm: "none" },
    traffic: [{ from: "a", to: "b", message: 64 }],
  });
  const addon = loadAddon();
  const simulation = new addon.Simulation(composeSimulation(scenario, new Fabric(scenario), []));
  const [, present] = /VmSize:\\s+(\\d+) kB/.exec(readFileSync("/proc/self/status", "utf8"));
  spawnSync("prlimit", ["--pid", String(process.pid), "--as=" + (Number(present) * 1024 + 100 * 2 ** 20)]);
  try {
    simulation.run(10e6, 1e12);
  } catch ({ code, message, hint }) {
    console.log(JSON.stringify({ code, message, hint }));
  }
`;

it("end with what could not be had, and the remedy, where a network holds more frames than there is memory for", () => {
  const arguments_ = ["--import", "tsx", "--input-type=module", "-e", kLongLink];
  const ran = spawnSync(process.execPath, arguments_, { cwd: kRoot, encoding: "utf8", timeout: kPatienceMs });
  expect(ran.stdout, ran.stderr).not.toBe("");
  expect(JSON.parse(ran.stdout)).toEqual({
    code: "ENOMEM",
    message: expect.stringMatching(
      /^2\d{5} frames are under way at once, and there is no memory for more: 128 MiB could not be had$/,
    ),
    hint: expect.stringContaining("ulimit -v"),
  });
});
