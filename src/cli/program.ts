/** The command line: verbs, help, and how a run of weir ends. */
import { extname } from "node:path";
import { Command, CommanderError } from "commander";
import { packageVersion } from "../base/package_version.js";
import { type AddVerb, type CliContext, describeError, exitStatusOf, kExit } from "./context.js";

const kExamples = `
Examples:
  weir validate incast.yaml                     is the scenario sound?
  weir lab run incast.yaml                      run it on this host, live picture, report at the end
  weir lab run incast.yaml --set switch.ecn.kmax=100KB --json
  weir sim run incast.yaml                      the same in virtual time, at full rate
  weir plan check incast.yaml                   is it lossless, and does ECN act before PFC?
  weir model run incast.yaml                    the same by the equations of the DCQCN paper
  weir profiles                                 DCQCN parameter sets and where they are from
  weir paper list                               figures of papers, run again and judged

Exit status: 0 ok, 1 failure at run time, 2 bad usage, a bad file, or one that is not there, 3 finished but invalid (the host was the
bottleneck), 4 finished, but not as the scenario expects, 130 and 143 after SIGINT and SIGTERM.
`;

/**
 * weir for one command line: with the verb that it asks for, or with all of them where help may be wanted, or completions. `done`
 * is called with the exit status of the verb that runs.
 */
export async function makeProgram(
  argv: readonly string[],
  context: CliContext,
  done: (status: number) => void,
): Promise<Command> {
  const program = new Command("weir")
    .description(
      "A software RoCEv2 NIC and lossless Ethernet switch: DCQCN, ECN and PFC, on this host and in virtual time.",
    )
    .version(packageVersion(), "-V, --version")
    // An option behind a verb belongs to the verb, whatever its name.
    .enablePositionalOptions()
    .addHelpText("after", kExamples)
    .configureOutput({
      writeOut: (text) => void context.stdout.write(text),
      writeErr: (text) => void context.stderr.write(text),
      outputError: (text, write) => write(text + runHint(argv, text)),
    })
    .exitOverride()
    .showHelpAfterError("(weir --help lists verbs and examples)");
  if (asksForVersion(argv)) return program;
  const asked = Object.hasOwn(kVerbs, argv[0] ?? "") ? kVerbs[argv[0] as string] : undefined;
  for (const verb of asked === undefined ? Object.values(kVerbs) : [asked])
    (await verb(argv[1]))(program, context, done);
  if (asked !== undefined) return program;
  const { addCompletion, asksForCompletions, kNothingRuns, namesOfRunning } = await import("./completion.js");
  addCompletion(program, asksForCompletions(argv) ? await namesOfRunning() : kNothingRuns, argv);
  return program;
}

/** Runs one command line, without the program's name, and returns the exit status. Never throws. */
export async function runCli(argv: readonly string[], context: CliContext): Promise<number> {
  let status: number = kExit.ok;
  const program = await makeProgram(argv, context, (value) => {
    status = value;
  });
  try {
    await program.parseAsync(asksForVersion(argv) ? ["--version"] : argv, { from: "user" });
    return status;
  } catch (error) {
    // Commander has printed its own errors; help and version are no errors.
    if (error instanceof CommanderError) return error.exitCode === 0 ? kExit.ok : kExit.usage;
    context.stderr.write(describeError(error));
    return exitStatusOf(error);
  }
}

/** Tells whether it asks for the version, perhaps in a way of other commands. */
function asksForVersion([only, ...rest]: readonly string[]): boolean {
  return rest.length === 0 && ["--version", "-V", "version", "-v"].includes(only ?? "");
}

/** Verbs that run a scenario, below each verb that may have been meant by `weir VERB FILE`; "": no verb was given. */
const kRuns: Readonly<Record<string, readonly string[]>> = {
  "": ["lab run", "sim run"],
  lab: ["lab run"],
  sim: ["sim run"],
  model: ["model run"],
  plan: ["plan check"],
};

/** Hint for a user who leaves out a verb, or the second word of one (`weir x.yaml`, `weir lab x.yaml`), or asks for one that is gone. */
function runHint(argv: readonly string[], error: string): string {
  const unknown = /^error: unknown command '(.*)'/.exec(error)?.[1];
  if (argv[0] === "model" && unknown === "sweep") return "  hint: weir paper dcqcn-fig11, or weir paper dcqcn-fig12\n";
  if (unknown === undefined || !/\.(ya?ml|json)$/.test(unknown)) return "";
  const runs = kRuns[argv[0] === unknown ? "" : (argv[0] ?? "")] ?? [];
  return runs.length === 0 ? "" : `  hint: ${runs.map((verb) => `weir ${verb} ${unknown}`).join(", or ")}\n`;
}

/**
 * The verb of papers. They are proof, and no part of the product, which is made without knowing them: when built they are in
 * dist/ with it, as sources they are beside src/.
 */
const kPapers = extname(import.meta.url) === ".ts" ? "../../papers/cli/paper.ts" : "../papers/paper.js";

/**
 * Verbs, in the order of the help, with the word behind them. A file is loaded where its verb is asked for: loading the modules of
 * others takes longer than many a verb.
 */
const kVerbs: Readonly<Record<string, (next: string | undefined) => Promise<AddVerb>>> = {
  lab: async (next) => (await import("./lab.js")).labWith(next),
  sim: async () => (await import("./sim.js")).addSim,
  model: async () => (await import("./model.js")).addModel,
  collective: async () => (await import("./collective.js")).addCollective,
  graph: async () => (await import("./graph.js")).addGraph,
  switch: async () => (await import("./switch.js")).addSwitch,
  nic: async () => (await import("./switch.js")).addNic,
  run: async () => (await import("./run.js")).addRun,
  record: async () => (await import("./record.js")).addRecord,
  "device-plugin": async () => (await import("./device_plugin.js")).addDevicePlugin,
  top: async () => (await import("./top.js")).addTop,
  show: async () => (await import("./show.js")).addShow,
  fault: async () => (await import("./fault.js")).addFault,
  clear: async () => (await import("./clear.js")).addClear,
  capture: async () => (await import("./capture.js")).addCapture,
  validate: async () => (await import("./validate.js")).addValidate,
  convert: async () => (await import("./convert.js")).addConvert,
  schema: async () => (await import("./schema.js")).addSchema,
  profiles: async () => (await import("./profiles.js")).addProfiles,
  plan: async () => (await import("./plan.js")).addPlan,
  report: async () => (await import("./report.js")).addReport,
  compare: async () => (await import("./compare.js")).addCompare,
  versus: async () => (await import("./versus.js")).addVersus,
  tune: async () => (await import("./tune.js")).addTune,
  sweep: async () => (await import("./sweep.js")).addSweep,
  paper: async () => ((await import(kPapers)) as { addPaper: AddVerb }).addPaper,
  perf: async () => (await import("./perf.js")).addPerf,
  ping: async () => (await import("./ping.js")).addPing,
  probe: async () => (await import("./probe.js")).addProbe,
  storm: async () => (await import("./storm.js")).addStorm,
  doctor: async () => (await import("./doctor.js")).addDoctor,
};
