/** The command line: verbs, help, and how a run of weir ends. */
import { Command, CommanderError } from "commander";
import { packageVersion } from "../base/package_version.js";
import { addCapture } from "./capture.js";
import { addClear } from "./clear.js";
import { addCompare } from "./compare.js";
import { addCompletion, asksForCompletions, kNothingRuns, namesOfRunning } from "./completion.js";
import { type AddVerb, type CliContext, describeError, exitStatusOf, kExit } from "./context.js";
import { addDoctor } from "./doctor.js";
import { addLab } from "./lab.js";
import { addModel } from "./model.js";
import { addPaper } from "./paper.js";
import { addPerf } from "./perf.js";
import { addPing } from "./ping.js";
import { addPlan } from "./plan.js";
import { addProbe } from "./probe.js";
import { addProfiles } from "./profiles.js";
import { addReport } from "./report.js";
import { addRun } from "./run.js";
import { addSchema } from "./schema.js";
import { addShow } from "./show.js";
import { addSim } from "./sim.js";
import { addSweep } from "./sweep.js";
import { addNic, addSwitch } from "./switch.js";
import { addTop } from "./top.js";
import { addValidate } from "./validate.js";

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

Exit status: 0 ok, 1 failure at run time, 2 bad usage or bad scenario, 3 finished but invalid (the host was the
bottleneck), 4 finished, but not as the scenario expects, 130 and 143 after SIGINT and SIGTERM.
`;

/** weir with all its verbs, for one command line; the exit status of the verb that runs is what `done` is called with. */
export function makeProgram(argv: readonly string[], context: CliContext, done: (status: number) => void): Command {
  const program = new Command("weir")
    .description(
      "A software RoCEv2 NIC and lossless Ethernet switch: DCQCN, ECN and PFC, on this host and in virtual time.",
    )
    .version(packageVersion(), "-V, --version")
    // An option behind a verb is the verb's, whatever it is called.
    .enablePositionalOptions()
    .addHelpText("after", kExamples)
    .configureOutput({
      writeOut: (text) => void context.stdout.write(text),
      writeErr: (text) => void context.stderr.write(text),
      outputError: (text, write) => write(text + runHint(argv, text)),
    })
    .exitOverride()
    .showHelpAfterError("(weir --help lists verbs and examples)");
  for (const add of kVerbs) add(program, context, done);
  return program;
}

/** Runs one command line, without the program's name, and returns the exit status. Never throws. */
export async function runCli(argv: readonly string[], context: CliContext): Promise<number> {
  let status: number = kExit.ok;
  const program = makeProgram(argv, context, (value) => {
    status = value;
  });
  addCompletion(program, asksForCompletions(argv) ? await namesOfRunning() : kNothingRuns, argv);
  try {
    await program.parseAsync(asksForVersion(argv) ? ["--version"] : argv, { from: "user" });
    return status;
  } catch (error) {
    // Commander has printed its own errors, and help and version are no errors.
    if (error instanceof CommanderError) return error.exitCode === 0 ? kExit.ok : kExit.usage;
    context.stderr.write(describeError(error));
    return exitStatusOf(error);
  }
}

/** As many other commands are asked. */
function asksForVersion([only, ...rest]: readonly string[]): boolean {
  return rest.length === 0 && (only === "version" || only === "-v");
}

/** What runs a scenario, below each verb that `weir VERB FILE` may have been meant by; "": where no verb was given. */
const kRuns: Readonly<Record<string, readonly string[]>> = {
  "": ["lab run", "sim run"],
  lab: ["lab run"],
  sim: ["sim run"],
  model: ["model run"],
  plan: ["plan check"],
};

/** For who leaves out a verb, or the second word of one (`weir x.yaml`, `weir lab x.yaml`), or asks for one that is gone. */
function runHint(argv: readonly string[], error: string): string {
  const unknown = /^error: unknown command '(.*)'/.exec(error)?.[1];
  if (argv[0] === "model" && unknown === "sweep") return "  hint: weir paper dcqcn-fig11, or weir paper dcqcn-fig12\n";
  if (unknown === undefined || !/\.(ya?ml|json)$/.test(unknown)) return "";
  const runs = kRuns[argv[0] === unknown ? "" : (argv[0] ?? "")] ?? [];
  return runs.length === 0 ? "" : `  hint: ${runs.map((verb) => `weir ${verb} ${unknown}`).join(", or ")}\n`;
}

const kVerbs: readonly AddVerb[] = [
  addLab,
  addSim,
  addModel,
  addSwitch,
  addNic,
  addRun,
  addTop,
  addShow,
  addClear,
  addCapture,
  addValidate,
  addSchema,
  addProfiles,
  addPlan,
  addReport,
  addCompare,
  addSweep,
  addPaper,
  addPerf,
  addPing,
  addProbe,
  addDoctor,
];
