/**
 * Speed and memory of simulations in virtual time: `npm run bench:sim -- [options]`, see docs/evidence/performance-sim.md.
 *
 * Each case runs in a fresh process, in turns: all cases once, then all again, as often as --rounds says; figures are medians.
 * A hop is a frame put on a link, acknowledgements, CNPs and PFC frames included.
 *
 * --quick: shorter, once.  --rounds N (3).  --only REGEX: names of cases.  --timeout S: of one run (600).
 * --flows FILE: a list of flows (src, dst, size_bytes, start_s) for the 320-host fabric, instead of drawn ones.
 * --fct FILE: completion times to show beside ours for it (size_bytes, fct_ns, standalone_fct_ns).
 * --peer CASE=COMMAND: runs another simulator in turn with a case, repeatable. CPU time is that of the command; its hops are
 *   what it prints as "hops N".
 * --json, --markdown: the form of the output.
 */
import { fork } from "node:child_process";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { drawGrid } from "../../src/report/table.js";
import { markdown } from "../table.js";
import { CASES, type Request, type Sample } from "./cases.js";
import { parsePeer, runPeer } from "./peer.js";
import { machine, type Outcome, tables } from "./report.js";

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    only: { type: "string", default: "" },
    timeout: { type: "string", default: "600" },
    flows: { type: "string" },
    fct: { type: "string" },
    peer: { type: "string", multiple: true, default: [] },
    json: { type: "boolean", default: false },
    markdown: { type: "boolean", default: false },
  },
});
const rounds = atLeastOne("rounds", values.rounds ?? (values.quick ? "1" : "3"));
const limit = atLeastOne("timeout", values.timeout);
const chosen = CASES.filter(({ name }) => new RegExp(values.only).test(name)).map(({ name }) => name);
const peers = values.peer.map((given) => parsePeer(given, chosen));
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

function atLeastOne(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} ${text}: a whole number from 1`);
  return value;
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
