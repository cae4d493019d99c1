import { formatTime, parseTime } from "../base/units.js";
import { phaseEffect } from "../clocks/sim/phase_effect.js";
import type { SimPerformance } from "../clocks/sim/types.js";
import { inheritedText } from "../host/rootless.js";
import { kMostThreads } from "../native/simulation_types.js";
import { fastForwardLine, sharesWarning } from "../result/fast_forward_result.js";
import { recalledLine } from "../result/recalled_result.js";
import { count, fixed, percent } from "../result/report/format.js";
import { type FileRequest, findPlaces } from "../scenario/places.js";
import { loadScenario } from "../scenario/scenario.js";
import { type AddVerb, asUsage, type CliContext, placesAndFiles, UsageError, warn } from "./context.js";
import { integer } from "./device_options.js";
import { addFastForward, type FastForwardChoice, fastForwardOf } from "./fast_forward.js";
import { type NetworkKind, networkOption, tellNetwork } from "./graph_network.js";
import { addPlacement, type FileChoice, scenarioOf } from "./graph_options.js";
import { parsed } from "./quantity.js";
import { runFolder } from "./run_folder.js";
import { addRunOptions, overridesOf, type RunChoice } from "./run_options.js";
import { runScenario, untilStopped } from "./run_scenario.js";
import { readScenario } from "./scenario_file.js";
import { ProgressLine } from "./sim_progress.js";
import { addTrustOption, readyToRun, type TrustOptions } from "./trust.js";

interface SimChoice extends RunChoice, TrustOptions, FileChoice, FastForwardChoice {
  network: NetworkKind;
  timeline?: boolean;
  until?: number;
  trace?: FileRequest[];
  threads?: number;
}

const kExamples = `
Examples:
  weir sim run incast.yaml
  weir sim run incast.yaml --seed 7 --duration 100ms --set warmup=20ms
  weir sim run fabric.yaml --until 1ms                     only the first millisecond
  weir sim run incast.yaml --trace r--sw:r.pcapng          frame headers, for Wireshark
  weir sim run incast.yaml --series-format arrow           series for pandas, R, DuckDB
  weir sim run incast.yaml --duration 10s --fast-forward auto
  weir sim run incast.yaml --json --quiet | jq .fct.slowdown
  weir sim run train.goal --fabric fat-tree.yaml --fast-forward auto
  weir sim run train.goal --fabric fat-tree.yaml --place round-robin

Ctrl-C stops at the time reached and still writes the results so far (exit status 130); once more quits at once.
`;

export const addSim: AddVerb = (parent, context, done) => {
  const sim = parent.command("sim").description("simulate networks in virtual time, with the code of the wire");
  const verb = addPlacement(addTrustOption(addRunOptions(sim.command("run"))))
    .description("simulate a scenario, or a message graph on the network of one, and report")
    .option("--fabric <file>", "the file is a message graph, and this scenario has its network")
    .addOption(networkOption())
    .option("--size <size>", "of the collective of an MSCCL algorithm (default: 1MB)")
    .option("--calculation <factor>", "of the times of all calculations of the graph (default: 1)")
    .option("--timeline", "write timeline.json, for Perfetto and Chrome, however long it is")
    .option("--seed <n>", "as --set seed=<n>")
    .option("--until <time>", "end the run at this time, whatever the duration", until)
    .option(
      "--trace <link|node:file>",
      "write frame headers, with payload where programs run, to a pcapng file, repeatable",
      placesAndFiles("--trace", "sw:sw.pcapng"),
    )
    .option(
      "--threads <n>",
      "that carry it out, with the same result (default: the CPUs, fewer for a network that is too small to gain)",
      integer("--threads", 1, kMostThreads),
    )
    .addHelpText("after", kExamples)
    .action(async (file: string, options: SimChoice) => done(await run(context, file, options)));
  addFastForward(
    verb,
    "skip time in which long flows do the same, or phases of message graphs that are known, and judge that",
    "0.2% of the time; of a graph three stretches of all messages",
  );
};

async function run(context: CliContext, named: string, options: SimChoice): Promise<number> {
  const skipping = fastForwardOf(options);
  const { sim: clock } = await context.clocks();
  const chosen = scenarioOf(named, options);
  const { file } = chosen;
  const set = [...chosen.set, ...overridesOf(options)];
  const text = inheritedText() ?? readScenario(file);
  const { scenario, warnings } = asUsage(() => loadScenario(file, { set, text }));
  const { network } = options;
  if (network === "packets") {
    asUsage(() => clock.check(scenario));
    // The process that runs it tells its warnings.
    const elevated = await readyToRun(context, file, [scenario], ["sim"], options, { text });
    if (elevated !== undefined) return elevated;
  }
  for (const warning of warnings) warn(context, warning);
  if (network !== "packets") return tellNetwork(context, options.json, scenario, network);
  const { trace, threads = "auto" } = options;
  for (const { target } of trace ?? []) asUsage(() => findPlaces(scenario.links, target, "--trace"));
  if (options.until !== undefined && options.until <= scenario.warmup) {
    warn(
      context,
      `--until ${formatTime(options.until)} is within the warm-up of ${formatTime(scenario.warmup)}: ` +
        "rates will be 0; use --set warmup=...",
    );
  }
  const directory = options.out ?? runFolder(scenario.name, new Date());
  const progress = options.quiet ? undefined : new ProgressLine(context.stderr, scenario.name);
  return untilStopped(context, options, (signal) =>
    runScenario(context, options, {
      clock,
      source: { text, set, scenario },
      directory,
      progress,
      options: {
        signal,
        onProgress: progress && ((reached) => progress.update(reached)),
        until: options.until,
        threads,
        trace,
        timeline: options.timeline,
        ...skipping,
      },
      warnings: (result) => [
        ...[phaseEffect(scenario, result) ?? []].flat(),
        ...[(result.fast_forward && sharesWarning(result.fast_forward)) ?? []].flat(),
      ],
      more: ({ performance, result: { fast_forward: flows, fast_forward_graphs: graphs } }) =>
        [
          ...(flows === undefined ? [] : [fastForwardLine(flows)]),
          ...(graphs === undefined ? [] : [recalledLine(graphs)]),
          performanceLine(performance),
        ]
          .map((line) => `${line}\n`)
          .join(""),
    }),
  );
}

/** Returns "performance: 1.24 s CPU, 0.69 s wall, 2 threads (4% waiting), 11.2M hops, 9.03M hops per CPU second, 142 MB". */
function performanceLine({ cpu_s, wall_s, hops, threads, sharing, rss_bytes }: SimPerformance): string {
  const shared = sharing === undefined ? "" : `${threads} threads (${percent(sharing.waiting)} waiting), `;
  return (
    `performance: ${fixed(cpu_s)} s CPU, ${fixed(wall_s)} s wall, ${shared}${count(hops)} hops, ` +
    `${count(hops / Math.max(cpu_s, 1e-6))} hops per CPU second, ${Math.round(rss_bytes / 1e6)} MB`
  );
}

function until(value: string): number {
  const time = Math.round(parsed("--until", value, parseTime));
  if (time <= 0) throw new UsageError(`--until ${value}: must be more than 0`, { hint: "for example --until 10ms" });
  return time;
}
