/** A worker process of `weir paper all` with experiments that do what their names say, and a log of what runs when. */
import { appendFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import type { RunOptions } from "../../../src/clocks/clock.js";
import type { Scenario } from "../../../src/scenario/types.js";
import { serveExperiments } from "../all/serve.js";
import { kAllFakes } from "./all_fakes.js";
import { fakeOutcome, fakeRunners, invalid } from "./fakes.js";

const log = (line: string) => appendFileSync(process.env.WEIR_FAKE_LOG as string, `${line}\n`);

async function run({ description }: Scenario, clock: string, { signal, onProgress }: RunOptions) {
  onProgress?.({ done: 0 });
  const name = `${description} ${clock}`;
  log(`+ ${name}`);
  if (description === "crash") process.exit(7);
  if (description === "bug") throw new TypeError("a bug");
  await wait(description === "endless" ? 60_000 : 100, undefined, { signal });
  log(`- ${name}`);
  return fakeOutcome(description === "late" ? invalid("the host was late") : {});
}

serveExperiments((id) => kAllFakes.find((one) => one.id === id), {
  ...fakeRunners,
  wire: { run: (scenario, options) => run(scenario, "wire", options) },
  sim: { run: (scenario, options) => run(scenario, "sim", options) },
});
