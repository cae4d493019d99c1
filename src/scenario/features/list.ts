/** The features of switches and of NICs. A new one is a file beside this one, and a line here. */
import { kAck } from "./ack.js";
import { kBuffer } from "./buffer.js";
import { checkBuffer } from "./buffer_check.js";
import { kClassification } from "./classification.js";
import { kCnp } from "./cnp.js";
import { kEcn } from "./ecn.js";
import { kPauseStorm } from "./pause_storm.js";
import { kPfc } from "./pfc.js";
import { kQcn } from "./qcn.js";
import { kReceiveBuffer } from "./receive_buffer.js";
import { kScheduler } from "./scheduler.js";
import { kTrimming } from "./trimming.js";
import { kWatchdog } from "./watchdog.js";

export const kSwitchFeatures = [
  kEcn,
  kPfc,
  kTrimming,
  { ...kBuffer, check: checkBuffer },
  kQcn,
  kWatchdog,
  kScheduler,
  kClassification,
] as const;

/** Features that decide what a device does by priority: NICs have them, too. */
export const kTrafficClasses = [kPfc, kScheduler, kClassification] as const;

export const kHostFeatures = [kCnp, kAck, kReceiveBuffer, kPauseStorm] as const;
