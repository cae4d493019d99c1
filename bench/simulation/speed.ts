/**
 * Speed and memory of simulations in virtual time: `npm run bench:sim -- [options]`, see docs/evidence/performance-sim.md.
 *
 * Each case runs in a fresh process, in turns: all cases once, then all again, as often as --rounds says; figures are medians.
 * A hop is a frame put on a link, acknowledgements, CNPs and PFC frames included.
 */
import { fork } from "node:child_process";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { drawGrid } from "../../src/result/report/table.js";
import { numberIn, pattern } from "../options.js";
import { markdown } from "../table.js";
import { CASES, type Request, type Sample } from "./cases.js";
import { type Peer, parsePeer, runPeer } from "./peer.js";
import { machine, type Outcome, tables } from "./report.js";

interface Options {
  quick: boolean;
  rounds?: number;
  only?: RegExp;
  timeout: number;
  flows?: string;
  fct?: string;
  peer?: Peer[];
  json?: boolean;
  markdown?: boolean;
}

const names = CASES.map(({ name }) => name);
const values = new Command("npm run bench:sim --")
  .description("Speed and memory of simulations in virtual time; figures are medians of the rounds.")
  .option("--quick", "shorter, once", false)
  .option("--rounds <n>", "how often all cases run (default: 3, with --quick 1)", numberIn(1, 1000, true))
  .option("--only <regex>", "names of cases", pattern)
  .option("--timeout <s>", "of one run", numberIn(1, 86_400), 600)
  .option("--flows <file>", "flows (src, dst, size_bytes, start_s) for the 320-host fabric, instead of drawn ones")
  .option("--fct <file>", "completion times to show beside ours for it (size_bytes, fct_ns, standalone_fct_ns)")
  .option(
    "--peer <case=command>",
    'another simulator in turn with a case; its hops are what it prints as "hops N"; repeatable',
    (text, before: Peer[] = []) => [...before, parsePeer(text, names)],
  )
  .option("--json", "JSON instead of tables")
  .option("--markdown", "tables in Markdown")
  .parse()
  .opts<Options>();
const { timeout: limit, peer: peers = [] } = values;
const rounds = values.rounds ?? (values.quick ? 1 : 3);
const chosen = names.filter((name) => values.only?.test(name) ?? true);
const flows = values.flows === undefined ? undefined : resolve(values.flows);

const before = machine();
const outcomes = new Map(chosen.map((name): [string, Outcome] => [name, { name, samples: [], peers: [] }]));
for (let round = 1; round <= rounds; round++) {
  for (const { name, ...outcome } of outcomes.values()) {
    process.stderr.write(`round ${round} of ${rounds}: ${name}\n`);
    try {
      outcome.samples.push(await measure({ name, quick: values.quick, flows }));
      for (const peer of peers.filter((one) => one.name === name)) outcome.peers.push(await runPeer(peer, limit));
    } catch (error) {
      process.stderr.write(`left out: ${(error as Error).message}\n`);
      process.exitCode = 1;
      outcomes.delete(name);
    }
  }
}

const measured = [...outcomes.values()];
const heading = `${before} (at the end: ${machine().split(", ").at(-1)}); medians of ${rounds}`;
if (values.json) {
  process.stdout.write(`${JSON.stringify({ machine: heading, quick: values.quick, outcomes: measured }, null, 2)}\n`);
} else {
  const render = values.markdown ? markdown : drawGrid;
  const parts = tables(measured, values.fct).map((grid) => render(grid));
  process.stdout.write(`${[heading, ...parts].join("\n\n")}\n`);
}

/** One run in a process of its own, which may collect garbage when it is told to. */
function measure(request: Request): Promise<Sample> {
  return new Promise((done, failed) => {
    const child = fork(fileURLToPath(new URL("child.ts", import.meta.url)), [JSON.stringify(request)], {
      execArgv: [...process.execArgv, "--expose-gc"],
      timeout: limit * 1000,
    });
    let sample: Sample | undefined;
    child.on("message", (message) => {
      sample = message as Sample;
    });
    child.on("error", failed);
    child.on("exit", (code, signal) => {
      if (code === 0 && sample !== undefined) done(sample);
      else failed(new Error(`${request.name}: ${signal === null ? `exit status ${code}` : `ended by ${signal}`}`));
    });
  });
}
