/** `weir capture`: frames of a running device in a pcapng file, or on stdout for Wireshark. */

import { type FileHandle, open } from "node:fs/promises";
import { WeirError } from "../base/error.js";
import { formatSize } from "../base/units.js";
import { type CaptureProgress, type CaptureSummary, receiveCapture } from "../device/capture/receive.js";
import { type CaptureKind, kKindNames, kSnaplen } from "../device/capture/request.js";
import { sectionOfHere } from "../device/capture/section.js";
import { askStream } from "../device/control_client.js";
import { type ControlledDevice, findDevices } from "../device/running.js";
import { count, printable } from "../result/report/format.js";
import { StatusLine } from "../result/report/status_line.js";
import { movesCursor } from "../result/report/terminal.js";
import { type AddVerb, type CliContext, collect, kExit, UsageError } from "./context.js";
import { sizeOption, timeOption } from "./quantity.js";
import { socketOption } from "./socket_option.js";
import { StopSignals } from "./stop_signals.js";

interface CaptureOptions {
  write: string;
  port?: string[];
  count?: number;
  duration?: number;
  snaplen?: number;
  filter?: CaptureKind[];
  json?: boolean;
  quiet?: boolean;
  socket?: string;
}

const kSecond = 1e9;

const kHelp = `
Kinds for --filter:
  ce      IP packets with a congestion mark, of whatever kind else
  cnp     congestion notification packets of RoCEv2
  pfc     PFC and PAUSE frames
  cnm     congestion notification messages of QCN
  roce    RoCEv2 without CNPs
  other   the rest

Examples:
  weir capture --write sw0.pcapng                          the only running device, until Ctrl-C
  weir capture sw0 --port red --count 1000 --write red.pcapng
  weir capture sw0 --filter ce,cnp,pfc --duration 10s --write congestion.pcapng
  weir capture sw0 --snaplen 128B --write - | wireshark -k -i -
  weir capture incast-4to1.sw --port r --write r.pcapng    a switch of a running lab, its port to r
  weir capture sw0 --write - | tshark -r - -Y 'frame.comment contains "CE"'
`;

export const addCapture: AddVerb = (parent, context, done) => {
  parent
    .command("capture")
    .description("write frames of a running switch or NIC to a pcapng file, with comments on ECN, CNP, PFC and QCN")
    .argument("[name]", "daemon, or a lab's device (incast-4to1.sw), when several run")
    .requiredOption("--write <file>", "pcapng file, or - for stdout")
    .option("--port <name>", "only this port, repeatable", collect)
    .option("--count <n>", "end after so many frames", countOption)
    .option(
      "--duration <time>",
      "end after this time, such as 10s",
      timeOption("--duration", { least: 1e6, most: 86_400 * kSecond }),
    )
    .option("--snaplen <size>", "most bytes of each frame", sizeOption("--snaplen", kSnaplen))
    .option("--filter <kinds>", `only frames of these kinds: ${kKindNames.join(", ")}`, kindsOption)
    .option("--json", "summary as one JSON document on stdout")
    .option("--quiet", "no progress, no summary")
    .addOption(socketOption())
    .addHelpText("after", kHelp)
    .action(async (name: string | undefined, options: CaptureOptions) => done(await run(context, name, options)));
};

async function run(context: CliContext, name: string | undefined, options: CaptureOptions): Promise<number> {
  const { stdout } = context;
  if (options.write === "-" && options.json) {
    throw new UsageError("--json and --write - both write to stdout", { hint: "write to a file" });
  }
  if (options.write === "-" && stdout.isTTY) {
    throw new UsageError("--write -: stdout is a terminal", { hint: "weir capture --write - | wireshark -k -i -" });
  }
  const { socket, device } = oneOf(await findDevices({ name, socket: options.socket }));
  const stream = await askStream(socket, "capture", {
    ...(device !== undefined && { device }),
    ...(options.port && { ports: options.port }),
    ...(options.snaplen !== undefined && { snaplen: options.snaplen }),
    ...(options.filter && { kinds: options.filter }),
  });
  const stop = new StopSignals(context, true);
  const end = new AbortController();
  stop.signal.addEventListener("abort", () => end.abort());
  const timer =
    options.duration === undefined ? undefined : setTimeout(() => end.abort(), options.duration / (kSecond / 1000));
  const line = movesCursor(context.stderr) && !options.quiet ? new StatusLine(context.stderr) : undefined;
  let sink: Sink | undefined;
  try {
    sink = options.write === "-" ? standardOutput(stdout, () => end.abort()) : await fileSink(options.write);
    const summary = await receiveCapture(stream, {
      section: sectionOfHere(stream.data.version),
      write: sink.write,
      count: options.count,
      signal: end.signal,
      onProgress: line && ((progress) => line.show(() => progressText(stream.data.name, progress))),
    });
    line?.close();
    tell(context, stream.data.name, options, summary);
    if (!summary.complete) {
      const hint = "the file ends with the last frame that came";
      throw new WeirError(`${stream.data.name} went away during the capture`, { hint });
    }
    return kExit.ok;
  } finally {
    stream.socket.destroy();
    line?.close();
    clearTimeout(timer);
    stop.release();
    await sink?.close();
  }
}

/** Destination of the capture. */
interface Sink {
  write(bytes: Buffer): Promise<void>;
  close(): Promise<void>;
}

async function fileSink(file: string): Promise<Sink> {
  const failed = (cause: unknown) =>
    new WeirError(`cannot write ${file}: ${(cause as Error).message}`, { field: "--write", cause });
  let handle: FileHandle;
  try {
    handle = await open(file, "w");
  } catch (error) {
    throw failed(error);
  }
  let whole = 0;
  return {
    async write(bytes) {
      try {
        await handle.writeFile(bytes);
        whole += bytes.length;
      } catch (error) {
        // Nothing can be taken back from a pipe or another target that is no file.
        await handle.truncate(whole).catch(() => {});
        throw failed(error);
      }
    },
    close: () => handle.close(),
  };
}

/** A reader that has seen enough ends the capture. */
function standardOutput(stdout: CliContext["stdout"], gone: () => void): Sink {
  return {
    write: (bytes) =>
      new Promise((resolve, reject) => {
        stdout.write(bytes, (error?: (Error & { code?: string }) | null) => {
          if (error && error.code !== "EPIPE") return reject(error);
          if (error) gone();
          resolve();
        });
      }),
    close: async () => {},
  };
}

function oneOf(devices: readonly ControlledDevice[]): ControlledDevice {
  const [only, ...others] = devices;
  if (only !== undefined && others.length === 0) return only;
  throw new WeirError("several devices are running", {
    hint: `name one: ${devices.map(({ name }) => name).join(", ")}`,
  });
}

function progressText(device: string, { frames, bytes, dropped }: CaptureProgress): string {
  const lost = dropped === 0 ? "" : `, ${count(dropped)} dropped`;
  return `${printable(device)}: ${count(frames)} frames, ${formatSize(bytes, 3)}${lost}; Ctrl-C ends`;
}

function tell(context: CliContext, device: string, options: CaptureOptions, summary: CaptureSummary): void {
  if (options.json) {
    context.stdout.write(`${JSON.stringify({ device, file: options.write, ...summary }, undefined, 2)}\n`);
  }
  if (options.quiet || options.json) return;
  const file = options.write === "-" ? "stdout" : options.write;
  const lines = [
    `${file}: ${count(summary.frames)} frames of ${printable(device)}, ${formatSize(summary.bytes, 3)}`,
    ...summary.ports.map(({ name, written, seen, captured, dropped }) => {
      const unwanted = seen - captured - dropped;
      const parts = [
        `${count(written)} written`,
        ...(unwanted > 0 ? [`${count(unwanted)} of other kinds`] : []),
        ...(summary.complete && captured > written ? [`${count(captured - written)} after the end`] : []),
        ...(dropped > 0 ? [`${count(dropped)} dropped: read too slowly`] : []),
      ];
      return `  ${printable(name)}: ${parts.join(", ")}`;
    }),
  ];
  context.stderr.write(`${lines.join("\n")}\n`);
}

function countOption(text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= 1 && Number.isSafeInteger(value)) return value;
  throw new UsageError(`--count ${text}: no number of frames`, { hint: "must be an integer of 1 or more" });
}

function kindsOption(text: string): CaptureKind[] {
  return text.split(",").map((word) => {
    const kind = kKindNames.find((name) => name === word.trim());
    if (kind !== undefined) return kind;
    throw new UsageError(`--filter ${text}: there is no kind ${JSON.stringify(word)}`, {
      hint: `kinds: ${kKindNames.join(", ")}`,
    });
  });
}
