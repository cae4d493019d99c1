/** What `weir show` can show, by the words that follow it. */
import { dashboard } from "./dashboard.js";
import { kDcbViews } from "./dcb.js";
import { ethtool } from "./ethtool.js";
import { programs, qp, rp } from "./nic.js";
import { counters, ecn, pfc } from "./overview.js";
import { ports } from "./ports.js";
import { kRdmaViews } from "./rdma.js";
import { kSonicViews } from "./sonic.js";
import { buffer, cp, fdb, queue, stormControl } from "./switch.js";
import type { View } from "./view.js";

export const kViews = {
  counters,
  pfc,
  ecn,
  cp,
  rp,
  queue,
  buffer,
  qp,
  programs,
  fdb,
  ports,
  "storm-control": stormControl,
  dashboard,
  ...kSonicViews,
  ...kRdmaViews,
  ...kDcbViews,
  ethtool,
} as const satisfies Record<string, View>;
