/** `weir collective`: collective operations on a simulated network, in the columns of nccl-tests. */
import { resolve } from "node:path";
import { formatSize, parseSize } from "../base/units.js";
import { collectiveNumbers, kBusFactors } from "../result/collective_numbers.js";
import { type NetworkCounts, networkCounts } from "../result/counts.js";
import { type RecalledResult, recalledReasons } from "../result/recalled_result.js";
import { fixed, percent } from "../result/report/format.js";
import { StatusLine } from "../result/report/status_line.js";
import { drawGrid, type Grid } from "../result/report/table.js";
import {
  algorithmsOf,
  type CollectiveAlgorithm,
  type CollectiveOperation,
} from "../scenario/graphs/collectives/add.js";
import { kBarrierSize, kDefaultSize } from "../scenario/graphs/job_schema.js";
import { type LoadedScenario, loadScenario } from "../scenario/scenario.js";
import { type AddVerb, asUsage, type CliContext, collect, kExit, print, UsageError, warn } from "./context.js";
import { integer } from "./device_options.js";
import { addFastForward, boundOf, type FastForwardChoice, fastForwardOf } from "./fast_forward.js";
import { kNames, type NetworkKind, networkOption, networkResults } from "./graph_network.js";
import { addPlacement, type GraphChoice, graphOverrides } from "./graph_options.js";
import { parsed } from "./quantity.js";
import { StopSignals } from "./stop_signals.js";
import { addTrustOption, readyToRun, type TrustOptions } from "./trust.js";

/** Algorithm, or `auto`: what NCCL would choose. */
type Wanted = CollectiveAlgorithm | "auto";

interface Choice extends GraphChoice, FastForwardChoice, TrustOptions {
  size?: number[];
  factor: number;
  algorithm?: Wanted[];
  channels?: number;
  chunk?: string;
  tuner?: string;
  iterations: number;
  rate: string;
  delay: string;
  network: NetworkKind;
  set?: string[];
  threads?: number;
  json?: boolean;
  quiet?: boolean;
}

interface Row {
  bytes: number;
  algorithm: Wanted;
  ran: string;
  time_us: number | undefined;
  algbw_GBps: number | undefined;
  busbw_GBps: number | undefined;
  ideal_us: number | undefined;
  slowdown: number | undefined;
  pfc_sent?: number;
  ecn_marked?: number;
  lost?: number;
  /** With --fast-forward: part of the bytes that came from memory, and of what was known that was simulated as well, its measured error, and why it is not to be believed. */
  skipped?: number;
  verified?: number;
  error?: number | undefined;
  reasons?: string[];
}

const kHelp = `
Columns are those of nccl-tests: algbw is size / time, busbw what each rank's link had to carry of it. Without --fabric all ranks are on one
switch.

Examples:
  weir collective allreduce --ranks 8
  weir collective allreduce --ranks 64 --size 1MB..1GB --algorithm ring,tree --fabric examples/collectives/fat-tree-64.yaml
  weir collective alltoall --ranks 16 --size 64MB --network ideal
  weir collective allreduce --ranks 32 --set congestion.algorithm=hpcc
  weir collective allreduce --ranks 64 --iterations 100 --fast-forward auto
`;

export const addCollective: AddVerb = (parent, context, done) => {
  const verb = addPlacement(addTrustOption(parent.command("collective")))
    .description("collective operations on a simulated network, in the columns of nccl-tests")
    .argument("<operation>", Object.keys(kBusFactors).join(", "))
    .option("--size <size>", "one, or a range: 1MB..1GB (default: 1MB; of a barrier 8B)", sizes)
    .option("--factor <n>", "from one size of the range to the next", integer("--factor", 2, 1024), 2)
    .option("--algorithm <names>", "one or several: ring,tree,... (default: the operation's first)", (text) =>
      text.split(","),
    )
    .option("--tuner <file>", "rules of NCCL's example tuner plugin (CSV), which decide before auto does")
    .option(
      "--channels <n>",
      "rings or trees among which the data are divided (default: 1)",
      integer("--channels", 1, 64),
    )
    .option("--chunk <size>", "most of a message; longer ones are sent in parts (default: no limit)")
    .option(
      "--iterations <n>",
      "how often, one after another; the time is of one",
      integer("--iterations", 1, 100_000),
      1,
    )
    .option("--fabric <file>", "scenario whose network it runs on")
    .option("--rate <rate>", "without --fabric: of the links", "100Gbps")
    .option("--delay <time>", "without --fabric: of each link", "500ns")
    .addOption(networkOption())
    .option("--set <path=value>", "override a field of the scenario, repeatable", collect)
    .option("--threads <n>", "that carry it out", integer("--threads", 1, 128))
    .option("--json", "one JSON document on stdout instead of the table")
    .option("--quiet", "no progress")
    .addHelpText("after", kHelp)
    .action(async (operation: string, choice: Choice) => done(await run(context, operation, choice)));
  addFastForward(verb, "take phases that are known from memory, and judge that", "three stretches of all messages");
};

async function run(context: CliContext, name: string, choice: Choice): Promise<number> {
  const operation = known(name);
  const usual: readonly Wanted[] = choice.tuner === undefined ? algorithmsOf(operation).slice(0, 1) : ["auto"];
  const algorithms = choice.algorithm ?? usual;
  for (const algorithm of algorithms) {
    if (algorithm !== "auto" && !algorithmsOf(operation).includes(algorithm)) {
      throw new UsageError(
        `--algorithm ${algorithm}: ${operation} has ${algorithmsOf(operation).join(", ")}, and auto`,
      );
    }
  }
  const skipping = fastForwardOf(choice);
  if (skipping.fastForward !== undefined && choice.network !== "packets") {
    throw new UsageError(`--fast-forward: not with --network ${choice.network}`, { hint: "it has no packets to skip" });
  }
  const { fabric, set = [], withTraffic = false } = choice;
  if (withTraffic && fabric === undefined) throw new UsageError("--with-traffic: not without --fabric");
  if (fabric !== undefined) {
    const { scenario } = asUsage(() => loadScenario(fabric, { set }));
    const { congestion, programs } = scenario;
    const running = { congestion, programs: withTraffic ? programs : [] };
    const elevated = await readyToRun(context, fabric, [running], ["sim"], choice);
    if (elevated !== undefined) return elevated;
  }
  const stop = new StopSignals(context, choice.quiet ?? false);
  const status = choice.quiet ? undefined : new StatusLine(context.stderr);
  const rows: Row[] = [];
  const warned = new Set<string>();
  try {
    for (const bytes of range(choice.size ?? [operation === "barrier" ? kBarrierSize : kDefaultSize], choice.factor)) {
      for (const algorithm of algorithms) {
        if (stop.signal.aborted) break;
        const loaded = asUsage(() => load(operation, algorithm, bytes, choice));
        for (const text of loaded.warnings) {
          if (!warned.has(text)) warn(context, text);
          warned.add(text);
        }
        status?.show(() => `${operation} by ${algorithm}, ${formatSize(bytes)}`);
        const row = await measure(context, loaded, { operation, algorithm, bytes }, choice, stop.signal);
        for (const reason of row.reasons ?? []) warn(context, `${algorithm}, ${formatSize(bytes)}: ${reason}`);
        rows.push(row);
      }
    }
  } finally {
    status?.close();
    stop.release();
  }
  print(context, choice.json, { operation, network: choice.network, rows }, (color) =>
    drawGrid(gridOf(operation, rows, choice), color),
  );
  if (stop.status !== undefined) return stop.status;
  const valid = ({ time_us, reasons = [] }: Row) => time_us !== undefined && reasons.length === 0;
  return rows.every(valid) ? kExit.ok : kExit.invalid;
}

function known(name: string): CollectiveOperation {
  const names = Object.keys(kBusFactors) as CollectiveOperation[];
  const found = names.find((one) => one === name || one === name.replace(/[-_]/g, ""));
  if (found === undefined) throw new UsageError(`${name} is no collective`, { hint: `use ${names.join(", ")}` });
  return found;
}

function load(operation: CollectiveOperation, algorithm: string, bytes: number, choice: Choice): LoadedScenario {
  const { ranks, channels, chunk, iterations, fabric, set = [] } = choice;
  const entry = {
    pattern: "collective",
    collective: operation,
    size: bytes,
    algorithm,
    iterations,
    ...(ranks !== undefined && { ranks }),
    ...(channels !== undefined && { channels }),
    ...(chunk !== undefined && { chunk }),
    ...(choice.tuner !== undefined && algorithm === "auto" && { tuner: resolve(choice.tuner) }),
  };
  const own = graphOverrides(fabric ?? "", choice, entry, operation);
  if (fabric !== undefined) return loadScenario(fabric, { set: [...own, ...set] });
  return loadScenario("collective.yaml", { text: starOf(choice), set: [...own, ...set] });
}

/** One switch, with room for each port's headroom. */
function starOf({ ranks = 8, perHost = 1, rate, delay }: Choice): string {
  const hosts = Math.max(2, Math.ceil(ranks / perHost));
  return `topology: { kind: star, hosts: ${hosts}, link: { rate: ${rate}, delay: ${delay}, mtu: 9000 } }
host: { path_mtu: 4096 }
switch: { buffer: { total: ${Math.max(16, hosts)}MB, headroom: auto }, pfc: { priorities: [3] } }
`;
}

async function measure(
  context: CliContext,
  { scenario }: LoadedScenario,
  { operation, algorithm, bytes }: { operation: CollectiveOperation; algorithm: Wanted; bytes: number },
  choice: Choice,
  signal: AbortSignal,
): Promise<Row> {
  const [job] = scenario.graphs;
  const { sim } = await context.clocks();
  const result =
    choice.network === "packets"
      ? (await sim.run(scenario, { signal, threads: choice.threads ?? "auto", ...fastForwardOf(choice) })).result
      : networkResults(context, scenario, choice.network);
  const [graph] = result.graphs ?? [];
  const seconds = graph?.time_s === undefined ? undefined : graph.time_s / choice.iterations;
  const numbers = collectiveNumbers(operation, bytes, job?.hosts.length ?? 1, seconds);
  return {
    bytes,
    algorithm,
    // With auto it says which it was.
    ran: graph?.source ?? "",
    ...numbers,
    ideal_us: graph?.ideal_s === undefined ? undefined : (graph.ideal_s * 1e6) / choice.iterations,
    slowdown: graph?.slowdown,
    ...("switches" in result && counted(networkCounts(result))),
    ...("fast_forward_graphs" in result && result.fast_forward_graphs && skippedOf(result.fast_forward_graphs)),
  };
}

const skippedOf = (recalled: RecalledResult) => ({
  skipped: recalled.skipped,
  verified: recalled.verified.reached,
  error: recalled.errors?.mean,
  reasons: recalledReasons(recalled),
});

const counted = ({ pfc_sent, ecn_marked, lost }: NetworkCounts) => ({ pfc_sent, ecn_marked, lost });

function gridOf(operation: CollectiveOperation, rows: readonly Row[], choice: Choice): Grid {
  const { network } = choice;
  const skips = boundOf(choice) !== undefined;
  const figure = (value: number | undefined) => (value === undefined ? "not ended" : fixed(value));
  const packets = network === "packets";
  const name = kNames[network];
  return {
    title: `${operation}, sizes in bytes, float sum, bandwidths in GB/s${name === undefined ? "" : `; ${name}`}`,
    head: [
      "size",
      "count",
      "algorithm",
      "time us",
      "algbw",
      "busbw",
      "ideal us",
      ...(network === "ideal" ? [] : ["slowdown"]),
      ...(packets ? ["PFC sent", "marked", "lost"] : []),
      ...(skips ? ["from memory", "verified", "error"] : []),
    ],
    names: 1,
    rows: rows.map((row) => [
      String(row.bytes),
      String(Math.floor(row.bytes / 4)),
      row.algorithm === "auto" ? `auto: ${row.ran}` : row.algorithm,
      figure(row.time_us),
      figure(row.algbw_GBps),
      figure(row.busbw_GBps),
      figure(row.ideal_us),
      ...(network === "ideal" ? [] : [figure(row.slowdown)]),
      ...(packets ? [String(row.pfc_sent), String(row.ecn_marked), String(row.lost)] : []),
      ...(skips
        ? [percent(row.skipped ?? 0), percent(row.verified ?? 0), row.error === undefined ? "-" : percent(row.error)]
        : []),
    ]),
  };
}

/** "1MB..1GB", or one size. */
function sizes(text: string): number[] {
  const ends = text.split("..");
  const bytes = ends.map((one) => parsed("--size", one, parseSize));
  const [first, last] = bytes;
  if (ends.length > 2 || first === undefined || first < 1 || (last !== undefined && last < first)) {
    throw new UsageError(`--size ${text}: not a size, nor a range of rising ones`, {
      hint: "for example 1MB, or 1MB..1GB",
    });
  }
  return bytes;
}

function range([first = 0, last = first]: readonly number[], factor: number): number[] {
  const all: number[] = [];
  for (let bytes = first; bytes <= last; bytes *= factor) all.push(bytes);
  return all;
}
