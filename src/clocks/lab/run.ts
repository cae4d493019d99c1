/** Runs a scenario on this host with real frames. */
import { packageVersion } from "../../base/package_version.js";
import { controlDirectory } from "../../host/control_directory.js";
import { LabNetwork } from "../../host/veth.js";
import { loadAddon } from "../../native/addon.js";
import type { SimulationAddon } from "../../native/simulation_types.js";
import type { LinkSockets, NativeAddon } from "../../native/types.js";
import type { Scenario } from "../../scenario/types.js";
import type { Outcome, RunOptions } from "../clock.js";
import type { LabObserver } from "./access.js";
import { type CalibrationOptions, calibrate } from "./calibrate.js";
import { LabCaptureFile, planCaptures } from "./capture.js";
import { checkForLab } from "./check.js";
import { labEnds, labNetwork } from "./compose.js";
import { LabControl } from "./control.js";
import { execute, type LabAddon } from "./execution.js";
import { LiveStates } from "./live_state.js";
import { composeResult, endOf } from "./outcome.js";
import { type PartOptions, PartRun } from "./parts/part_run.js";
import type { Residents } from "./residents.js";
import type { LabOptions } from "./types.js";

/** Part options of callers that give none: a minute of patience for the other parts. */
const kAlone: PartOptions = { patience: 60e9, tell: () => {}, warn: () => {} };

/**
 * Makes the namespaces and links, runs the traffic, waits until the network is empty, and takes everything down again,
 * also on failure and when aborted. Aborted while traffic flows, it returns what there was until then, which is not valid.
 * @throws WeirError for what the user can mend; the signal's reason when aborted before there is traffic.
 */
export async function runLab(scenario: Scenario, options: LabOptions): Promise<Outcome> {
  checkForLab(scenario);
  const planned = planCaptures(scenario, options.capture ?? [], options.folder ?? "");
  const addon = loadAddon<NativeAddon & LinkSockets & Pick<SimulationAddon, "simulationManifest" | "IdealNetwork">>();
  options.signal.throwIfAborted();
  const files: LabCaptureFile[] = [];
  let control: LabControl | undefined;
  let residents: Residents | undefined;
  let network: LabNetwork | undefined;
  let part: PartRun | undefined;
  try {
    part = scenario.part === undefined ? undefined : PartRun.open(addon, scenario, options.part ?? kAlone);
    const signal = part === undefined ? options.signal : AbortSignal.any([options.signal, part.signal]);
    control = await openControl(shownName(scenario), options);
    residents = await options.residents?.(scenario, control?.name);
    const links = residents?.network ?? (await emptyNetwork(scenario));
    network = links;
    const end = labEnds(scenario, links);
    const scale = residents?.scale ?? (await scaleOf(addon, scenario, { end, signal }));
    for (const capture of planned) files.push(new LabCaptureFile(addon, capture, packageVersion()));
    const evidence = await execute(addon, scenario, {
      scale,
      end,
      signal,
      residents,
      part,
      observers: [
        ...(options.view ? [new LiveStates(options.view)] : []),
        ...(options.onProgress ? [tellProgress(options.onProgress)] : []),
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
    const transport = addon.simulationManifest().transport.map(({ name }) => name);
    const series = evidence.recorder.series(endOf(evidence));
    const result = composeResult({ ...evidence, captures }, transport);
    return {
      result,
      series: { ...series, flows: { ...series.flows, ...evidence.residents?.series } },
      timeline: evidence.timeline,
      flowTable: [...evidence.completions.table].sort((a, b) => a.end_ns - b.end_ns),
      complete: result.until_s === undefined,
    };
  } catch (error) {
    part?.close((error as Error).message);
    throw error;
  } finally {
    part?.close();
    residents?.close();
    control?.close();
    network?.close();
    for (const file of files) file.close();
  }
}

function tellProgress(tell: NonNullable<RunOptions["onProgress"]>): LabObserver {
  return { looked: (lab) => tell({ done: Math.min(1, Math.max(0, lab.now() / lab.scenario.duration)) }) };
}

/** Makes the network of hosts without residents. */
function emptyNetwork(scenario: Scenario): Promise<LabNetwork> {
  const { nodes, links } = labNetwork(scenario);
  return LabNetwork.create(nodes, links);
}

async function scaleOf(addon: LabAddon, scenario: Scenario, options: CalibrationOptions): Promise<number> {
  return scenario.scale === "auto" ? await calibrate(addon, scenario, options) : scenario.scale;
}

/** Name by which others find the lab. */
const shownName = ({ name, part }: Scenario) => (part === undefined ? name : `${name}-${part}`);

/** Opens the control socket; a lab runs without one as well. */
async function openControl(name: string, { control }: LabOptions): Promise<LabControl | undefined> {
  const about = { version: packageVersion(), metrics: control?.metrics ?? null };
  try {
    return control && (await LabControl.open(name, controlDirectory(), about));
  } catch (error) {
    control?.warn(`weir show and weir top cannot see this lab: ${(error as Error).message}`);
    return undefined;
  }
}
