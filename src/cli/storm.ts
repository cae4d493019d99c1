/** `weir storm`: a NIC that pauses its peer without end, as a fault to try a fabric with. */
import { existsSync } from "node:fs";
import { formatRate, formatTime } from "../base/units.js";
import { count } from "../result/report/format.js";
import { type AddVerb, type CliContext, kExit, UsageError } from "./context.js";
import { integer } from "./device_options.js";
import { prioritiesOption } from "./priorities.js";
import { rateOption, timeOption } from "./quantity.js";
import { untilSignal } from "./stop_signals.js";

interface StormChoice {
  priorities?: number[];
  pause?: boolean;
  quanta: number;
  rate: number;
  for?: number;
  namespace?: string;
  json?: boolean;
}

const kSecond = 1e9;

const kHelp = `
Sends PFC frames (or with --pause 802.3x PAUSE frames) by the interface, each when half of the pause that the one before asked for
has passed, whatever the peer sends; and one at the end that lets the peer go on. Needs CAP_NET_RAW. Take an interface that nothing
else depends on: its peer stops, and with PFC so may all that feeds it. A PFC watchdog (weir switch, SONiC's pfcwd) is what ends that.

Examples:
  weir storm eth1 --priorities 3 --for 10s
  weir storm eth1 --priorities 3,4 --quanta 1000 --rate 25Gbps --for 500ms --json
  weir storm eth1 --pause                                            until Ctrl-C

Exit status: 0 the storm had no gaps, 1 an error, 2 bad usage, 3 this host was late, so that the peer may have gone on in between, 130 and
143 after SIGINT and SIGTERM.
`;

export const addStorm: AddVerb = (parent, context, done) => {
  parent
    .command("storm")
    .description("pause the peer of an interface without end, by PFC or PAUSE frames")
    .argument("<interface>", "network interface to send by")
    .option("--priorities <list>", "priorities to pause by PFC, such as 3 or 3,4", prioritiesOption)
    .option("--pause", "802.3x PAUSE frames instead, which stop all priorities")
    .option("--quanta <n>", "pause that each frame asks for, in 512 bit times", integer("--quanta", 1, 65_535), 65_535)
    .option(
      "--rate <rate>",
      "rate of the link, which says how long a quantum is; a higher one only sends more frames",
      rateOption("--rate", { least: 1e6, most: 800e9 }),
      100e9,
    )
    .option(
      "--for <time>",
      "how long (default: until SIGINT)",
      timeOption("--for", { least: 1e6, most: 86_400 * kSecond }),
    )
    .option("--namespace <path>", "network namespace that the interface is in, such as /run/netns/blue")
    .option("--json", "one JSON document on stdout at the end")
    .addHelpText("after", kHelp)
    .action(async (name: string, choice: StormChoice) => {
      if ((choice.priorities === undefined) === (choice.pause !== true)) {
        throw new UsageError("either --priorities or --pause", {
          hint: "--priorities 3 pauses one priority by PFC, --pause the whole link",
        });
      }
      if (choice.namespace !== undefined && !existsSync(choice.namespace)) {
        throw new UsageError(`--namespace ${choice.namespace}: there is no such file`, {
          hint: "ip netns list shows named ones, which are at /run/netns/NAME",
        });
      }
      done(await untilSignal(context, (signal) => storm(context, name, choice, signal)));
    });
};

async function storm({ stdout, stderr }: CliContext, name: string, choice: StormChoice, signal: AbortSignal) {
  const { kShortestPause, pauseTime, runStorm } = await import("../daemon/storm.js");
  const { quanta, rate, for: duration, namespace, json } = choice;
  const by = choice.pause ? "pause" : "pfc";
  const pause = pauseTime(quanta, rate);
  if (pause < kShortestPause) {
    const least = Math.min(65_535, Math.ceil((kShortestPause * rate) / 512e9));
    throw new UsageError(`--quanta ${quanta}: at ${formatRate(rate)} a pause of ${formatTime(Math.round(pause))}`, {
      hint: `shorter than the ${formatTime(kShortestPause)} in which a host can send the next one: at least ${least}`,
    });
  }
  const priorities = choice.priorities ?? [0, 1, 2, 3, 4, 5, 6, 7];
  if (!json) {
    const what = by === "pause" ? "PAUSE" : `PFC of priority ${priorities.join(", ")}`;
    const long = duration === undefined ? "until Ctrl-C" : `for ${formatTime(duration)}`;
    stderr.write(`${name}: ${what}, ${formatTime(Math.round(pause))} each, ${long}\n`);
  }
  const report = await runStorm(
    { interface: name, by, priorities, quanta, rate, duration, ...(namespace !== undefined && { namespace }) },
    signal,
  );
  if (json) stdout.write(`${JSON.stringify(report, undefined, 2)}\n`);
  else {
    const { frames, duration_s, host_late_us } = report;
    stdout.write(
      `${count(frames)} frames in ${duration_s.toFixed(3)} s; this host was late by ${host_late_us.toFixed(0)} us at most\n`,
    );
  }
  if (report.without_gaps) return kExit.ok;
  const why =
    report.discarded > 0 ? `${name} was not up: ${report.discarded} frames were not sent` : "this host was late";
  stderr.write(`the peer may have gone on in between: ${why}\n`);
  return kExit.invalid;
}
