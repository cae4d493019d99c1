/** `weir record`: programs as they are, and their messages as a graph that runs elsewhere. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { starText } from "../fixtures/networks.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import { eventually } from "../patience.js";
import { liveObstacle } from "./capability.js";
import { freePort, weir } from "./daemons.js";
import { fabric, runBy } from "./program_runs.js";
import { folder } from "./weir.js";

describeUnless(liveObstacle() ?? lacking("perftest"), "weir record", () => {
  it("makes a graph of two programs, which a simulation carries out", async () => {
    const nics = await fabric();
    const [recording, output] = [folder(), join(folder(), "perf.goal")];
    const command = ["ib_send_lat", "-n", "50", "-s", "4096", "-p", String(await freePort())];
    const way = { env: { WEIR_RECORD: recording } };
    const server = runBy(way, nics.b, ...command);
    // The server may not listen yet.
    await eventually(async () => {
      const { status, output: said } = await runBy(way, nics.a, ...command, "127.0.0.1").ended;
      expect(status, said).toBe(0);
    });
    expect((await server.ended).status).toBe(0);
    const made = await weir("record", "-o", output, "--from", recording).finished;
    expect(made, made.stderr).toMatchObject({ status: 0, stdout: "" });
    const shown = JSON.parse((await weir("graph", "show", output, "--json").finished).stdout);
    // A ping and a pong each time.
    expect(shown).toMatchObject({ ranks: 2, sends: 100, receives: 100, bytes: 100 * 4096 });
    const scenario = join(folder(), "star.yaml");
    writeFileSync(
      scenario,
      `name: star\ntopology: ${starText(["a", "b"], { rate: "400Gbps", delay: "1us" })}\ncongestion: { algorithm: none }\n`,
    );
    const replayed = weir(
      "sim",
      "run",
      output,
      "--fabric",
      scenario,
      "--calculation",
      "0",
      "--json",
      "--quiet",
      "--out",
      folder(),
    );
    const [graph] = JSON.parse((await replayed.finished).stdout).graphs;
    // Each message waits for the one before: two cables and its bytes, twice.
    expect(graph.time_s).toBeGreaterThan(100 * (2e-6 + (4096 * 8) / 400e9));
    expect(graph.critical.messages).toBeGreaterThanOrEqual(99);
    expect(graph).toMatchObject({ ranks: 2, messages: 100 });
  });
});
