/** All views of `weir show`, by the words that follow it. */
import { dashboard } from "./dashboard.js";
import { kDcbViews } from "./dcb.js";
import { dcbx, lldp } from "./discovery.js";
import { ethtool } from "./ethtool.js";
import { programs, qp, rp } from "./nic.js";
import { counters, ecn, pfc, telemetry } from "./overview.js";
import { kPfcwdViews, pfcwd } from "./pfc_watchdog.js";
import { ports } from "./ports.js";
import { kRdmaViews } from "./rdma.js";
import { neighbors, routes } from "./router.js";
import { kSonicViews } from "./sonic.js";
import { kSonicConfigViews } from "./sonic_config.js";
import { stormControl } from "./storm_control.js";
import { buffer, cp, fdb, queue } from "./switch.js";
import type { View } from "./view.js";
import { vlan } from "./vlans.js";

export const kViews = {
  counters,
  pfc,
  pfcwd,
  ecn,
  cp,
  rp,
  telemetry,
  queue,
  buffer,
  qp,
  programs,
  fdb,
  vlan,
  routes,
  neighbors,
  ports,
  "storm-control": stormControl,
  lldp,
  dcbx,
  dashboard,
  ...kSonicViews,
  ...kPfcwdViews,
  ...kSonicConfigViews,
  ...kRdmaViews,
  ...kDcbViews,
  ethtool,
} as const satisfies Record<string, View>;
