/** Runs a scenario on this host with real frames. */
import { WeirError } from "../config/error.js";
import { packageVersion } from "../config/package_version.js";
import type { Scenario } from "../config/types.js";
import { formatRate, formatTime } from "../config/units.js";
import { controlDirectory } from "../daemon/control_client.js";
import { loadAddon } from "../native/addon.js";
import type { NativeAddon } from "../native/types.js";
import { kHeaderBytes } from "../wire/frame_size.js";
import { calibrate } from "./calibrate.js";
import { PcapngFile, planCaptures } from "./capture.js";
import { labNetwork } from "./compose.js";
import { LabControl } from "./control.js";
import { execute } from "./execution.js";
import { LiveStates } from "./live_state.js";
import { composeResult, endOf } from "./outcome.js";
import type { LabOptions, LabOutcome } from "./types.js";
import { LabNetwork } from "./veth.js";

/** Namespaces and veth pairs that one host can be asked to make. */
const kMostHosts = 250;
const kMostSwitches = 250;
const kMostFlows = 10_000;
/** Frames that a link may hold: the slots of a port, less those for what comes while its worker is late. */
const kMostUnderWay = 50_000;

/** @throws WeirError for what only the simulator does. */
export function checkForLab({ congestion, transport, flows, hosts, switches, links }: Scenario): void {
  const refuse = (message: string, remedy: string) => {
    throw new WeirError(message, { hint: `${remedy}, or run it in virtual time: weir sim run` });
  };
  if (congestion.algorithm === "dctcp") {
    refuse("congestion.algorithm: labs have no acknowledgements, by which dctcp hears of marks", "use dcqcn");
  }
  // Closed-loop flows need reliable connections, so they are refused here too.
  if (transport.type === "rc") {
    refuse("transport.type: labs send streams without acknowledgements, not rc", "use transport.type: stream");
  }
  for (const [what, count, most] of [
    ["hosts", hosts.length, kMostHosts],
    ["switches", switches.length, kMostSwitches],
    ["flows", flows.length, kMostFlows],
  ] as const) {
    if (count > most) refuse(`${count} ${what} are too many for a lab`, `use at most ${most}`);
  }
  // Frames wait in the receiving port until the link's delay is over; bytes under way are the same at every scale.
  const frame = Math.min(...hosts.map((host) => host.path_mtu)) + kHeaderBytes;
  for (const { from, to, rate, delay } of links) {
    const frames = Math.ceil((rate * delay) / 8e9 / frame);
    if (frames <= kMostUnderWay) continue;
    refuse(
      `${frames} frames are under way on the link ${from} -- ${to} (${formatRate(rate)}, ${formatTime(delay)})`,
      `at most ${kMostUnderWay} fit a port: shorten the delay, or use a larger path_mtu`,
    );
  }
}

/**
 * Makes the namespaces and links, runs the traffic, waits until the network is empty, and takes everything down again,
 * also on failure and when aborted. Aborted while traffic flows, it gives what there was until then, which is not valid.
 * @throws WeirError for what the user can mend; the signal's reason when aborted before there is traffic.
 */
export async function runLab(scenario: Scenario, options: LabOptions): Promise<LabOutcome> {
  checkForLab(scenario);
  const captures = planCaptures(scenario, options.capture, options.captureDir);
  const addon = loadAddon<NativeAddon>();
  const scale = scenario.scale === "auto" ? await calibrate(addon, scenario, options.signal) : scenario.scale;
  options.signal.throwIfAborted();
  const { nodes, links } = labNetwork(scenario);
  const network = await LabNetwork.create(nodes, links);
  const control = await openControl(scenario.name, options);
  const files: PcapngFile[] = [];
  try {
    for (const { file, ends } of captures.pcapng) files.push(new PcapngFile(addon, file, ends, packageVersion()));
    const evidence = await execute(addon, scenario, {
      scale,
      end: (link, node) => network.end(link, node),
      capture: (link, node) => captures.pcap.get(`${link} ${node}`),
      signal: options.signal,
      observers: [
        ...(options.view ? [new LiveStates(options.view)] : []),
        ...(control ? [control] : []),
        ...files,
        ...(options.observers ?? []),
      ],
    });
    const captureDropped = files.reduce((sum, { dropped }) => sum + dropped, 0);
    return {
      result: composeResult({ ...evidence, captureDropped }),
      series: evidence.recorder.series(endOf(evidence)),
    };
  } finally {
    control?.close();
    network.close();
    // Last: it fails where the disk is full.
    for (const file of files) file.close();
  }
}

/** A lab runs without as well. */
async function openControl(name: string, { control }: LabOptions): Promise<LabControl | undefined> {
  try {
    return control && (await LabControl.open(name, controlDirectory(), packageVersion()));
  } catch (error) {
    control?.warn(`weir show and weir top cannot see this lab: ${(error as Error).message}`);
    return undefined;
  }
}
