/** A sweep of real simulations as a job array of a real Slurm. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { stringify } from "yaml";
import { kMain, kRoot } from "../command.js";
import { kPatienceMs } from "../limits.js";
import { describeUnless } from "../obstacles.js";
import { SlurmCluster, slurmObstacle } from "./slurm.js";
import { folder, kIncast } from "./weir.js";

const weir = (...args: string[]) =>
  execFileSync(process.execPath, [kMain, ...args], {
    cwd: kRoot,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    timeout: kPatienceMs,
  });

describeUnless(slurmObstacle(), "weir sweep on Slurm", () => {
  it("runs the rendered job array, with the bytes that a local run makes", async () => {
    const directory = folder();
    const inFolder = (name: string) => join(directory, name);
    const spec = {
      scenario: kIncast,
      set: { duration: "500us", warmup: "100us" },
      vary: { "switch.ecn.kmax": ["100KB", "200KB", "400KB"] },
      seeds: 4,
    };
    writeFileSync(inFolder("sweep.yaml"), stringify(spec));
    weir("sweep", "plan", inFolder("sweep.yaml"), "--out", inFolder("points.jsonl"));
    const points = ["--points", inFolder("points.jsonl")];
    const script = weir("sweep", "submit", "--slurm", ...points, "--results", inFolder("array"), "--chunk", "5");

    const cluster = await SlurmCluster.start();
    try {
      await cluster.finish(script, kRoot);
    } finally {
      await cluster.stop();
    }

    const table = weir("sweep", "merge", inFolder("array"));
    const rows = table.trimEnd().split("\n").slice(1);
    expect(rows.map((row) => row.split(",").slice(0, 3).join())).toEqual(
      ["100KB", "200KB", "400KB"].flatMap((kmax, i) => [1, 2, 3, 4].map((seed, j) => `${4 * i + j},${kmax},${seed}`)),
    );
    expect(rows.filter((row) => !(Number(row.split(",")[3]) > 0))).toEqual([]);
    // A log for each task: 5, 5 and 2 points.
    const logs = readdirSync(inFolder("array/logs")).sort();
    expect(logs).toEqual([0, 1, 2].map((task) => expect.stringMatching(new RegExp(`^\\d+_${task}\\.log$`))));
    expect(readFileSync(inFolder(`array/logs/${logs[2]}`), "utf8")).toContain("2 points: 2 done; results in");

    weir("sweep", "run", ...points, "--out", inFolder("local"), "--jobs", "1", "--quiet");
    const results = readdirSync(inFolder("local")).filter((name) => /^[0-9a-f]{32}\.json$/.test(name));
    expect(results).toHaveLength(12);
    // Bytes of a result, without the part that says when and where it was made.
    const bytesOf = (file: string) => {
      const { made, ...result } = JSON.parse(readFileSync(inFolder(file), "utf8"));
      expect(made).toMatchObject({ host: { node: process.version } });
      return JSON.stringify(result);
    };
    for (const name of results) expect(bytesOf(`array/${name}`)).toBe(bytesOf(`local/${name}`));
  });
});
