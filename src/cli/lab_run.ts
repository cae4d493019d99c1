/** `weir lab run`: runs a scenario on this host, with a live picture, tables and a report. */

import type { Where } from "../base/http/http_server.js";
import type { LabObserver } from "../clocks/lab/access.js";
import { planCaptures } from "../clocks/lab/capture.js";
import { checkForLab, checkScaleOfPart } from "../clocks/lab/check.js";
import { inheritedText } from "../host/rootless.js";
import { harmless } from "../result/report/terminal.js";
import type { RunSource } from "../result/saved_run.js";
import { choosePart } from "../scenario/parts.js";
import type { FileRequest } from "../scenario/places.js";
import { loadScenario } from "../scenario/scenario.js";
import type { Scenario } from "../scenario/types.js";
import type { DashboardAddress } from "../watch/dashboard/address.js";
import type { RunEnd } from "../watch/dashboard/lab_board.js";
import { LabScenario } from "../watch/dashboard/lab_scenario.js";
import { type AddVerb, asUsage, type CliContext, placesAndFiles, UsageError, warn } from "./context.js";
import { runDashboard, unusedFolder } from "./lab_dashboard.js";
import type { LabMetrics } from "./lab_metrics.js";
import { listenOption, openListener, purposeOf } from "./listen_address.js";
import { timeOption } from "./quantity.js";
import { runFolder } from "./run_folder.js";
import { addRunOptions, overridesOf, type RunChoice } from "./run_options.js";
import { runScenario, untilStopped } from "./run_scenario.js";
import { load, readScenario } from "./scenario_file.js";
import { addTrustOption, askForTrust, type TrustOptions } from "./trust.js";

interface LabChoice extends RunChoice, TrustOptions {
  capture?: FileRequest[];
  dashboard?: DashboardAddress;
  metrics?: Where;
  part?: string;
  wait?: number;
}

const kDefaultWaitNs = 60e9;

const kExamples = `
Examples:
  weir lab run incast.yaml
  weir lab run incast.yaml --scale auto --duration 100ms
  weir lab run incast.yaml --set congestion.profile=mlx5 --set switch.ecn.kmax=100KB
  weir lab run incast.yaml --json --quiet | jq .totals
  weir lab run incast.yaml --capture sw:sw.pcapng          with comments on ECN, CNP and PFC, for Wireshark
  weir lab run incast.yaml --metrics            Prometheus scrapes http://127.0.0.1:9469/metrics
  weir lab run incast.yaml --part rack1         on this machine; rack2 on another, and then: weir lab merge
  weir lab run incast.yaml --dashboard          watch it in a browser, change parameters, run it again

Ctrl-C stops the traffic and still writes what there was until then, marked invalid (exit status 130); once more quits at once.
`;

export const addLabRun: AddVerb = (lab, context, done) => {
  addTrustOption(addRunOptions(lab.command("run")))
    .description("run a scenario and report")
    .option("--seed <n>", "as --set seed=<n>")
    .option("--scale <n|auto>", "as --set scale=<n>: rates divided, times multiplied by it")
    .option("--part <name>", "run this part of the scenario, and wait until the others run; then weir lab merge")
    .option(
      "--wait <time>",
      "with --part: how long to wait for the others, wall time (default: 60s)",
      timeOption("--wait", { least: 1e9, most: 86_400e9 }),
    )
    .option(
      "--capture <link|node:file>",
      "write frames to a pcap or pcapng file, repeatable",
      placesAndFiles("--capture", "sw:sw.pcap"),
    )
    .addOption(
      listenOption(
        "dashboard",
        9468,
        "serve a page that shows it live, until Ctrl-C; other hosts need the token in the URL printed",
      ),
    )
    .addOption(listenOption("metrics", 9469, "serve Prometheus at /metrics, and /healthz, while it runs"))
    .addHelpText("after", kExamples)
    .action(async (file: string, options: LabChoice) => done(await run(context, file, options)));
};

async function run(context: CliContext, file: string, options: LabChoice): Promise<number> {
  const set = overridesOf(options);
  const text = inheritedText() ?? readScenario(file);
  const { part } = options;
  const chosen = (whole: Scenario) => (part === undefined ? whole : choosePart(whole, part));
  checkOptions(options);
  // A bad scenario is told before rights are asked for; warnings are told by the process that runs it.
  const asked = asUsage(() => {
    const scenario = chosen(loadScenario(file, { set, text }).scenario);
    checkForLab(scenario);
    checkScaleOfPart(scenario);
    planCaptures(scenario, options.capture ?? [], "");
    return scenario;
  });
  await askForTrust(context, file, [asked], options);
  const listeners = Object.entries({ dashboard: options.dashboard, metrics: options.metrics }).flatMap(
    ([name, where]) => (where === undefined ? [] : [[name, () => openListener(where, purposeOf(name))] as const]),
  );
  const elevated = await context.elevate({ text, listeners: Object.fromEntries(listeners) });
  if (elevated !== undefined) return elevated;
  const scenario = chosen(load(context, file, set, text).scenario);
  const { metrics: at } = options;
  // The module is loaded when needed, with the packages behind it.
  const metrics = at && (await (await import("./lab_metrics.js")).LabMetrics.open(context, at, scenario.name));
  try {
    const { dashboard: where } = options;
    return where === undefined
      ? await runAlone(context, options, { text, set, scenario }, metrics)
      : await withDashboard(context, options, LabScenario.parse(file, text, set), where, metrics);
  } finally {
    metrics?.close();
  }
}

function checkOptions({ part, wait, dashboard }: LabChoice): void {
  if (wait !== undefined && part === undefined) throw new UsageError("--wait is for --part");
  if (part !== undefined && dashboard !== undefined) {
    throw new UsageError("--dashboard runs a scenario again and again, and a part of one runs once", {
      hint: "weir top, weir show and --metrics show a part while it runs",
    });
  }
}

/** Name of the run's folder. */
const nameOf = ({ name, part }: Scenario) => (part === undefined ? name : `${name}-${part}`);

function runAlone(
  context: CliContext,
  options: LabChoice,
  source: RunSource,
  metrics: LabMetrics | undefined,
): Promise<number> {
  const directory = options.out ?? runFolder(nameOf(source.scenario), new Date());
  return untilStopped(context, options, (signal) => runOnce(context, options, source, directory, signal, metrics));
}

/** The first run takes the usual folder of a run, the others one beside it. */
function withDashboard(
  context: CliContext,
  options: LabChoice,
  settings: LabScenario,
  where: DashboardAddress,
  metrics: LabMetrics | undefined,
): Promise<number> {
  return runDashboard(context, settings, where, options.quiet === true, ({ id, scenario, set, signal, observer }) => {
    const folder = options.out ?? runFolder(nameOf(scenario), new Date());
    const directory = id === 1 ? folder : unusedFolder(folder);
    return runOnce(context, options, { text: settings.text, set, scenario }, directory, signal, metrics, [observer]);
  });
}

async function runOnce(
  context: CliContext,
  options: LabChoice,
  source: RunSource,
  directory: string,
  signal: AbortSignal,
  metrics: LabMetrics | undefined,
  observers: readonly LabObserver[] = [],
): Promise<RunEnd & { complete: boolean; status: number }> {
  const { LiveView } = await import("../clocks/lab/live_view.js");
  const view = options.quiet ? undefined : new LiveView(context.stderr, { scenario: source.scenario.name });
  const { result, complete, status } = await runScenario(context, options, {
    clock: (await context.clocks()).wire,
    source,
    directory,
    progress: view,
    options: {
      view,
      observers: metrics === undefined ? observers : [metrics, ...observers],
      control: {
        warn: (text) => (options.quiet ? undefined : warn(context, text)),
        ...(metrics && { metrics: metrics.url }),
      },
      signal,
      part: {
        patience: options.wait ?? kDefaultWaitNs,
        tell: (text) => (options.quiet ? undefined : void context.stderr.write(`${harmless(text)}\n`)),
        warn: (text) => warn(context, text),
      },
      capture: options.capture,
    },
    warnings: ({ fidelity }) => fidelity.capture_errors?.map((error) => `the capture is cut short: ${error}`) ?? [],
  });
  return { folder: directory, valid: result.fidelity.valid, complete, status };
}
