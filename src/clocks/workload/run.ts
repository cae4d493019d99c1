/** Runs a scenario on this host whose traffic is, in part, that of programs and of the hosts' kernels. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeFolder } from "../../base/folder.js";
import { controlDirectory } from "../../host/control_directory.js";
import { raiseOwnSession } from "../../host/session.js";
import { loadAddon } from "../../native/addon.js";
import type { NativeAddon } from "../../native/types.js";
import type { Scenario } from "../../scenario/types.js";
import type { Outcome } from "../clock.js";
import { runLab } from "../lab/run.js";
import type { LabOptions } from "../lab/types.js";
import { labFolder } from "../standing/place.js";
import { LabResidents } from "./residents.js";

/** Runs a scenario as runLab() does; without such traffic it is runLab(). */
export function runWorkload(scenario: Scenario, options: LabOptions): Promise<Outcome> {
  if (scenario.programs.length + scenario.tcp.length === 0) return runLab(scenario, options);
  raiseOwnSession();
  // Each host has sockets to remove at the end, so there are more listeners than Node.js expects.
  process.setMaxListeners(0);
  return runLab(scenario, {
    ...options,
    residents: (_, control) =>
      LabResidents.build(loadAddon<NativeAddon>(), scenario, {
        folder: ownFolder(control),
        results: options.folder ?? "",
        warn: options.control?.warn ?? (() => {}),
      }),
  });
}

/** Folder of the run. Beside the control socket, it is removed with the other leftovers of a killed lab; else it is a temporary one. */
function ownFolder(control: string | undefined): string {
  if (control === undefined) return mkdtempSync(join(tmpdir(), "weir-"));
  const folder = labFolder(controlDirectory(), control);
  // A lab that was killed may have left its files.
  rmSync(folder, { recursive: true, force: true });
  makeFolder(folder, 0o755);
  return folder;
}
