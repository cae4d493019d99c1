/** Runs a scenario on this host with real frames. */
import { packageVersion } from "../base/package_version.js";
import { controlDirectory } from "../device/control_client.js";
import { LabNetwork } from "../host/veth.js";
import { loadAddon } from "../native/addon.js";
import type { NativeAddon } from "../native/types.js";
import type { Scenario } from "../scenario/types.js";
import { calibrate } from "./calibrate.js";
import { LabCaptureFile, planCaptures } from "./capture.js";
import { checkForLab } from "./check.js";
import { labNetwork } from "./compose.js";
import { LabControl } from "./control.js";
import { execute } from "./execution.js";
import { LiveStates } from "./live_state.js";
import { composeResult, endOf } from "./outcome.js";
import type { LabOptions, LabOutcome } from "./types.js";

/**
 * Makes the namespaces and links, runs the traffic, waits until the network is empty, and takes everything down again,
 * also on failure and when aborted. Aborted while traffic flows, it gives what there was until then, which is not valid.
 * @throws WeirError for what the user can mend; the signal's reason when aborted before there is traffic.
 */
export async function runLab(scenario: Scenario, options: LabOptions): Promise<LabOutcome> {
  checkForLab(scenario);
  const planned = planCaptures(scenario, options.capture, options.captureDir);
  const addon = loadAddon<NativeAddon>();
  options.signal.throwIfAborted();
  const { nodes, links } = labNetwork(scenario);
  const network = await LabNetwork.create(nodes, links);
  const files: LabCaptureFile[] = [];
  let control: LabControl | undefined;
  try {
    const { signal } = options;
    const end = (link: number, node: string) => network.end(link, node);
    const scale = scenario.scale === "auto" ? await calibrate(addon, scenario, { end, signal }) : scenario.scale;
    control = await openControl(scenario.name, options);
    for (const capture of planned) files.push(new LabCaptureFile(addon, capture, packageVersion()));
    const evidence = await execute(addon, scenario, {
      scale,
      end,
      signal,
      observers: [
        ...(options.view ? [new LiveStates(options.view)] : []),
        ...(control ? [control] : []),
        ...files,
        ...(options.observers ?? []),
      ],
    });
    for (const file of files) file.looked();
    const captures = {
      dropped: files.reduce((sum, { dropped }) => sum + dropped, 0),
      errors: files.flatMap(({ error }) => error ?? []),
    };
    return {
      result: composeResult({ ...evidence, captures }),
      series: evidence.recorder.series(endOf(evidence)),
    };
  } finally {
    control?.close();
    network.close();
    for (const file of files) file.close();
  }
}

/** A lab runs without as well. */
async function openControl(name: string, { control }: LabOptions): Promise<LabControl | undefined> {
  const about = { version: packageVersion(), metrics: control?.metrics ?? null };
  try {
    return control && (await LabControl.open(name, controlDirectory(), about));
  } catch (error) {
    control?.warn(`weir show and weir top cannot see this lab: ${(error as Error).message}`);
    return undefined;
  }
}
