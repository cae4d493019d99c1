/** A simulation that does as the scenario's description says. */
import { appendFileSync, existsSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { WeirError } from "../../src/base/error.js";
import type { Clock } from "../../src/clocks/clock.js";
import { sampleResult, sampleSeries } from "../result/report/sample.js";

/**
 * Goodput is 1000 times the seed plus kmax, and seed 1 has a field `first`. Words of the description: `refuse` fails; `break` throws; `die-once FILE` and `die`
 * kill the process; `wait MS` takes its time; `sleep` goes on until it is stopped; `log FILE` notes each run; `nothing`
 * completes no transfer and is not valid.
 */
export const fakeSimulate: Clock["run"] = async (scenario, { signal, onProgress }) => {
  const [word, file = ""] = scenario.description.split(" ");
  const kmax = scenario.switches[0]?.ecn.kmax ?? 0;
  onProgress?.({ done: 0.5 });
  if (word === "refuse") throw new WeirError("no such thing");
  if (word === "break") throw new Error("broken");
  if (word === "log") appendFileSync(file, `${scenario.seed}\n`);
  if (word === "die" || (word === "die-once" && !existsSync(file))) {
    if (file !== "") writeFileSync(file, "");
    process.stderr.write("about to die\n");
    process.kill(process.pid, "SIGKILL");
    await sleep(10_000);
  }
  if (word === "wait") await sleep(Number(file));
  if (word === "sleep") await sleep(60_000, undefined, { signal }).catch(() => {});
  const result = sampleResult(2);
  result.seed = scenario.seed;
  result.totals.goodput_bps = 1000 * scenario.seed + kmax;
  if (scenario.seed === 1) result.totals.first = 1;
  if (word === "nothing") {
    const none = { mean: 0, p50: 0, p95: 0, p99: 0, max: 0 };
    result.fct = { count: 0, slowdown: none, fct_us: none, incomplete: 1, bins: [] };
    result.fidelity = { ...result.fidelity, valid: false, reasons: ["nothing to judge: no frame was sent"] };
  }
  return {
    result,
    series: sampleSeries(2, 50),
    flowTable: [],
    performance: {
      cpu_s: performance.now(),
      wall_s: 1,
      events: 1,
      hops: 1,
      threads: 1,
      round_ns: 1,
      rounds: 1,
      rss_bytes: 1,
    },
    complete: !signal.aborted,
  };
};
