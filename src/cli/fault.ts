/** `weir fault`: harm that is done on purpose to what comes in at a port of a running device, or to its link. */
import { Argument, Option } from "commander";
import { WeirError } from "../base/error.js";
import { formatRate, formatTime } from "../base/units.js";
import type { FaultReport } from "../device/protocol.js";
import { askDevice, type ControlledDevice, findDevices } from "../device/running.js";
import { printable } from "../result/report/format.js";
import { drawGrid } from "../result/report/table.js";
import { kFaultKinds } from "../scenario/fault_kinds.js";
import { kFaultStatuses, kNakCodes, kTrimDscp } from "../scenario/fault_schema.js";
import { type AddVerb, type CliContext, collect, kExit, print, UsageError } from "./context.js";
import { prioritiesOption } from "./priorities.js";
import { socketOption } from "./socket_option.js";

interface FaultOptions {
  socket?: string;
  port?: string;
  opcode?: string[];
  qp?: string;
  sourcePort?: string;
  from?: string;
  to?: string;
  share?: string;
  every?: string;
  nth?: string;
  count?: string;
  seed?: string;
  for?: string;
  delay?: string;
  direction?: string;
  code?: string;
  status?: string;
  rate?: string;
  size?: string;
  dscp?: string;
  priorities?: number[];
  after?: string;
  down?: string;
  up?: string;
  json?: boolean;
}

const kWhat = [...kFaultKinds, "kill", "list", "end"] as const;

/** Settings that are times. */
const kTimes: ReadonlySet<string> = new Set(["after", "for", "delay", "down", "up"]);

const kHelp = `
A fault is made to frames that come in at the port; what a device sends is harmed at the other end. It is counted (faults_dropped and
others), and ends by --for, --count, "end", or with the device. Times are those that the lab means. \`mark\` sets CE where packets may be
marked; \`nak\` makes acknowledgements that come in, and responses, refusals; \`down\` is for both directions: programs hear of it (IBV_EVENT_PORT_ERR), and timers of queue pairs go on.

Examples:
  weir fault roce0 drop --share 1% --for 10s               as netem's loss 1%
  weir fault sw0 drop --port eth1 --opcode ack --nth 3     the third acknowledgement
  weir fault roce0 delay --delay 2ms --every 100           one in a hundred is overtaken
  weir fault roce0 nak --code remote-access --count 1      what programs see as IBV_WC_REM_ACCESS_ERR
  weir fault roce0 error --qp 0x11 --status loc-prot       that queue pair fails by the next packet
  weir fault roce0 slow --rate 500Mbps --for 10s           a slow receiver, which pauses its peer
  weir fault sw0 pause --port eth1 --for 5s                as if who is there asked for pauses
  weir fault roce0 down --for 2s
  weir fault incast-4to1.h1 down --down 100ms --up 900ms --for 10s
  weir fault roce0 kill --after 3s                         its daemon dies, as by SIGKILL
  weir fault roce0                                         what goes on
  weir fault roce0 end                                     all, or one by its number

Opcodes: send, write, read-request, read-response, ack, atomic, atomic-ack, cnp, or a number such as 0x11.
`;

export const addFault: AddVerb = (parent, context, done) => {
  parent
    .command("fault")
    .description(
      "drop, delay, duplicate, corrupt, mark, trim or refuse frames at a port of a running device, have queue pairs fail, slow its host, pause its link, or take it down",
    )
    .argument("<device>", "NIC, switch, or LAB.DEVICE")
    .addArgument(new Argument("[what]", "kind of fault, kill, list, or end").choices(kWhat).default("list"))
    .argument("[number]", "with end: this one only")
    .addOption(socketOption())
    .option("--port <name>", "port of a switch")
    .addOption(
      new Option("--direction <which>", "frames that come in, or those that a NIC sends (default: in)").choices([
        "in",
        "out",
      ]),
    )
    .option("--opcode <name>", "packets with this opcode, repeatable", collect)
    .option("--qp <number>", "packets for this queue pair")
    .option("--source-port <number>", "packets with this UDP source port")
    .option("--from <ip>", "packets of this sender")
    .option("--to <ip>", "packets to this receiver")
    .option("--share <fraction>", "of those that match, such as 1% (default: all)")
    .option("--every <n>", "one of n that match")
    .option("--nth <n>", "the n-th that matches, once")
    .option("--count <n>", "over after n frames")
    .option("--seed <n>", "of the share (default: 1)")
    .option("--for <time>", "how long (default: until it is ended)")
    .option("--delay <time>", "with delay: how long a frame is held back")
    .option("--code <reason>", `with nak: ${Object.keys(kNakCodes).join(", ")}`)
    .option("--status <word>", `with error: ${Object.keys(kFaultStatuses).join(", ")} (default: wr-flush)`)
    .option("--rate <rate>", "with slow: at which the host takes what comes in, such as 1Gbps")
    .option("--size <bytes>", "with trim: what is left (default: 128B)")
    .option("--dscp <n>", `with trim: of what is left (default: ${kTrimDscp})`)
    .option("--priorities <list>", "with pause: such as 3 or 3,4 (default: 3)", prioritiesOption)
    .option("--after <time>", "begins so much later (default: at once)")
    .option("--down <time>", "with down: down for so long each time")
    .option("--up <time>", "with down: up for so long in between")
    .option("--json", "as JSON")
    .addHelpText("after", kHelp)
    .action(async (name: string, what: (typeof kWhat)[number], number: string | undefined, options: FaultOptions) =>
      done(await fault(context, name, what, number, options)),
    );
};

async function fault(
  context: CliContext,
  name: string,
  what: (typeof kWhat)[number],
  number: string | undefined,
  options: FaultOptions,
): Promise<number> {
  const { socket, json, ...fields } = options;
  const written = Object.keys(fields);
  if ((what === "list" || what === "end") && written.length > 0) {
    throw new UsageError(`--${written[0]}: not with ${what}`, { hint: `${kFaultKinds.join(", ")} have options` });
  }
  if (number !== undefined && what !== "end") throw new UsageError(`${number}: only with end`);
  const wrong = what === "kill" ? written.find((option) => option !== "after") : undefined;
  if (wrong !== undefined) throw new UsageError(`--${wrong}: not with kill`, { hint: "--after is" });
  const [device, ...others] = await findDevices({ name, socket });
  if (device === undefined || others.length > 0) {
    throw new WeirError(`${name} has several devices`, { hint: "name one of them, such as LAB.DEVICE" });
  }
  if (what === "kill") {
    const dead = await askDevice(device, "kill", fields.after === undefined ? {} : { after: fields.after });
    print(context, json, dead, () => `${name}: process ${dead.pid} dies in ${formatTime(dead.after_s * 1e9)}`);
    return kExit.ok;
  }
  const reports = await asked(device, what, number, fields);
  print(context, json, reports, (color) => (reports.length === 0 ? `no fault at ${name}` : table(reports, color)));
  return kExit.ok;
}

async function asked(
  device: ControlledDevice,
  what: Exclude<(typeof kWhat)[number], "kill">,
  number: string | undefined,
  fields: Omit<FaultOptions, "socket" | "json">,
): Promise<FaultReport[]> {
  if (what === "list") return askDevice(device, "faults");
  if (what === "end")
    return askDevice(device, "end_fault", number === undefined ? {} : { number: numberOf("number", number) });
  const { sourcePort, nth, opcode, every = nth, count = nth === undefined ? undefined : "1", ...texts } = fields;
  const numbers = { qp: fields.qp, dscp: fields.dscp, source_port: sourcePort, every, count, seed: fields.seed };
  return [
    await askDevice(device, "fault", {
      ...texts,
      kind: what,
      ...(opcode !== undefined && {
        opcode: opcode.map((one) => (/^(0x)?\d/.test(one) ? numberOf("opcode", one) : one)),
      }),
      ...Object.fromEntries(
        Object.entries(numbers).flatMap(([key, text]) => (text === undefined ? [] : [[key, numberOf(key, text)]])),
      ),
    }),
  ];
}

function numberOf(option: string, text: string): number {
  if (/^(\d+|0x[0-9a-f]+)$/i.test(text)) return Number(text);
  throw new UsageError(`--${option.replace("_", "-")} ${text}: not a number`, { hint: "such as 17 or 0x11" });
}

function table(reports: readonly FaultReport[], color: boolean): string {
  return drawGrid(
    {
      title: "Faults",
      head: ["Fault", "Port", "Kind", "State", "Matched", "Hits", "Settings"],
      names: 4,
      rows: reports.map(({ number, port, kind, state, matched, hits, fault: { kind: _, port: _p, ...settings } }) => [
        String(number),
        printable(port),
        kind,
        state,
        String(matched),
        String(hits),
        Object.entries(settings)
          .map(
            ([key, value]) =>
              `${key} ${kTimes.has(key) ? formatTime(value as number) : key === "rate" ? formatRate(value as number) : value}`,
          )
          .join(", "),
      ]),
    },
    color,
  );
}
